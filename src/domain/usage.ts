// Usage and the user's view: pure reads of what decisions go by. Section 4 of the decisions, "GET /v1/usage" and
// "GET /v1/users/{userId}".

import type { Context, Result, UsageAnswer, UsageInput, UserAnswer } from "domain/command.ts";
import { answered } from "domain/command.ts";
import type { Draft } from "domain/draft.ts";
import { patternCovers } from "domain/match.ts";
import { duplicatesOf, standingOf } from "domain/standing.ts";
import { quotaOf } from "domain/subscription.ts";

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
    duplicates: duplicatesOf(draft, context),
  };
}
