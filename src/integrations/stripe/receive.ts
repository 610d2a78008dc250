// Handles a message of Stripe. Messages of a realm are handled one after another at the owner of its cell, and the facts in
// a message are stored before anything is done. So a message that was interrupted continues when Stripe sends it again,
// and two messages have the same result in either order. Every step is harmless when it is repeated.

import type { Directory } from "../../../actors/directory.ts";
import type { Realm } from "../../../actors/call.ts";
import { Unavailable } from "../../../actors/port.ts";
import type { RefusalCode } from "../../domain/values/refusal.ts";
import { answerMessage } from "../../domain/stripe/answer_message.ts";
import type { TopUpWorkAnswer, TopUpWorkInput } from "../../domain/credits/top_up_work.ts";
import { ownerOf, type UserKey } from "../../domain/values/ids.ts";
import type { StripeMessage, TopUpMessage } from "../../domain/stripe/message.ts";
import type { StripeAct, StripeOutcome } from "../../domain/stripe/outcome.ts";
import type { StripeCounts } from "../../process/counts/stripe_counts.ts";
import type { Clock } from "../../process/clock.ts";
import { inTurn } from "../../process/in_turn.ts";
import type { Session } from "../../storage/database.ts";
import type { InCell } from "../../storage/nodes/cell_store.ts";
import {
  keepCustomer,
  keepLast,
  keepLearned,
  keepSettled,
  linksOf,
  readKnown,
} from "../../storage/stores/stripe_store.ts";
import {
  forgetUnhandled,
  keepUnhandled,
  readUnhandled,
} from "../../storage/stores/stripe_unhandled_store.ts";

/** What the handling of messages uses. */
export interface StripeWorld {
  readonly term: { readonly directory: Pick<Directory, "runById" | "runByKey" | "isSameUser"> };
  readonly inCell: InCell;
  readonly clock: Clock;
  readonly counts: { readonly stripe: StripeCounts };
}

/** The realm that a message was sent to. */
interface StripeRealm extends Realm {
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
    const isForMode = message.head.isLive === (realm.mode === "live");
    const received = isForMode
      ? await handle(world, realm, message)
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

/** Handles a message, and then those that waited for what it says. Runs in the realm's turn. */
export async function handle(
  world: StripeWorld,
  realm: Realm,
  message: StripeMessage,
): Promise<Received> {
  const { received, waiting } = await answer(world, realm, message);
  const seen = new Set([message.head.eventId]);
  for (const queue = [...waiting]; queue.length > 0;) {
    const next = queue.shift() as StripeMessage;
    if (seen.has(next.head.eventId)) continue;
    seen.add(next.head.eventId);
    const again = await answer(world, realm, next);
    if (again.received.handled) queue.push(...again.waiting);
  }
  return received;
}

interface Answered {
  readonly received: Received;
  /** Kept messages about the same objects. */
  readonly waiting: readonly StripeMessage[];
}

async function answer(world: StripeWorld, realm: Realm, received: StripeMessage): Promise<Answered> {
  const message = received.kind === "topUp" ? await withSold(world, realm, received) : received;
  const outcome = await world.inCell(realm.cell, async (session) => {
    const known = await readKnown(session, realm.realm, message);
    const outcome = answerMessage(message, known, realm.catalog);
    await keepLearned(session, realm.realm, outcome.learned, realm.now());
    const { customerId } = message.head;
    if (customerId !== undefined) await keepCustomer(session, realm.realm, customerId, namedIn(outcome));
    return outcome;
  });
  const done: Done[] = [];
  let refusal: string | null = null;
  for (const act of await actsOf(world, realm, outcome)) {
    const result = await run(world, realm, act);
    if (typeof result === "string") refusal ??= result;
    else if (result !== null) done.push(result);
  }
  const result: Received = done.length > 0
    ? { handled: true, done, warnings: outcome.warnings }
    : { handled: false, reason: refusal ?? outcome.reason ?? "there is nothing left to do" };
  // Last of all: a message that is interrupted earlier finds everything that waited again.
  const { settled } = outcome;
  const waiting = await world.inCell(realm.cell, async (session) => {
    if (settled !== null) await keepSettled(session, realm.realm, settled);
    const isKept = await noteUnhandled(session, realm, message, outcome, refusal);
    world.counts.stripe[isKept ? "unhandled" : result.handled ? "handled" : "ignored"] += 1;
    return await readUnhandled(session, realm.realm, { links: linksOf(message) });
  });
  return { received: result, waiting };
}

/** The users that a message is about. */
function namedIn({ learned, acts }: StripeOutcome): readonly string[] {
  const named = [learned.subscription, ...learned.purchases, ...acts].map((each) => each?.userId ?? null);
  return [...new Set(named.filter((id) => id !== null))];
}

/** Adds what a message of a top-up needs to know of it. */
async function withSold(world: StripeWorld, realm: Realm, message: TopUpMessage): Promise<StripeMessage> {
  const { topUpId, paymentIntentId, paid } = message;
  const owner = ownerOf("topUp", topUpId);
  if (owner === null || paid === null) return { ...message, sold: null };
  const step = { kind: "match", paymentIntentId, ...paid } as const;
  const result = await topUpTurn(world, realm, owner, { topUpId, step });
  if (typeof result === "string") return { ...message, sold: null };
  const { intent: { packId, quantity }, userId, mismatch } = result;
  return { ...message, sold: { userId, packId, quantity, mismatch } };
}

/** Runs a step of a top-up; returns why it was refused, as a text. */
async function topUpTurn(
  { term }: StripeWorld,
  realm: Realm,
  owner: UserKey,
  input: TopUpWorkInput,
): Promise<TopUpWorkAnswer | string> {
  const call = { realm, name: "topUpWork", input, needs: { topUpId: input.topUpId } } as const;
  const result = await term.directory.runByKey(owner, call);
  if (result === null) return "no top-up has this id";
  return result.ok ? result.answer : refusedBy(result.refusal);
}

/** Keeps a message about something that was paid for and not granted, or forgets it; returns whether it is kept. */
async function noteUnhandled(
  session: Session,
  realm: Realm,
  message: StripeMessage,
  { paid, learned, acts }: StripeOutcome,
  refusal: string | null,
): Promise<boolean> {
  const reason = paid?.reason ?? refusal;
  if (paid === null || reason === null) {
    await forgetUnhandled(session, realm.realm, message.head.eventId);
    return false;
  }
  const named = message.kind === "sale"
    ? message.lines.map(({ userId }) => userId)
    : [learned.subscription?.userId ?? null];
  const userIds = [...named, ...acts.map(({ userId }) => userId)].filter((id) => id !== null);
  const { objectId, money } = paid;
  const row = { message, objectId, reason, money, links: linksOf(message), userIds: [...new Set(userIds)] };
  await keepUnhandled(
    session,
    realm.realm,
    { ...row, catalogVersion: realm.catalog.version },
    realm.now(),
  );
  return true;
}

/** The actions in order. A subscription that moved to another id of the same user is not ended first. */
async function actsOf(
  { term }: StripeWorld,
  { realm }: Realm,
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
async function run(world: StripeWorld, realm: Realm, act: StripeAct): Promise<Done | string | null> {
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
  if (act.kind === "topUp") {
    const result = await topUpTurn(world, realm, act.topUpKey, act.input);
    if (typeof result === "string") return result;
    const { balanceId, userId } = result;
    if (balanceId === null) return result.mismatch;
    return { did: "credits_granted", userId, externalRef: act.input.topUpId, balanceIds: [balanceId] };
  }
  const { did, externalRef, externalRefs } = creditsOf(act);
  const isOwn = act.kind !== "grant" && act.input.isOwn === true;
  const call = { realm, needs: isOwn ? { externalRefs, isOwn } : { externalRefs } };
  const result = act.kind === "grant"
    ? await directory.runById(userId, { ...call, name: "grant", input: act.input })
    : act.kind === "refund"
    ? await directory.runById(userId, { ...call, name: "refund", input: act.input })
    : await directory.runById(userId, { ...call, name: "reinstate", input: act.input });
  if (!result.ok) return refusedBy(result.refusal);
  const balanceIds = "balanceIds" in result.answer
    ? result.answer.balanceIds
    : result.answer.balances.map(({ row }) => row.id);
  return balanceIds.length === 0 ? null : { did, userId, externalRef, balanceIds };
}

type CreditsAct = Exclude<StripeAct, { readonly kind: "mirror" | "topUp" }>;

/** What an action on credits does, and the references of the balances that it needs. */
function creditsOf({ kind, input }: CreditsAct) {
  const externalRef = kind === "reinstate" ? input.newRef : input.externalRef as string;
  const others = kind === "reinstate" ? [input.externalRef, ...input.earlierRefs] : [];
  const did = kind === "refund" ? "credits_revoked" as const : "credits_granted" as const;
  return { did, externalRef, externalRefs: [...others, externalRef] };
}

/** Refusals after which a retry can succeed. */
const PASSING: ReadonlySet<RefusalCode> = new Set(["unavailable", "not_processed", "internal_error"]);

function refusedBy({ code, message }: { readonly code: RefusalCode; readonly message: string }): string {
  if (PASSING.has(code)) throw new Unavailable(message);
  return `${code}: ${message}`;
}
