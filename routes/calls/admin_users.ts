// The admin API of users: a list by the beginning of an id, open holds, and whose an id is. beyond.md, section 8.

import { z } from "zod";
import type { Directory } from "../../actors/directory.ts";
import type { Term } from "../../actors/term.ts";
import { listHolds } from "../../src/storage/queries/holds.ts";
import { listUsers, lookUp, readUsersCursor } from "../../src/storage/queries/users.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";
import type { Registry } from "../../src/tenant/registry.ts";
import { aboutApp, appOf, appPath } from "./admin.ts";
import { answerOf, success } from "../http/answer.ts";
import { keylessEndpointsOn } from "../http/endpoint.ts";
import type { KeylessEndpoint } from "../http/endpoint_types.ts";
import { invalidMember } from "../http/errors.ts";
import { endUserId, nameOf, textOf, wholeNumber } from "../contract/schemas/fields.ts";
import { holdsAnswer, lookupAnswer, usersAnswer } from "../contract/schemas/users.ts";

interface World {
  readonly registry: Pick<Registry, "apps">;
  readonly term: Pick<Term, "flush"> & { readonly directory: Pick<Directory, "runById"> };
  readonly database: Parameters<typeof listUsers>[0];
}

const endpoint = keylessEndpointsOn<World>();

const inMode = { ...appPath, mode: z.enum(["live", "test"]) };

/** `GET .../users`: the users of a mode. */
const users = endpoint({
  method: "GET",
  access: "admin",
  path: "/admin/v1/apps/:appId/users",
  input: z.object({
    ...inMode,
    startsWith: textOf(REQUEST_LIMITS.idLengthMax).optional(),
    limit: wholeNumber(1, REQUEST_LIMITS.feedLimitMax).optional(),
    cursor: z.string().optional(),
  }),
  about: aboutApp,
  doc: {
    id: "listUsers",
    tag: "Administration",
    summary: "The users of an app, by the beginning of their ids",
    description:
      "Case-sensitive and exact; aliases are listed too. cursor is the nextCursor of the page before.",
    answer: usersAnswer,
    errors: ["not_found"],
  },
  handle: async ({ world, input }) => {
    const { realm } = appOf(world, input.appId).realms[input.mode];
    const after = input.cursor === undefined ? null : readUsersCursor(input.cursor) ?? refuseCursor();
    await world.term.flush();
    const { startsWith = "", limit = REQUEST_LIMITS.feedLimitDefault } = input;
    return success(await listUsers(world.database, { realm, startsWith, after, limit }));
  },
});

function refuseCursor(): never {
  throw invalidMember("cursor", "is none that this call gave");
}

/** `GET .../users/{userId}/holds`: what is held now. */
const holds = endpoint({
  method: "GET",
  access: "admin",
  path: "/admin/v1/apps/:appId/users/:userId/holds",
  input: z.object({ ...inMode, userId: endUserId }),
  about: aboutApp,
  doc: {
    id: "listHolds",
    tag: "Administration",
    summary: "A user's open holds",
    description: "Alias or not. What has expired is settled first, so every hold that shows is open.",
    answer: holdsAnswer,
    errors: ["not_found"],
  },
  handle: async ({ world, input }) => {
    const realm = appOf(world, input.appId).realms[input.mode];
    const result = await world.term.directory.runById(input.userId, { realm, name: "user", input: {} });
    if (!result.ok) return answerOf(result, () => null);
    await world.term.flush();
    return success(await listHolds(world.database, result.answer.userKey, REQUEST_LIMITS.holdsShownMax));
  },
});

/** `GET .../lookup`: whose an id is. */
const lookup = endpoint({
  method: "GET",
  access: "admin",
  path: "/admin/v1/apps/:appId/lookup",
  input: z.object({ ...inMode, id: nameOf(REQUEST_LIMITS.idLengthMax) }),
  about: aboutApp,
  doc: {
    id: "lookUpId",
    tag: "Administration",
    summary: "What an id stands for, and whose it is",
    description:
      "Ids of events, reservations, balances, subscriptions and merges; any other text is looked " +
      "up as an externalRef of a grant and as an externalId of a subscription. Exact.",
    answer: lookupAnswer,
    errors: ["not_found"],
  },
  handle: async ({ world, input }) => {
    const { realm } = appOf(world, input.appId).realms[input.mode];
    await world.term.flush();
    const found = await lookUp(world.database, realm, input.id, REQUEST_LIMITS.feedLimitDefault);
    return success({ found: found.slice(0, REQUEST_LIMITS.feedLimitDefault) });
  },
});

/** Every endpoint of the admin API that is about users. */
export const ADMIN_USERS: readonly KeylessEndpoint<World>[] = [users, holds, lookup];
