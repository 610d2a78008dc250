// Usage of users, and the plans on offer.

import type { Directory } from "../../actors/directory.ts";
import type { Term } from "../../actors/term.ts";
import type { Catalog } from "../../src/domain/catalog/catalog.ts";
import type { UserAnswer } from "../../src/domain/usage.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";
import { listPlans } from "../../src/tenant/plans.ts";
import { listSubscriptionHistory } from "../../src/storage/queries/subscription_history.ts";
import { countChildren } from "../../src/storage/stores/tree_store.ts";
import { requireSameUser } from "../http/auth.ts";
import { invalidMember } from "../http/errors.ts";
import { failure, success } from "../http/answer.ts";
import { endpointsOn } from "../http/endpoint.ts";
import type { Endpoint } from "../http/endpoint_types.ts";
import type { DataOf } from "../contract/definition.ts";
import * as contract from "../contract/usage.ts";
import { runTurn, type TurnWorld } from "../http/turn.ts";
import {
  showCaps,
  showDuplicates,
  showFeatures,
  showQuotas,
  showSubscription,
  showUsage,
} from "./shown_records.ts";

/** What reads of users need of the running service. */
export interface UsersWorld extends TurnWorld {
  readonly term: TurnWorld["term"] & Pick<Term, "flush" | "tree"> & {
    readonly directory: Pick<Directory, "isSameUser">;
  };
  readonly database: Parameters<typeof listSubscriptionHistory>[0];
}

const endpoint = endpointsOn<UsersWorld>();

export const USERS: readonly Endpoint<UsersWorld>[] = [
  endpoint(contract.getUsage, (request) => {
    const { world, caller, input, endUser } = request;
    const userId = input.userId ?? endUser?.userId;
    if (userId === undefined) throw invalidMember("userId", "is required");
    const event = input.event ?? null;
    const call = { name: "usage", input: { event, withLevels: input.levels === "true" } } as const;
    if (endUser === null) return runTurn(request, { userId }, call, (answer) => showUsage(answer, true));
    return requireSameUser(world.term.directory, caller.realm, endUser, userId)
      .then(() => runTurn(request, { userId }, call, (answer) => showUsage(answer, false)));
  }),
  endpoint(contract.getMyUsage, (request) => {
    const { userId } = request.endUser as { userId: string };
    const call = { name: "usage", input: { event: request.input.event ?? null } } as const;
    return runTurn(request, { userId }, call, (answer) => showUsage(answer, false));
  }),
  endpoint(contract.getUser, async ({ world, caller, input }) => {
    const call = { realm: caller.realm, name: "user", input: {} } as const;
    const result = await world.term.directory.runById(input.userId, call);
    if (!result.ok) return failure(result.refusal);
    await world.term.flush();
    const { userKey, path, aliases } = result.answer;
    const history = await listSubscriptionHistory(world.database, userKey, REQUEST_LIMITS.historyRowsMax);
    const keys = [userKey, ...aliases.map(({ key }) => key)];
    const isInTree = path.length > 1 ||
      await world.term.tree.mayHaveTree(caller.realm.realm) && await countChildren(world.database, keys) > 0;
    return success(showUser(result.answer, caller.realm.catalog, history, isInTree));
  }),
  endpoint(contract.listPlans, ({ caller }) => success(listPlans(caller.realm))),
  endpoint(
    contract.listRates,
    ({ caller }) => success({ rates: caller.realm.applied?.document.rates ?? [] }),
  ),
];

function showUser(
  answer: UserAnswer,
  catalog: Catalog,
  history: DataOf<typeof contract.getUser>["history"],
  isInTree: boolean,
): DataOf<typeof contract.getUser> {
  const { userId, aliases, subscription, addOns, parentId, path, memberLimits, spendCaps } = answer;
  const limits = showQuotas(memberLimits);
  const { period, counters, credits } = showUsage(answer, false);
  return {
    userId,
    aliases: aliases.map(({ id }) => id),
    subscription: subscription === null ? null : showSubscription(userId, subscription, catalog),
    ...addOns === null ? {} : { addOns: addOns.map((row) => showSubscription(userId, row, catalog)) },
    history,
    period,
    counters,
    credits,
    ...showFeatures(answer),
    duplicateActiveSubscriptions: showDuplicates(answer.duplicates),
    ...isInTree ? { parentId, path: [...path] } : {},
    ...limits === null ? {} : { memberLimits: limits },
    ...spendCaps === null ? {} : { spendCaps: showCaps(spendCaps) },
  };
}
