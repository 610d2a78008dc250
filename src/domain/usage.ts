// The commands that only read: a user's usage, and the user as one record. Section 4 of the decisions, "GET /v1/usage"
// and "GET /v1/users/{userId}".

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
  /** Narrows to the groups whose rules cover this name or glob; null for all. */
  readonly event: string | null;
}

export interface UsageAnswer {
  /** The canonical user's. */
  readonly userId: string;
  readonly userKey: UserKey;
  /** Whether anything of the user is stored; the key of a user of whom nothing is may be another one at the next read. */
  readonly isRecorded: boolean;
  /** The primary plan's running window; null without a plan. */
  readonly period: Window | null;
  readonly counters: readonly CounterReading[];
  /** Active and depleted balances. */
  readonly credits: CreditsAnswer;
  readonly duplicates: Duplicates | null;
  /** When time alone changes this answer, if nothing else does before; null for never. */
  readonly changesAt: Millis | null;
}

/** Usage, with what else is known of the user. */
export interface UserAnswer extends UsageAnswer {
  readonly aliases: readonly Alias[];
  readonly subscription: Subscription | null;
}

/** Every group of the primary plan with its counter, or those that cover an event's name. */
export function usage(draft: Draft, input: UsageInput, context: Context): Result<UsageAnswer> {
  return answered(readUsage(draft, input, context));
}

/** The user as one record: subscription, usage, aliases and duplicates. */
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

/** The end of the window, the next hold that lapses or subscription that ends, or the expiry of a balance. */
function changesAt(draft: Draft, period: Window | null, { balances }: CreditsAnswer): Millis | null {
  let next = Math.min(period?.end ?? Infinity, draft.nextDue() ?? Infinity);
  for (const { row } of balances) next = Math.min(next, row.expiresAt ?? Infinity);
  return next === Infinity ? null : next;
}
