// The commands that only read: a user's usage, and the user as one record. An unknown user has empty values.

import type { UserKey } from "./values/ids.ts";
import type { Millis, Window } from "./values/period.ts";
import type { CounterReading } from "./state/counter.ts";
import type { Alias } from "./state/user.ts";
import type { Context } from "./state/context.ts";
import { type CreditsAnswer, readCredits } from "./credits/balances.ts";
import type { Draft } from "./state/draft.ts";
import { patternCovers } from "./values/match.ts";
import { activePlanOf, type Duplicates, duplicatesOf } from "./plans/entitlement.ts";
import { quotaOf, type Subscription } from "./state/subscription.ts";
import { answered, type Result } from "./state/result.ts";

export interface UsageInput {
  /** Lists only groups with rules that cover this name or pattern; null for all. */
  readonly event: string | null;
}

export interface UsageAnswer {
  /** The canonical user's. */
  readonly userId: string;
  readonly userKey: UserKey;
  /** Whether the user has a row. Until a row is stored, the key can change between reads. */
  readonly isRecorded: boolean;
  /** The active plan's running window; null without a plan. */
  readonly period: Window | null;
  readonly counters: readonly CounterReading[];
  /** Active and depleted balances. */
  readonly credits: CreditsAnswer;
  readonly duplicates: Duplicates | null;
  /** When time alone will change this answer; null for never. */
  readonly changesAt: Millis | null;
}

/** Usage, aliases and the primary subscription. */
export interface UserAnswer extends UsageAnswer {
  readonly aliases: readonly Alias[];
  readonly subscription: Subscription | null;
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
  });
}

function readUsage(draft: Draft, input: UsageInput, context: Context): UsageAnswer {
  const active = activePlanOf(draft, context);
  const { event } = input;
  const groups = (active?.plan.groups ?? []).filter((group) =>
    event === null || group.matches.some((rule) => patternCovers(rule.event, event))
  );
  const counters = active === null ? [] : groups.map((group) => ({
    group,
    quota: quotaOf(active.row, group),
    counter: draft.counter({ planId: active.plan.id, groupId: group.id, window: active.window }),
  }));
  const credits = readCredits(draft, event, context);
  const period = active?.window ?? null;
  return {
    userId: draft.user.id,
    userKey: draft.user.key,
    isRecorded: draft.state.recorded,
    period,
    counters,
    credits,
    duplicates: duplicatesOf(draft, context),
    changesAt: changesAt(draft, period, credits),
  };
}

/** The first of: the end of the window, a hold's expiry, a subscription's end, a balance's expiry. */
function changesAt(draft: Draft, period: Window | null, { balances }: CreditsAnswer): Millis | null {
  let next = Math.min(period?.end ?? Infinity, draft.nextDue() ?? Infinity);
  for (const { row } of balances) next = Math.min(next, row.expiresAt ?? Infinity);
  return next === Infinity ? null : next;
}
