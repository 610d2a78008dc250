// Mirror: copies the state of a payment provider's subscription into its row. The provider has decided, so times in the
// past are taken unchanged, and an archived plan is given to a user who pays for it. The same state again changes nothing.

import type { Plan } from "../catalog/plan.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import { refusal } from "../values/refusal.ts";
import { answered, refused, type Result } from "../state/result.ts";
import type { Millis } from "../values/period.ts";
import { refreshEntitlement } from "./entitlement.ts";
import { createRow, updateRow } from "./subscribe.ts";
import { endedAt, findRow, historyRow, isActive, type Subscription } from "../state/subscription.ts";

/** A subscription at its provider. */
export interface MirrorInput {
  readonly provider: string;
  readonly externalId: string;
  readonly state: InForce | Over;
}

/** The subscription entitles to a plan. */
export interface InForce {
  readonly planId: string;
  /** The start of a new row; null, or a time in the future, for now. */
  readonly startsAt: Millis | null;
  /** Its end; null for none. */
  readonly endsAt: Millis | null;
  /** Seats; undefined keeps those of the row, but for those of a plan by the seat that is left for another one. */
  readonly quantity: number | undefined;
  /** When its trial at the provider ends; absent for no trial. */
  readonly trialEndsAt?: Millis;
}

/** The subscription no longer entitles to anything. */
export interface Over {
  /** When it ended; null for now. */
  readonly endedAt: Millis | null;
  /** For the history. */
  readonly reason: string | null;
}

export interface MirrorAnswer {
  /** The canonical user's. */
  readonly userId: string;
  /** Null if the subscription is over and this user never had it. */
  readonly row: Subscription | null;
}

/** Decides the new state of the row. */
export function mirror(draft: Draft, input: MirrorInput, context: Context): Result<MirrorAnswer> {
  const before = findRow(draft.subscriptions(), input, context);
  const { state } = input;
  if (!("planId" in state)) {
    return shown(draft, before === null ? null : end(draft, before, state, context));
  }
  const plan = context.catalog.plans.get(state.planId);
  if (plan === undefined) return refused(refusal("not_found", `Plan not found: ${state.planId}`));
  const { startsAt } = state;
  const quantity = state.quantity ?? seatsAfter(before, plan, context);
  const trialEndsAt = (state.trialEndsAt ?? 0) > context.now ? state.trialEndsAt ?? null : null;
  const { provider, externalId } = input;
  const endsAt = before === null ? state.endsAt : endFrom(before.startedAt, state.endsAt);
  const kept = {
    provider,
    externalId,
    endsAt,
    customLimits: undefined,
    customFeatures: undefined,
    cycleStart: undefined,
    quantity,
    trial: undefined,
    providerTrialEndsAt: trialEndsAt,
  };
  if (before === null) {
    const starts = Math.min(startsAt ?? context.now, context.now);
    const row = createRow(
      draft,
      { ...kept, startsAt: starts, endsAt: endFrom(starts, endsAt) },
      plan,
      context,
    );
    return put(draft, row, context);
  }
  // An end in the past that this service did not know of.
  if (endsAt !== null && endsAt <= context.now) {
    return shown(draft, end(draft, before, { endedAt: endsAt, reason: null }, context));
  }
  const isSame = isActive(before, context.now) && before.planId === plan.id && before.endsAt === endsAt &&
    before.quantity === (quantity ?? before.quantity) && before.providerTrialEndsAt === trialEndsAt;
  if (isSame) return shown(draft, before);
  const row = updateRow(draft, { ...kept, startsAt: null }, plan, before, context);
  if (endsAt !== null && endsAt !== before.endsAt) {
    draft.appendSubscriptionEvent(historyRow(row, "canceled", context));
  }
  return put(draft, row, context);
}

/** The seats of a plan that is not sold by the seat, after one that is: the provider's quantity was of that one. */
function seatsAfter(before: Subscription | null, plan: Plan, { catalog }: Context): 1 | undefined {
  const left = before === null ? undefined : catalog.plans.get(before.planId);
  return left?.perSeat === true && !plan.perSeat ? 1 : undefined;
}

/** Moves an end that is before its start to the start. */
function endFrom(start: Millis, end: Millis | null): Millis | null {
  return end === null ? null : Math.max(start, end);
}

function put(draft: Draft, row: Subscription, context: Context): Result<MirrorAnswer> {
  draft.putSubscription(row);
  refreshEntitlement(draft, context, context.now);
  return shown(draft, row);
}

/** Ends an active row, never before its start; leaves a row that has ended unchanged. */
function end(draft: Draft, before: Subscription, over: Over, context: Context): Subscription {
  const { now } = context;
  if (!isActive(before, now)) return before;
  const endsAt = Math.max(over.endedAt ?? now, before.startedAt);
  if (endsAt === before.endsAt) return before;
  const row = endedAt(before, endsAt, now);
  draft.putSubscription(row);
  draft.appendSubscriptionEvent(historyRow(row, "canceled", context, over.reason));
  if (row.ended) refreshEntitlement(draft, context, now, row.id);
  return row;
}

function shown(draft: Draft, row: Subscription | null): Result<MirrorAnswer> {
  return answered({ userId: draft.user.id, row });
}
