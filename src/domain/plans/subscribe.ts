// Subscribe: write the subscription row of a user, by (provider, external id), or the default row without both. The same
// plan again changes neither start, anchor nor counters. Another plan keeps the start and clears custom limits and
// features. A call without `endsAt` clears an end, so that a canceled subscription comes back, with the usage it had.

import type { Millis } from "../values/period.ts";
import type { Amount } from "../values/amount.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import { invalidField, type Refusal, refusal } from "../values/refusal.ts";
import { answered, refused, type Result } from "../state/result.ts";
import { findPlan } from "../catalog/catalog.ts";
import type { FeatureValues } from "../catalog/feature.ts";
import type { Plan } from "../catalog/plan.ts";
import { refreshEntitlement } from "./entitlement.ts";
import { customFault, featuresOf } from "./features.ts";
import { findRow, historyRow, isActive, onPlan, type Subscription } from "../state/subscription.ts";

/** The input of `POST /v1/subscriptions`. */
export interface SubscribeInput {
  /** A plan's id or name. */
  readonly plan: string;
  /** The key of the row together with `externalId`; both are null for the default row. */
  readonly provider: string | null;
  readonly externalId: string | null;
  /** Quotas by group id; undefined keeps those of the row, null or an empty object clears them. */
  readonly customLimits: Readonly<Record<string, Amount>> | null | undefined;
  /** Features by key; undefined keeps those of the row, null or an empty object clears them. */
  readonly customFeatures: FeatureValues | null | undefined;
  /** The start of a new row, ignored otherwise; null for now. */
  readonly startsAt: Millis | null;
  /** null for no end; clears an earlier one. */
  readonly endsAt: Millis | null;
  /** The anchor of its windows: undefined keeps it, null returns to the start. Ignored by calendar periods. */
  readonly cycleStart: Millis | null | undefined;
  /** Seats; undefined keeps those of the row. A new row has 1. */
  readonly quantity: number | undefined;
  /** When its trial at the payment provider ends; null for no trial, absent keeps it. */
  readonly providerTrialEndsAt?: Millis | null;
  /** Whether the plan is on trial: true begins its trial, false ends a running one, undefined keeps it. */
  readonly trial: boolean | undefined;
}

export interface SubscriptionAnswer {
  /** The canonical user's. */
  readonly userId: string;
  readonly row: Subscription;
}

/** Decides an upsert: a new row, the same plan again, or another plan on the same row. */
export function subscribe(
  draft: Draft,
  input: SubscribeInput,
  context: Context,
): Result<SubscriptionAnswer> {
  const before = findRow(draft.subscriptions(), input, context);
  const plan = findPlan(context.catalog, input.plan);
  const fault = checkInput(input, plan, before, context) ??
    (input.trial === true ? checkTrial(draft, plan as Plan, before, context) : null);
  if (fault !== null) return refused(fault);
  const row = before === null
    ? createRow(draft, input, plan as Plan, context)
    : updateRow(draft, input, plan as Plan, before, context);
  draft.putSubscription(row);
  refreshEntitlement(draft, context, context.now);
  return answered({ userId: draft.user.id, row });
}

/** The earliest start or anchor: an earlier one is nearly always a language's empty value, sent by mistake. */
const EPOCH_MS: Millis = 0;

/** An add-on has ids of a provider: a user may have any number. */
export const NEEDS_IDS = "is required with externalId, because the plan is an add-on";

function checkInput(
  input: SubscribeInput,
  plan: Plan | null,
  before: Subscription | null,
  { now, catalog }: Context,
): Refusal | null {
  const { startsAt, endsAt, cycleStart, customLimits } = input;
  for (const [path, at] of Object.entries({ startsAt, cycleStart })) {
    if (typeof at === "number" && at < EPOCH_MS) return invalidField(path, "must not be before 1970-01-01");
  }
  if (startsAt !== null && startsAt > now) return invalidField("startsAt", "must not be in the future");
  if (endsAt !== null && endsAt <= now) return invalidField("endsAt", "must be in the future");
  const isOnPlan = before !== null && isActive(before, now) && before.planId === plan?.id;
  if (plan === null || (plan.archived && !isOnPlan)) {
    return refusal("not_found", `Plan not found: ${input.plan}`);
  }
  if (plan.addon && input.provider === null) return invalidField("provider", NEEDS_IDS);
  for (const groupId of Object.keys(customLimits ?? {})) {
    if (!plan.groups.some((group) => group.id === groupId)) {
      return invalidField(`customLimits.${groupId}`, "not a limit group of the plan");
    }
  }
  return customFault(input.customFeatures ?? {}, catalog);
}

const WITHOUT_TRIAL = "leave trial out to subscribe without one";

/** Refuses a trial that the plan does not have, or that the user had; one that runs may be asked for again. */
function checkTrial(
  draft: Draft,
  plan: Plan,
  before: Subscription | null,
  { now }: Context,
): Refusal | null {
  if (before?.planId === plan.id && before.trial !== null) return null;
  if (plan.trial === null) return invalidField("trial", "the plan has no trial");
  for (const row of draft.subscriptions()) {
    if (row.trials.includes(plan.id)) {
      return refusal("trial_used", `The user had the trial of this plan: ${WITHOUT_TRIAL}`);
    }
    if (row.planId === plan.id && isActive(row, now)) {
      return refusal("trial_used", `The user has this plan without a trial: ${WITHOUT_TRIAL}`);
    }
  }
  return null;
}

/** Puts a row on trial as the input says; a row that is on trial stays so. */
function withTrial(row: Subscription, isOnTrial: boolean | undefined, plan: Plan, now: Millis): Subscription {
  if (isOnTrial === false) return row.trial === null ? row : { ...row, trial: null };
  if (isOnTrial === undefined || row.trial !== null || plan.trial === null) return row;
  const { lengthMs, thenPlanId } = plan.trial;
  return { ...row, trial: { endsAt: now + lengthMs, thenPlanId }, trials: [...row.trials, plan.id] };
}

/** The part of the input that becomes a row. */
type RowInput = Omit<SubscribeInput, "plan">;

/** Makes a new row with its history; the caller puts it. */
export function createRow(draft: Draft, input: RowInput, plan: Plan, context: Context): Subscription {
  const bare: Subscription = {
    id: context.ids.next("subscription"),
    userKey: draft.user.key,
    planId: plan.id,
    provider: input.provider,
    externalId: input.externalId,
    startedAt: input.startsAt ?? context.now,
    endsAt: input.endsAt,
    ended: false,
    cycleAnchorAt: input.cycleStart ?? null,
    customLimits: input.customLimits ?? {},
    customFeatures: input.customFeatures ?? {},
    quantity: input.quantity ?? 1,
    scheduled: null,
    trial: null,
    trials: [],
    firstHeld: {},
    providerTrialEndsAt: input.providerTrialEndsAt ?? null,
    trialCredits: {},
  };
  const row = withTrial(bare, input.trial, plan, context.now);
  draft.appendSubscriptionEvent(historyRow(row, "created", context));
  return row;
}

/**
 * Changes a row and its history; the caller puts it. Start and seats stay, the end is the input's, and another plan clears
 * custom limits and features unless the input has some. Every change drops the one that was asked for ahead.
 */
export function updateRow(
  draft: Draft,
  input: RowInput,
  plan: Plan,
  before: Subscription,
  context: Context,
): Subscription {
  const changesPlan = before.planId !== plan.id;
  const kept = changesPlan ? onPlan(before, plan.id, context.now) : before;
  const bare: Subscription = {
    ...kept,
    endsAt: input.endsAt,
    ended: false,
    cycleAnchorAt: input.cycleStart === undefined ? kept.cycleAnchorAt : input.cycleStart,
    customLimits: input.customLimits === undefined ? kept.customLimits : input.customLimits ?? {},
    customFeatures: input.customFeatures === undefined ? kept.customFeatures : input.customFeatures ?? {},
    quantity: input.quantity ?? kept.quantity,
    providerTrialEndsAt: input.providerTrialEndsAt === undefined
      ? kept.providerTrialEndsAt
      : input.providerTrialEndsAt,
  };
  const row = withTrial(bare, input.trial, plan, context.now);
  const comesBack = !isActive(before, context.now) || (before.endsAt !== null && input.endsAt === null);
  if (comesBack) {
    draft.appendSubscriptionEvent(historyRow({ ...row, planId: before.planId }, "reactivated", context));
  }
  if (changesPlan) {
    // The message has the features after the change.
    draft.putSubscription(row);
    draft.appendSubscriptionEvent({
      ...historyRow(row, "plan_changed", context),
      previousPlanId: before.planId,
    }, featuresOf(draft, context));
  }
  return row.scheduled === null || areSame(row, before) ? row : { ...row, scheduled: null };
}

/** Whether two values say the same, whatever the order of their members. */
function areSame(a: unknown, b: unknown): boolean {
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return a === b;
  const [members, others] = [Object.entries(a), new Map(Object.entries(b))];
  return members.length === others.size && members.every(([name, value]) => areSame(value, others.get(name)));
}
