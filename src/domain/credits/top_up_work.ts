// What happened to an intent at Stripe. Each step is durable before the next call to Stripe:
//
//  1. `attempt`: a PaymentIntent is about to be created, unconfirmed, under a key of this attempt;
//  2. `created`: its id is stored. From here on no other one is created;
//  3. `confirming`: it is about to be confirmed, so that money may move. What was called off never gets here;
//  4. `paid`, `processing` or `ended`, as Stripe says. `match` only asks whether a payment is for the intent.
//
// Steps may be repeated, and come late or from two processes: an earlier step never undoes a later one.

import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import { refusal } from "../values/refusal.ts";
import { answered, refused, type Result } from "../state/result.ts";
import { isUnderWay, type TopUp, type TopUpIntent, type TopUpStatus, withSpent } from "../state/top_up.ts";
import type { Millis } from "../values/period.ts";
import { defaultExpiry } from "./grant.ts";
import { issueBalance } from "./issue.ts";
import { endBalance } from "./revoke.ts";
import { topUpData } from "./top_up.ts";

/** A step of an intent. */
export type TopUpStep =
  | { readonly kind: "read" }
  /** @param over an attempt whose key Stripe has forgotten, or answers by nothing but a failure; null for none */
  | { readonly kind: "attempt"; readonly realNow: Millis; readonly over: number | null }
  | { readonly kind: "created"; readonly paymentIntentId: string }
  | { readonly kind: "confirming" }
  | { readonly kind: "processing" }
  /**
   * Stripe will never take money for it. The reason is a text for the customer. Of another PaymentIntent than the
   * stored one it says nothing.
   */
  | { readonly kind: "ended"; readonly paymentIntentId: string | null; readonly reason: string }
  | ({ readonly kind: "paid" | "match" } & TopUpPayment);

/** Money that Stripe has received. */
interface TopUpPayment {
  readonly paymentIntentId: string;
  readonly amount: number;
  readonly currency: string;
  /** Why its money went back before its grant: then the grant is revoked at once. Null or absent for not. */
  readonly revokedFor?: string | null;
}

export interface TopUpWorkInput {
  readonly topUpId: string;
  readonly step: TopUpStep;
}

/** An intent after a step. */
export interface TopUpWorkAnswer {
  readonly intent: TopUpIntent;
  /** The canonical user's id. */
  readonly userId: string;
  /** The balance of a `paid` that was granted now; null for none. */
  readonly balanceId: string | null;
  /** Why a payment is not for this intent; null where it is. */
  readonly mismatch: string | null;
}

const HOUR_MS = 3_600_000;
/** The wait after the first and the second failure; the third disables. */
const WAITS_MS: readonly Millis[] = [HOUR_MS, 24 * HOUR_MS];

/** Decides a step of an intent, and answers with the intent after it. */
export function topUpWork(draft: Draft, input: TopUpWorkInput, context: Context): Result<TopUpWorkAnswer> {
  const before = draft.topUp(input.topUpId);
  if (before === undefined) return refused(refusal("not_found", "Top-up not found"));
  const { step } = input;
  let balanceId: string | null = null;
  let mismatch: string | null = null;
  if (step.kind === "paid" || step.kind === "match") {
    mismatch = mismatchOf(before, step);
    const isToPay = step.kind === "paid" && mismatch === null && before.status !== "paid";
    if (isToPay) balanceId = pay(draft, before, step, context);
  } else if (isUnderWay(before)) advance(draft, before, step as AdvanceStep, context);
  const intent = draft.topUp(before.id) as TopUpIntent;
  return answered({ intent, userId: draft.user.id, balanceId, mismatch });
}

type AdvanceStep = Exclude<TopUpStep, { readonly kind: "paid" | "match" }>;

function advance(
  draft: Draft,
  row: TopUpIntent,
  step: AdvanceStep,
  context: Context,
): void {
  switch (step.kind) {
    case "attempt":
      if (row.paymentIntentId !== null) return;
      // One that was created and not stored is never confirmed, so it takes no money.
      if (row.isCalledOff) return end(draft, row, null, context);
      // Another process may have begun the next one already.
      if (row.attempt > 0 && row.attempt !== step.over) return;
      return draft.putTopUp({ ...row, attempt: row.attempt + 1, attemptedAt: step.realNow });
    case "created":
      if (row.paymentIntentId === null) draft.putTopUp({ ...row, paymentIntentId: step.paymentIntentId });
      return;
    case "confirming":
      if (row.paymentIntentId === null || row.isCalledOff || row.isConfirmed) return;
      return draft.putTopUp({ ...row, isConfirmed: true });
    case "processing":
      if (row.status !== "processing") draft.putTopUp({ ...row, status: "processing" });
      return;
    case "ended":
      if (step.paymentIntentId === row.paymentIntentId) end(draft, row, step.reason, context);
      return;
    case "read":
      return;
  }
}

/** Calls an intent off, unless a confirmation may have been sent. */
export function cancelTopUp(draft: Draft, row: TopUpIntent, context: Context): void {
  if (row.isConfirmed || row.isCalledOff) return;
  const off = { ...row, isCalledOff: true };
  if (row.attempt === 0) end(draft, off, null, context);
  else draft.putTopUp(off);
}

/** Settles an intent without a payment. */
function end(draft: Draft, row: TopUpIntent, reason: string | null, context: Context): void {
  const isOff = row.isCalledOff;
  const ended = settled(row, isOff ? "canceled" : "failed", isOff ? null : reason, context);
  draft.putTopUp(ended);
  const topUp = withSpent(draft.user.topUp as TopUp, row.month, row.currency, -row.amount);
  draft.putUser({ topUp: isOff || topUp.setting === null ? topUp : failed(topUp, row, context) });
  if (!isOff) draft.recordMessage("topup.failed", context.now, topUpData(draft.user.id, ended));
}

function failed(topUp: TopUp, { paymentMethodId }: TopUpIntent, { now }: Context): TopUp {
  const failures = topUp.failures + 1;
  const wait = WAITS_MS[failures - 1];
  // The wait is about the payment method that failed: the setting may have another one by now.
  const isPresent = topUp.setting?.paymentMethodId === paymentMethodId;
  return {
    ...topUp,
    failures,
    nextTryAt: wait === undefined || !isPresent ? null : now + wait,
    failedMethodId: isPresent ? paymentMethodId : null,
    stopped: wait === undefined ? "failures" : topUp.stopped,
  };
}

/** Settles a payment with its grant, whatever happened to the intent before. */
function pay(
  draft: Draft,
  row: TopUpIntent,
  { paymentIntentId, revokedFor = null }: TopUpPayment,
  context: Context,
): string {
  const paid = { ...settled(row, "paid", null, context), paymentIntentId, isConfirmed: true };
  draft.putTopUp(paid);
  const topUp = draft.user.topUp as TopUp;
  const counted = isUnderWay(row) ? topUp : withSpent(topUp, row.month, row.currency, row.amount);
  draft.putUser({ topUp: { ...counted, failures: 0, nextTryAt: null, failedMethodId: null } });
  const { packName, packItemId, kind, unit, matches, priority, units, expiryDays } = row.terms;
  draft.recordMessage("topup.paid", context.now, topUpData(draft.user.id, paid));
  const balance = issueBalance(draft, {
    packId: row.packId,
    ...{ packName, packItemId, kind, unit, matches, priority },
    initial: units,
    expiresAt: defaultExpiry(expiryDays, context.now),
    externalRef: null,
    source: "purchase",
    notes: null,
    origin: "topup",
    ownRef: row.id,
    included: null,
  }, context);
  if (revokedFor !== null) endBalance(draft, balance, revokedFor, context);
  return balance.id;
}

function settled(
  row: TopUpIntent,
  status: TopUpStatus,
  reason: string | null,
  { now }: Context,
): TopUpIntent {
  return { ...row, status, reason, settledAt: now };
}

/** Why a payment is not for an intent, or a second one for it; null where it is. */
function mismatchOf(row: TopUpIntent, step: TopUpPayment): string | null {
  if (step.amount < row.amount || step.currency !== row.currency) {
    return "the payment is not the amount of its top-up";
  }
  return row.status === "paid" && row.paymentIntentId !== step.paymentIntentId
    ? `the top-up is paid already, by ${row.paymentIntentId}`
    : null;
}
