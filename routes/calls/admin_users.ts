// Users of an app, for its operators: a list by prefix, the open holds of a user, and lookup of any id.

import type { Directory } from "../../actors/directory.ts";
import type { Term } from "../../actors/term.ts";
import { listHolds } from "../../src/storage/queries/holds.ts";
import { listUsers, lookUp, readUsersCursor } from "../../src/storage/queries/users.ts";
import { idsErasedWith } from "../../src/people/erasure.ts";
import { idsCoveredBy } from "../../src/people/people.ts";
import { listUnrecorded } from "../../src/storage/stores/person_link_store.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";
import type { Registry } from "../../src/tenant/registry.ts";
import { appOf } from "./admin.ts";
import { failure, success } from "../http/answer.ts";
import { keylessEndpointsOn } from "../http/endpoint.ts";
import type { KeylessEndpoint } from "../http/endpoint_types.ts";
import * as contract from "../contract/admin_users.ts";
import { invalidMember } from "../http/errors.ts";

interface World {
  readonly registry: Pick<Registry, "apps">;
  readonly term: Pick<Term, "flush"> & { readonly directory: Pick<Directory, "runById"> };
  readonly database: Parameters<typeof idsErasedWith>[0]["database"];
}

const endpoint = keylessEndpointsOn<World>();

function refuseCursor(): never {
  throw invalidMember("cursor", "must be the nextCursor of a previous page");
}

/** Lists of users, their open holds, and lookup of ids. */
export const ADMIN_USERS: readonly KeylessEndpoint<World>[] = [
  endpoint(contract.listUsers, async ({ world, input }) => {
    const { realm } = appOf(world, input.appId).realms[input.mode];
    const after = input.cursor === undefined ? null : readUsersCursor(input.cursor) ?? refuseCursor();
    await world.term.flush();
    const { startsWith = "", limit = REQUEST_LIMITS.feedLimitDefault } = input;
    return success(await listUsers(world.database, { realm, startsWith, after, limit }));
  }),
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
