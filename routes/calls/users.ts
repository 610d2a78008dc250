// Usage, the user's view, subscriptions and plans. Section 4 of the decisions.

import { z } from "zod";
import type { Directory } from "../../actors/directory.ts";
import type { Term } from "../../actors/term.ts";
import type { UserAnswer } from "../../src/domain/usage.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";
import { listPlans } from "../../src/tenant/plans.ts";
import { listSubscriptionHistory } from "../../src/storage/queries/subscription_history.ts";
import { requireSameUser } from "../http/auth.ts";
import { invalidMember } from "../http/errors.ts";
import { answerOf, success } from "../http/answer.ts";
import { endpointsOn } from "../http/endpoint.ts";
import type { Endpoint } from "../http/endpoint_types.ts";
import { usageAnswer, usageMeAnswer, userAnswer } from "../contract/schemas/answers.ts";
import { endUserId, eventPattern } from "../contract/schemas/fields.ts";
import { plan } from "../contract/schemas/records.ts";
import { runTurn, type TurnWorld } from "../http/turn.ts";
import { showDuplicates, showSubscription, showUsage } from "./wire.ts";

interface UsersWorld extends TurnWorld {
  readonly term: TurnWorld["term"] & Pick<Term, "flush"> & {
    readonly directory: Pick<Directory, "isSameUser">;
  };
  readonly database: Parameters<typeof listSubscriptionHistory>[0];
}

const endpoint = endpointsOn<UsersWorld>();

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
    const { world, caller, input, endUser } = request;
    const userId = input.userId ?? endUser?.userId;
    if (userId === undefined) throw invalidMember("userId", "is required");
    const call = { name: "usage", input: { event: input.event ?? null } } as const;
    if (endUser === null) return runTurn(request, { userId }, call, (answer) => showUsage(answer, true));
    return requireSameUser(world.term.directory, caller.realm, endUser, userId)
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
  handle: async ({ world, caller, input }) => {
    const call = { realm: caller.realm, name: "user", input: {} } as const;
    const result = await world.term.directory.runById(input.userId, call);
    if (!result.ok) return answerOf(result, () => null);
    await world.term.flush();
    const { userKey } = result.answer;
    const history = await listSubscriptionHistory(world.database, userKey, REQUEST_LIMITS.historyRowsMax);
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
  handle: ({ caller }) => success(listPlans(caller.app)),
});

export const USERS: readonly Endpoint<UsersWorld>[] = [usage, usageMe, user, plans];

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
