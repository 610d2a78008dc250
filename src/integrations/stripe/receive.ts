// Does what a message of Stripe says. Messages of a realm are taken one after another at the owner of its cell, and what a
// message tells is kept before anything is done: so a message that was cut off does the rest when it comes again, and
// whichever of two comes first, both together come to the same. Every step is harmless when it is repeated. Section 7 of
// beyond.md.

import type { Directory } from "../../../actors/directory.ts";
import type { Realm } from "../../../actors/actor.ts";
import { Unavailable } from "../../../actors/port.ts";
import type { RefusalCode } from "../../domain/values/refusal.ts";
import { answerMessage, type StripeAct, type StripeOutcome } from "../../domain/stripe/answer_message.ts";
import type { Purchase } from "../../domain/stripe/facts.ts";
import type { StripeMessage } from "../../domain/stripe/message.ts";
import type { Clock } from "../../process/clock.ts";
import { inTurn } from "../../process/in_turn.ts";
import type { Session } from "../../storage/database.ts";
import type { InCell } from "../../storage/members/cell_store.ts";
import {
  findRefunded,
  keepLast,
  keepLearned,
  keepSettled,
  readKnown,
} from "../../storage/stores/stripe_store.ts";

/** What messages of Stripe work on. */
export interface StripeWorld {
  readonly term: { readonly directory: Pick<Directory, "runById" | "isSameUser"> };
  readonly inCell: InCell;
  readonly clock: Clock;
}

/** The realm that a message came to. */
export interface StripeRealm extends Realm {
  readonly app: { readonly record: { readonly appId: string } };
}

/** One thing that was done. */
export type Done =
  | {
    readonly did: "subscription_written" | "subscription_ended";
    readonly userId: string;
    readonly subscriptionId: string;
    readonly planId: string;
    readonly endsAt: number | null;
  }
  | {
    readonly did: "credits_granted" | "credits_revoked";
    readonly userId: string;
    readonly externalRef: string;
    readonly balanceIds: readonly string[];
  };

/** What a message came to: what was done, or why nothing was. */
export type Received =
  | { readonly handled: true; readonly done: readonly Done[]; readonly warnings: readonly string[] }
  | { readonly handled: false; readonly reason: string };

/** Takes a message whose signature was good. */
export function receive(world: StripeWorld, realm: StripeRealm, message: StripeMessage): Promise<Received> {
  return inTurn(realm, async () => {
    const received = message.head.isLive === (realm.mode === "live")
      ? await answer(world, realm, message)
      : { handled: false as const, reason: `the message is not of ${realm.mode} mode` };
    const { eventId, type } = message.head;
    const last = { eventId, type, at: world.clock.now(), reason: received.handled ? null : received.reason };
    await world.inCell(
      realm.cell,
      (session) => keepLast(session, realm.app.record.appId, realm.mode, last),
    );
    return received;
  });
}

async function answer(world: StripeWorld, realm: StripeRealm, message: StripeMessage): Promise<Received> {
  const { outcome, refunded } = await world.inCell(realm.cell, async (session) => {
    const known = await readKnown(session, realm.realm, message);
    const outcome = answerMessage(message, known, realm.catalog);
    await keepLearned(session, realm.realm, outcome.learned, realm.now());
    return { outcome, refunded: await refundedBy(session, realm.realm, outcome) };
  });
  const { settled } = outcome;
  const done: Done[] = [];
  let refusal: string | null = null;
  for (const act of await actsOf(world, realm, outcome)) {
    const result = await run(world, realm, act);
    if (typeof result === "string") refusal ??= result;
    else if (result !== null) done.push(result);
  }
  for (const purchase of refunded) done.push(...await revoke(world, realm, purchase));
  // Last of all: a message that is cut off before finds everything that waited once more.
  if (settled !== null) {
    await world.inCell(realm.cell, (session) => keepSettled(session, realm.realm, settled));
  }
  // Stripe puts the first lines of a long invoice into its message, and we have no key to ask for the others.
  const warnings = message.kind === "sale" && message.isCut ? ["lines_left_out"] : [];
  if (done.length > 0) return { handled: true, done, warnings };
  return { handled: false, reason: refusal ?? outcome.reason ?? "there is nothing left to do" };
}

/** The purchases that have to go: those that a message tells of, and those that it finds a user for. */
async function refundedBy(
  session: Session,
  realm: number,
  { learned, settled }: StripeOutcome,
): Promise<readonly Purchase[]> {
  const users = new Map(settled?.purchases.map(({ externalRef, userId }) => [externalRef, userId]));
  const purchases = [...learned.purchases, ...settled?.purchases ?? []];
  const found = await findRefunded(session, realm, { ...learned, purchases });
  return found.map((purchase) => ({
    ...purchase,
    userId: purchase.userId ?? users.get(purchase.externalRef) ?? null,
  })).filter(({ userId }) => userId !== null);
}

/** The acts in order. A subscription that only goes by another id of its user is not ended first. */
async function actsOf(
  { term }: StripeWorld,
  { realm }: StripeRealm,
  { acts, left }: StripeOutcome,
): Promise<readonly StripeAct[]> {
  if (left === null) return acts;
  const ending: StripeAct[] = [];
  for (const act of left.acts) {
    if (!await term.directory.isSameUser(realm, act.userId, left.to)) ending.push(act);
  }
  return [...ending, ...acts];
}

/**
 * Does one thing to a user: what was done, null for nothing, or why it was refused.
 *
 * @throws Unavailable where the message is to be sent again
 */
async function run(world: StripeWorld, realm: StripeRealm, act: StripeAct): Promise<Done | string | null> {
  const { directory } = world.term;
  const { userId } = act;
  if (act.kind === "mirror") {
    const result = await directory.runById(userId, { realm, name: "mirror", input: act.input });
    if (!result.ok) return refusedBy(result.refusal);
    const { row } = result.answer;
    if (row === null) return null;
    const did = "planId" in act.input.state ? "subscription_written" : "subscription_ended";
    return {
      did,
      userId: result.answer.userId,
      subscriptionId: row.id,
      planId: row.planId,
      endsAt: row.endsAt,
    };
  }
  const externalRef = act.input.externalRef as string;
  const result = await directory.runById(userId, {
    realm,
    name: "grant",
    input: act.input,
    needs: { externalRef },
  });
  if (!result.ok) return refusedBy(result.refusal);
  const balanceIds = result.answer.balances.map(({ row }) => row.id);
  return { did: "credits_granted", userId, externalRef, balanceIds };
}

async function revoke({ term }: StripeWorld, realm: StripeRealm, purchase: Purchase): Promise<Done[]> {
  const userId = purchase.userId as string;
  const { externalRef } = purchase;
  const input = { externalRef, reason: "Stripe: the payment was refunded" };
  const result = await term.directory.runById(userId, {
    realm,
    name: "refund",
    input,
    needs: { externalRef },
  });
  if (!result.ok) throw new Unavailable(result.refusal.message);
  const { balanceIds } = result.answer;
  return balanceIds.length === 0 ? [] : [{ did: "credits_revoked", userId, externalRef, balanceIds }];
}

/** Refusals that pass with time. */
const PASSING: ReadonlySet<RefusalCode> = new Set(["unavailable", "not_processed", "internal_error"]);

function refusedBy({ code, message }: { readonly code: RefusalCode; readonly message: string }): string {
  if (PASSING.has(code)) throw new Unavailable(message);
  return `${code}: ${message}`;
}
