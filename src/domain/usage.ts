// Usage and the user's view: pure reads of what decisions go by. Section 4 of the decisions, "GET /v1/usage" and
// "GET /v1/users/{userId}".

import type {
  Context,
  CreditsAnswer,
  CreditsInput,
  Result,
  UsageAnswer,
  UsageInput,
  UserAnswer,
} from "./command.ts";
import { answered } from "./command.ts";
import { type CreditBalance, listBalances, packNameOf } from "./credits/credit.ts";
import type { Draft } from "./draft.ts";
import { patternCovers } from "./match.ts";
import { duplicatesOf, standingOf } from "./plans/standing.ts";
import { quotaOf } from "./plans/subscription.ts";

/** Every group of the primary plan with its counter, or those that cover an event's name. */
export function usage(draft: Draft, input: UsageInput, context: Context): Result<UsageAnswer> {
  return answered(readUsage(draft, input, context));
}

/** The user as one record: subscription, usage, aliases and duplicates. */
export function user(draft: Draft, _input: Record<never, never>, context: Context): Result<UserAnswer> {
  return answered({
    ...readUsage(draft, { event: null }, context),
    userKey: draft.user.key,
    aliases: draft.state.aliases,
    subscription: standingOf(draft, context)?.row ?? null,
  });
}

/** The balances that cover an event's name, or all: active and depleted ones, in consumption order. */
export function credits(draft: Draft, input: CreditsInput, context: Context): Result<CreditsAnswer> {
  return answered(readCredits(draft, input.event, context));
}

/** Balances as answers show them. */
export function showBalances(
  draft: Draft,
  rows: readonly CreditBalance[],
  { catalog, now }: Context,
): CreditsAnswer {
  const balances = rows.map((row) => ({ row, packName: packNameOf(catalog, row) }));
  return { userKey: draft.user.key, balances, now };
}

function readCredits(draft: Draft, event: string | null, context: Context): CreditsAnswer {
  const rows = listBalances(draft.balancesInOrder(), { event, includeExpired: false }, context.now);
  return showBalances(draft, rows, context);
}

function readUsage(draft: Draft, input: UsageInput, context: Context): UsageAnswer {
  const standing = standingOf(draft, context);
  const { event } = input;
  const groups = (standing?.plan.groups ?? []).filter((group) =>
    event === null || group.matches.some((rule) => patternCovers(rule.event, event))
  );
  const counters = standing === null ? [] : groups.map((group) => ({
    group,
    quota: quotaOf(standing.row, group),
    counter: draft.counter({ planId: standing.plan.id, groupId: group.id, window: standing.window }),
  }));
  return {
    userId: draft.user.id,
    period: standing?.window ?? null,
    counters,
    credits: readCredits(draft, event, context),
    duplicates: duplicatesOf(draft, context),
  };
}
