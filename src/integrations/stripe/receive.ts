// Handles a message of Stripe. Messages of a realm are handled one after another at the owner of its cell, and the facts in
// a message are stored before anything is done. So a message that was interrupted continues when Stripe sends it again,
// and two messages have the same result in either order. Every step is harmless when it is repeated.

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
import type { InCell } from "../../storage/nodes/cell_store.ts";
import {
  findRefunded,
  keepLast,
  keepLearned,
  keepSettled,
  readKnown,
} from "../../storage/stores/stripe_store.ts";

/** What the handling of messages uses. */
export interface StripeWorld {
  readonly term: { readonly directory: Pick<Directory, "runById" | "isSameUser"> };
  readonly inCell: InCell;
  readonly clock: Clock;
}

/** The realm that a message was sent to. */
export interface StripeRealm extends Realm {
  readonly app: { readonly record: { readonly appId: string } };
}

/** One change that was made. */
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

/** The result of a message: the changes made, or why there were none. */
export type Received =
  | { readonly handled: true; readonly done: readonly Done[]; readonly warnings: readonly string[] }
  | { readonly handled: false; readonly reason: string };

/** Handles a message after its signature was checked. */
export function receive(world: StripeWorld, realm: StripeRealm, message: StripeMessage): Promise<Received> {
  return inTurn(realm, async () => {
    const received = message.head.isLive === (realm.mode === "live")
      ? await answer(world, realm, message)
      : { handled: false as const, reason: `the message is not for ${realm.mode} mode` };
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
  // Last of all: a message that is interrupted earlier finds everything that waited again.
  if (settled !== null) {
    await world.inCell(realm.cell, (session) => keepSettled(session, realm.realm, settled));
  }
  if (done.length > 0) return { handled: true, done, warnings: outcome.warnings };
  return { handled: false, reason: refusal ?? outcome.reason ?? "there is nothing left to do" };
}

/** The purchases to revoke: those that the message refunds, and refunded ones whose user it names. */
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

/** The actions in order. A subscription that moved to another id of the same user is not ended first. */
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
 * Runs one action for a user: returns the change, null for no change, or why it was refused.
 *
 * @throws Unavailable when Stripe has to send the message again
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

/** Refusals after which a retry can succeed. */
const PASSING: ReadonlySet<RefusalCode> = new Set(["unavailable", "not_processed", "internal_error"]);

function refusedBy({ code, message }: { readonly code: RefusalCode; readonly message: string }): string {
  if (PASSING.has(code)) throw new Unavailable(message);
  return `${code}: ${message}`;
}
