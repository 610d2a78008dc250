// Users of an app for its operators: a list, open holds, and the owner of an id.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { appPath, endUserId, mode, nameOf, textOf, wholeNumber } from "./fields.ts";
import { amounts, time } from "./records.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";

const inMode = { ...appPath, mode };

/** `GET /admin/v1/apps/{appId}/users` */
export const listUsers = defineCall({
  id: "listUsers",
  method: "GET",
  path: "/admin/v1/apps/:appId/users",
  access: "admin",
  about: "appId",
  input: z.object({
    ...inMode,
    startsWith: textOf(REQUEST_LIMITS.idLengthMax).optional(),
    limit: wholeNumber(1, REQUEST_LIMITS.feedLimitMax).optional(),
    cursor: z.string().optional(),
  }),
  tag: "Administration",
  summary: "The users of an app, by the beginning of their ids",
  description:
    "Case-sensitive and exact; aliases are listed too. cursor is the nextCursor of the page before.",
  answer: z.strictObject({
    users: z.array(z.strictObject({
      userId: z.string(),
      aliasOf: z.string().nullable().describe("The canonical id of an alias; null for a user of their own"),
      deletionPending: z.boolean().describe("An erasure was asked for and is not done yet"),
    })).describe("By id, in the order of code points"),
    nextCursor: z.string().nullable(),
  }),
  errors: ["not_found"],
});

/** `GET /admin/v1/apps/{appId}/users/{userId}/holds` */
export const listHolds = defineCall({
  id: "listHolds",
  method: "GET",
  path: "/admin/v1/apps/:appId/users/:userId/holds",
  access: "admin",
  about: "appId",
  input: z.object({ ...inMode, userId: endUserId }),
  tag: "Administration",
  summary: "A user's open holds",
  description: "Alias or not. What has expired is settled first, so every hold that shows is open.",
  answer: z.strictObject({
    holds: z.array(z.strictObject({
      reservationId: z.string(),
      event: z.string(),
      metadata: z.record(z.string(), z.unknown()).nullable(),
      amounts: amounts.describe("What is held of limit groups, and of credit balances"),
      createdAt: time,
      expiresAt: time,
    })).describe("Newest first, at most 200"),
    hasMore: z.boolean(),
  }),
  errors: ["not_found"],
});

/** `GET /admin/v1/apps/{appId}/lookup` */
export const lookUpId = defineCall({
  id: "lookUpId",
  method: "GET",
  path: "/admin/v1/apps/:appId/lookup",
  access: "admin",
  about: "appId",
  input: z.object({ ...inMode, id: nameOf(REQUEST_LIMITS.idLengthMax) }),
  tag: "Administration",
  summary: "What an id stands for, and whose it is",
  description: "Ids of events, reservations, balances, subscriptions and merges; any other text is looked " +
    "up as an externalRef of a grant and as an externalId of a subscription. Exact.",
  answer: z.strictObject({
    found: z.array(z.strictObject({
      kind: z.enum(["event", "reservation", "balance", "subscription", "merge"]),
      id: z.string(),
      userId: z.string().describe("The canonical id of the user that it belongs to"),
      alias: z.string().nullable().describe("Of a merge: the id that became an alias; else null"),
      status: z.enum(["held", "committed", "released", "expired"]).nullable()
        .describe("Of a reservation: what became of it; else null"),
    })).describe(
      "Empty for an id that stands for nothing; several for a reference that several have, at most 20",
    ),
  }),
  errors: ["not_found"],
});
