// The commands that only read: a user's usage, and the user as one record. An unknown user has empty values.

import type { UserKey } from "./values/ids.ts";
import { isOfGuard, type Millis, type Window } from "./values/period.ts";
import { isGuard, type LimitGroup } from "./catalog/plan.ts";
import type { ShareRef } from "./state/share.ts";
import type { Counter, CounterReading } from "./state/counter.ts";
import type { Alias, MemberLimits } from "./state/user.ts";
import type { SpendCaps } from "./state/overage.ts";
import type { Context } from "./state/context.ts";
import { readShare, shareRef } from "./accounts/shares.ts";
import { type CreditsAnswer, readCredits } from "./credits/balances.ts";
import type { Draft } from "./state/draft.ts";
import { overageMaxOf } from "./metering/overage.ts";
import { patternCovers } from "./values/match.ts";
import { type ActivePlan, activePlanOf, type Duplicates, duplicatesOf } from "./plans/entitlement.ts";
import { counterIn, countingSlots, windowFor } from "./plans/windows.ts";
import { type Features, featuresOf } from "./plans/features.ts";
import { addOnsOf, nextDueOf, quotaOf, type Subscription } from "./state/subscription.ts";
import { answered, type Result } from "./state/result.ts";

export interface UsageInput {
  /** Lists only groups with rules that cover this name or pattern; null for all. */
  readonly event: string | null;
  /** Whether to list the users above too. */
  readonly withLevels?: boolean;
}

/** The counters of one user of a path. */
export interface LevelUsage {
  readonly userId: string;
  /** The active plan's running window; null without a plan. */
  readonly period: Window | null;
  readonly counters: readonly CounterReading[];
}

export interface UsageAnswer extends LevelUsage {
  readonly userKey: UserKey;
  /** Whether the user has a row. Until a row is stored, the key can change between reads. */
  readonly isRecorded: boolean;
  /** The users above, nearest first; null where they were not asked for. */
  readonly levels: readonly LevelUsage[] | null;
  /** Active and depleted balances. */
  readonly credits: CreditsAnswer;
  readonly duplicates: Duplicates | null;
  /** Features in force; null for a catalog without features. */
  readonly features: Features | null;
  /** The ids of the users above, whose subscriptions give features too; empty for a catalog without features. */
  readonly dependsOn: readonly string[];
  /** When time alone will change this answer; null for never. It does not regard slots of rates. */
  readonly changesAt: Millis | null;
  /** The slots of rates that count now; `NO_SLOTS` without rates. */
  readonly slots: readonly Counter[];
}

/** The slots where a plan has no rates. */
export const NO_SLOTS: readonly Counter[] = [];

/** Usage, aliases, the primary subscription and add-ons. */
export interface UserAnswer extends UsageAnswer {
  readonly aliases: readonly Alias[];
  readonly subscription: Subscription | null;
  /** The rows of add-ons in force, by id; null for a catalog without add-ons. */
  readonly addOns: readonly Subscription[] | null;
  /** The user directly above; null for none. */
  readonly parentId: string | null;
  /** The ids of the path, the user first. */
  readonly path: readonly string[];
  /** What the user may use of limit groups of the users above; null where none is set for it. */
  readonly memberLimits: MemberLimits | null;
  /** Its own caps on what groups sell past their quotas; null for none. */
  readonly spendCaps: SpendCaps | null;
}

/** Reads the counter of every group of the active plan, or of those that cover an event's name. */
export function usage(draft: Draft, input: UsageInput, context: Context): Result<UsageAnswer> {
  return answered(readUsage(draft, input, context));
}

/** Reads the user as one record: subscription, usage, aliases and duplicates. */
export function user(draft: Draft, _input: Record<never, never>, context: Context): Result<UserAnswer> {
  return answered({
    ...readUsage(draft, { event: null }, context),
    aliases: draft.state.aliases,
    subscription: activePlanOf(draft, context)?.row ?? null,
    addOns: addOnRows(draft, context),
    parentId: draft.above[0]?.user.id ?? null,
    path: [draft.user.id, ...draft.above.map((level) => level.user.id)],
    memberLimits: draft.above.length === 0 ? null : draft.user.memberLimits,
    spendCaps: draft.user.spendCaps,
  });
}

function addOnRows(draft: Draft, { catalog, now }: Context): readonly Subscription[] | null {
  return catalog.hasAddOns ? addOnsOf(draft.subscriptions(), catalog, now).map(({ row }) => row) : null;
}

function readUsage(draft: Draft, input: UsageInput, context: Context): UsageAnswer {
  const level = readLevel(draft, input, context);
  const credits = readCredits(draft, input.event, context);
  const above = input.withLevels === true ? draft.above : null;
  const features = featuresOf(draft, context);
  const givers = features === null ? NO_DRAFTS : draft.above;
  return {
    ...level,
    userKey: draft.user.key,
    isRecorded: draft.state.recorded,
    levels: above?.map((each) => withShares(draft, each, readLevel(each, input, context))) ?? null,
    credits,
    duplicates: duplicatesOf(draft, context),
    features,
    dependsOn: givers.map((each) => each.user.id),
    changesAt: changesAt(draft, level, credits, givers),
    slots: slotsOf(draft, level, context.now),
  };
}

const NO_OVERAGE = {};
const NO_DRAFTS: readonly Draft[] = [];
function slotsOf(draft: Draft, { counters }: LevelUsage, now: Millis): readonly Counter[] {
  const rates = counters.filter(({ window }) => window.kind === "rate");
  if (rates.length === 0) return NO_SLOTS;
  return rates.flatMap(({ group, counter, window }) =>
    countingSlots(draft, counter.planId, group.id, window, now)
  );
}

function readLevel(draft: Draft, { event }: UsageInput, context: Context): LevelUsage {
  const active = activePlanOf(draft, context);
  const groups = (active?.plan.groups ?? []).filter((group) =>
    event === null || group.matches.some((rule) => patternCovers(rule.event, event))
  );
  const counters = active === null ? [] : groups.map((group) => ({
    group,
    quota: quotaOf(active, group),
    ...countIn(draft, active, group, context.now),
    ...group.overage === null ? NO_OVERAGE : { overageMax: overageMaxOf(draft.user, group) ?? null },
  }));
  return { userId: draft.user.id, period: active?.window ?? null, counters };
}

function countIn(draft: Draft, active: ActivePlan, group: LimitGroup, now: Millis) {
  const window = windowFor(draft, active, group, now);
  return { window, counter: counterIn(draft, active.plan.id, group.id, window, now) };
}

/** The input of a list of members. */
export interface MembersInput {
  readonly groupId: string;
}

/** Whose shares a list of members has. */
export interface MembersAnswer {
  readonly keys: readonly UserKey[];
  /** The group of the plan in force, with the share of each number of the user; null where the plan lacks it. */
  readonly shared: { readonly group: LimitGroup; readonly shares: readonly ShareRef[] } | null;
}

/** Finds the shares that count of a group of the user's plan in force. */
export function members(draft: Draft, { groupId }: MembersInput, context: Context): Result<MembersAnswer> {
  const { user: { shareResets }, state: { keys } } = draft;
  const active = activePlanOf(draft, context);
  const group = active?.plan.groups.find(({ id }) => id === groupId);
  if (active === null || group === undefined || isGuard(group)) return answered({ keys, shared: null });
  const window = windowFor(draft, active, group, context.now);
  const line = { groupId, unit: group.unit, window };
  return answered({
    keys,
    shared: { group, shares: keys.map((key) => shareRef({ shareResets }, key, line)) },
  });
}

/** Adds the user's own shares to the counters of a user above. */
function withShares(draft: Draft, account: Draft, { userId, period, counters }: LevelUsage): LevelUsage {
  if (period === null) return { userId, period, counters };
  const read = (reading: CounterReading) => ({
    ...reading,
    member: readShare(draft, account, reading),
  });
  return { userId, period, counters: counters.map(read) };
}

/**
 * The first of: the end of a window, a hold's expiry, a subscription's end, a balance's expiry. Slots of rates pass.
 *
 * @param givers the users above whose subscriptions give features
 */
function changesAt(
  draft: Draft,
  { period, counters }: LevelUsage,
  { balances }: CreditsAnswer,
  givers: readonly Draft[],
): Millis | null {
  let next = Math.min(period?.end ?? Infinity, draft.nextDue() ?? Infinity);
  for (const { window } of counters) {
    if (!isOfGuard(window) && window.isNext !== true) next = Math.min(next, window.end ?? Infinity);
  }
  for (const { row } of balances) next = Math.min(next, row.expiresAt ?? Infinity);
  for (const giver of givers) {
    for (const row of giver.subscriptions()) next = Math.min(next, nextDueOf(row));
  }
  return next === Infinity ? null : next;
}
