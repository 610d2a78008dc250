// Usage, the user's view, subscriptions and plans. Section 4 of the decisions.

import { z } from "zod";
import type { UserAnswer } from "../src/domain/usage.ts";
import { REQUEST_LIMITS } from "../src/process/limits.ts";
import { listPlans } from "../src/read/plans.ts";
import { listSubscriptionHistory } from "../src/read/subscription_history.ts";
import { requireSameUser } from "./auth.ts";
import { Refused } from "./errors.ts";
import { type Endpoint, endpoint, runTurn, success, wireAnswer } from "./endpoint.ts";
import { usageAnswer, usageMeAnswer, userAnswer } from "./schemas/answers.ts";
import { endUserId, eventPattern } from "./schemas/fields.ts";
import { plan } from "./schemas/records.ts";
import { showDuplicates, showSubscription, showUsage } from "./wire.ts";

/** `GET /v1/usage`: the counters of the primary plan. */
const usage = endpoint({
  method: "GET",
  path: "/v1/usage",
  access: "end_user",
  input: z.object({ userId: endUserId.optional(), event: eventPattern.optional() }),
  doc: {
    id: "getUsage",
    tag: "Usage",
    summary: "The counters of a user's running window",
    description:
      "Every limit group of the primary plan, or those whose rules cover event. With a public key userId " +
      "may be left out: the token's user.",
    answer: usageAnswer,
    errors: [],
  },
  handle: (request) => {
    const { serving, caller, input, endUser } = request;
    const userId = input.userId ?? endUser?.userId;
    if (userId === undefined) throw new Refused("invalid_request", "userId: is needed");
    const call = { name: "usage", input: { event: input.event ?? null } } as const;
    if (endUser === null) return runTurn(request, { userId }, call, (answer) => showUsage(answer, true));
    return requireSameUser(serving.term, caller.realm, endUser, userId)
      .then(() => runTurn(request, { userId }, call, (answer) => showUsage(answer, false)));
  },
});

/** `GET /v1/usage/me`: the counters of the token's user, never with duplicates. */
const usageMe = endpoint({
  method: "GET",
  path: "/v1/usage/me",
  access: "token",
  input: z.object({ event: eventPattern.optional() }),
  doc: {
    id: "getMyUsage",
    tag: "Usage",
    summary: "The counters of the token's user",
    answer: usageMeAnswer,
    errors: [],
  },
  handle: (request) => {
    const { userId } = request.endUser as { userId: string };
    const call = { name: "usage", input: { event: request.input.event ?? null } } as const;
    return runTurn(request, { userId }, call, (answer) => showUsage(answer, false));
  },
});

/** `GET /v1/users/{userId}`: everything about a user; unknown users answer with empty values. */
const user = endpoint({
  method: "GET",
  path: "/v1/users/:userId",
  access: "secret",
  input: z.object({ userId: endUserId }),
  doc: {
    id: "getUser",
    tag: "Usage",
    summary: "Everything about a user",
    description:
      "Subscription with its history, counters, credits and aliases. An unknown user answers with empty " +
      "values.",
    answer: userAnswer,
    errors: [],
  },
  handle: async ({ serving, caller, input }) => {
    const call = { realm: caller.realm, name: "user", input: {} } as const;
    const result = await serving.term.directory.runById(input.userId, call);
    if (!result.ok) return wireAnswer(result, () => null);
    await serving.term.flush();
    const { userKey } = result.answer;
    const history = await listSubscriptionHistory(serving.database, userKey, REQUEST_LIMITS.historyRowsMax);
    return success(showUser(result.answer, history));
  },
});

/** `GET /v1/plans`: the plans on offer, oldest first. */
const plans = endpoint({
  method: "GET",
  path: "/v1/plans",
  access: "any",
  input: z.object({}),
  doc: {
    id: "listPlans",
    tag: "Usage",
    summary: "The plans on offer, oldest first",
    description: "Live and test mode share them.",
    answer: z.array(plan),
    errors: [],
  },
  handle: ({ caller }) => Promise.resolve(success(listPlans(caller.app))),
});

export const USERS: readonly Endpoint<unknown>[] = [usage, usageMe, user, plans];

function showUser(answer: UserAnswer, history: unknown) {
  const { userId, aliases, subscription } = answer;
  const { period, counters, credits } = showUsage(answer, false);
  return {
    userId,
    aliases: aliases.map(({ id }) => id),
    subscription: subscription === null ? null : showSubscription(userId, subscription),
    history,
    period,
    counters,
    credits,
    duplicateActiveSubscriptions: showDuplicates(answer.duplicates),
  };
}
