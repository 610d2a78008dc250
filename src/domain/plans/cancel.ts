// Cancel: end a subscription now or at a later moment. A scheduled end can be moved; a subscription that has ended is
// refused with `already_canceled`.

import type { Millis } from "../values/period.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import { cutCharacters, REASON_LENGTH_MAX } from "../values/texts.ts";
import { invalidField, type Refusal, refusal } from "../values/refusal.ts";
import { answered, refused, type Result } from "../state/result.ts";
import { refreshEntitlement } from "./entitlement.ts";
import type { SubscriptionAnswer } from "./subscribe.ts";
import {
  activeRows,
  endedAt,
  findRow,
  historyRow,
  isActive,
  type Subscription,
} from "../state/subscription.ts";

/** The input of `DELETE /v1/subscriptions`. */
export interface CancelInput {
  /** Names the row together with `externalId`; both are null for the default row, else the only active row. */
  readonly provider: string | null;
  readonly externalId: string | null;
  /** Its end; null for now. */
  readonly endsAt: Millis | null;
  /** Uncut; for the history. */
  readonly reason: string | null;
}

/** Decides a cancel: an immediate one writes only `canceled`, a scheduled one also `ended` when its time comes. */
export function cancel(draft: Draft, input: CancelInput, context: Context): Result<SubscriptionAnswer> {
  const { now } = context;
  if (input.endsAt !== null && input.endsAt < now) {
    return refused(invalidField("endsAt", "must not be in the past"));
  }
  const found = rowToCancel(draft, input, context);
  if ("code" in found) return refused(found);
  if (!isActive(found, now)) {
    return refused(refusal("already_canceled", "The subscription has already ended"));
  }
  const endsAt = input.endsAt ?? now;
  const row = endedAt(found, endsAt, now);
  draft.putSubscription(row);
  draft.appendSubscriptionEvent(
    historyRow(row, "canceled", context, cutCharacters(input.reason, REASON_LENGTH_MAX)),
  );
  if (row.ended) refreshEntitlement(draft, context, now, row.id);
  return answered({ userId: draft.user.id, row });
}

/** Finds the row to cancel: by its ids; without ids the default row, else the only active one of a plan, else of an add-on. */
export function rowToCancel(
  draft: Draft,
  input: Pick<CancelInput, "provider" | "externalId">,
  context: Context,
): Subscription | Refusal {
  const row = findRow(draft.subscriptions(), input, context);
  if (row !== null) return row;
  const none = refusal("not_found", "Subscription not found");
  if (input.provider !== null) return none;
  // With a plan and add-ons in force, the plan's row is meant.
  const plans = activeRows(draft.subscriptions(), context.catalog, context.now);
  const active = plans.length > 0
    ? plans
    : [...draft.subscriptions()].filter((row) => isActive(row, context.now));
  if (active.length > 1) {
    return invalidField(
      "provider",
      "is required with externalId, because the user has several active subscriptions",
    );
  }
  if (active[0] !== undefined) return active[0];
  const [last] = [...draft.subscriptions()];
  return last ?? none;
}
