// Users of an app, for its operators: a list by prefix, the open holds of a user, and lookup of any id.

import type { Directory } from "../../actors/directory.ts";
import type { RefusedCalls } from "../../actors/refused_calls.ts";
import type { Term } from "../../actors/term.ts";
import { listHolds } from "../../src/storage/queries/holds.ts";
import {
  cursorText,
  type ListedUser,
  listUserPage,
  readUserCursor,
} from "../../src/storage/queries/user_list.ts";
import { findUsers } from "../../src/storage/stores/user_search.ts";
import { lookUp } from "../../src/storage/queries/users.ts";
import { type AddingWorld, addSomeUp } from "../../src/operations/sweeps/daily_use.ts";
import { idsErasedWith } from "../../src/people/erasure.ts";
import { idsCoveredBy } from "../../src/people/people.ts";
import { listUnrecorded } from "../../src/storage/stores/person_link_store.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";
import type { Registry } from "../../src/tenant/registry.ts";
import { appOf } from "./admin.ts";
import type { Catalog } from "../../src/domain/catalog/catalog.ts";
import type { Database } from "../../src/storage/database.ts";
import type { CheckedOf, DataOf } from "../contract/definition.ts";
import { timeText } from "../contract/fields.ts";
import { failure, success } from "../http/answer.ts";
import { keylessEndpointsOn } from "../http/endpoint.ts";
import type { KeylessEndpoint } from "../http/endpoint_types.ts";
import * as contract from "../contract/admin_users.ts";
import { invalidMember } from "../http/errors.ts";

interface World {
  readonly registry: Pick<Registry, "apps">;
  readonly inCell: AddingWorld["inCell"];
  readonly term: Pick<Term, "flush" | "isServing"> & {
    readonly directory: Pick<Directory, "runById">;
    readonly refusedCalls: Pick<RefusedCalls, "write">;
  };
  readonly database: Parameters<typeof idsErasedWith>[0]["database"] & Database;
}

const endpoint = keylessEndpointsOn<World>();

function refuseCursor(): never {
  throw invalidMember("cursor", "must be the nextCursor of a previous page");
}

type ListInput = CheckedOf<typeof contract.listUsers>;

/** Lists a page of users, with everything that was decided and counted before. */
async function listPage(world: World, input: ListInput) {
  const { q, sort = "id", filter = null, plan: planId = null, startsWith = "", limit } = input;
  const realm = appOf(world, input.appId).realms[input.mode];
  const after = input.cursor === undefined ? null : readUserCursor(input.cursor, sort) ?? refuseCursor();
  await Promise.all([addSomeUp(world, realm), world.term.refusedCalls.write([realm.realm])]);
  const found = q === undefined ? null : await findUsers(world.database, realm.realm, q);
  const page = await listUserPage(world.database, {
    ...{ realm: realm.realm, now: realm.now(), sort, filter, planId, startsWith, after },
    order: input.order ?? (sort === "id" || sort === "plan" ? "asc" : "desc"),
    found: found?.keys ?? null,
    limit: limit ?? REQUEST_LIMITS.feedLimitDefault,
  });
  return {
    users: page.users.map((user) => showUser(user, realm.catalog)),
    nextCursor: page.next === null ? null : cursorText(sort, page.next),
    isExact: page.isExact && found?.isComplete !== false,
  };
}

function showUser(user: ListedUser, { plans }: Catalog): DataOf<typeof contract.listUsers>["users"][number] {
  const { groupId, percent, planId, seenAt } = user;
  return {
    userId: user.id,
    aliasOf: user.aliasOf,
    deletionPending: user.isErasing,
    planId,
    planName: planId === null ? null : plans.get(planId)?.name ?? planId,
    fullest: groupId === null ? null : { groupId, percent },
    costCents30d: user.costCents,
    refusals7d: user.refusals,
    lastSeenAt: seenAt === null ? null : timeText(seenAt),
  };
}

/** Lists of users, their open holds, and lookup of ids. */
export const ADMIN_USERS: readonly KeylessEndpoint<World>[] = [
  endpoint(contract.listUsers, async ({ world, input }) => success(await listPage(world, input))),
  endpoint(contract.listHolds, async ({ world, input }) => {
    const realm = appOf(world, input.appId).realms[input.mode];
    const result = await world.term.directory.runById(input.userId, { realm, name: "user", input: {} });
    if (!result.ok) return failure(result.refusal);
    await world.term.flush();
    return success(await listHolds(world.database, result.answer.userKey, REQUEST_LIMITS.holdsShownMax));
  }),
  endpoint(contract.lookUpId, async ({ world, input }) => {
    const { realm } = appOf(world, input.appId).realms[input.mode];
    await world.term.flush();
    const found = await lookUp(world.database, realm, input.id, REQUEST_LIMITS.feedLimitDefault);
    return success({ found: found.slice(0, REQUEST_LIMITS.feedLimitDefault) });
  }),
  endpoint(contract.listCoveredIds, async ({ world, input }) => {
    const { realm } = appOf(world, input.appId).realms[input.mode];
    await world.term.flush();
    return success({
      exported: await idsCoveredBy(world.database, realm, [input.userId]),
      deleted: await idsErasedWith(world, realm, input.userId),
    });
  }),
  endpoint(contract.findPersonLinks, async ({ world, input }) => {
    const { realm } = appOf(world, input.appId).realms[input.mode];
    await world.term.flush();
    const shown = REQUEST_LIMITS.peopleShownMax;
    const people = await listUnrecorded(world.database, realm, shown + 1);
    return success({ people: people.slice(0, shown), hasMore: people.length > shown });
  }),
];
