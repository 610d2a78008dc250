// Users of an app, for its operators: a list, open holds, and lookup of any id.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { appPath, endUserId, mode, nameOf, textOf, wholeNumber } from "./fields.ts";
import { amounts, time } from "./records.ts";
import { NEAR_PERCENT } from "../../src/domain/state/summary.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";
import { USER_LIST_LIMITS } from "../../src/process/user_list_limits.ts";

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
    q: nameOf(REQUEST_LIMITS.idLengthMax).optional().describe(
      "Finds this text inside ids, and inside the email and name of people, without regard to case; a customer " +
        "of Stripe (cus_...) exactly",
    ),
    startsWith: textOf(REQUEST_LIMITS.idLengthMax).optional().describe("Prefix of the ids, case-sensitive"),
    filter: z.enum(["near", "hit"]).optional().describe(
      `near: the fullest limit is at ${NEAR_PERCENT} % or more; hit: refused in the last 7 x 24 hours`,
    ),
    plan: nameOf(REQUEST_LIMITS.idLengthMax).optional().describe("The id of the current plan"),
    sort: z.enum(["id", "limit", "cost", "refusals", "lastSeen", "plan"]).optional().describe("Default id"),
    order: z.enum(["asc", "desc"]).optional().describe("Default asc for id and plan, else desc"),
    limit: wholeNumber(1, REQUEST_LIMITS.feedLimitMax).optional(),
    cursor: z.string().optional().describe("The nextCursor of the previous page, under the same sort"),
  }),
  tag: "Administration",
  summary: "List the users of an app",
  description:
    "Plan, fullest limit and lastSeenAt are of the user's last call; costs and refusals are summed up when " +
    "the list is read. Aliases are listed when sorted by id, and found by q. A search looks through " +
    `${USER_LIST_LIMITS.searchedMax / 1_000},000 ids and people. A page of a filter may have fewer ` +
    "users than limit and still a nextCursor.",
  answer: z.strictObject({
    users: z.array(z.strictObject({
      userId: z.string(),
      aliasOf: z.string().nullable().describe("The canonical id behind an alias; null if the id is no alias"),
      deletionPending: z.boolean().describe("Whether a deletion was requested and is not complete"),
      planId: z.string().nullable().describe("The current plan; null for none, and for an alias"),
      planName: z.string().nullable().describe("The id if the catalog no longer has the plan"),
      fullest: z.strictObject({
        groupId: z.string(),
        percent: z.int().min(0).describe("Rounded down, with holds; above 100 where overage was sold"),
      }).nullable().describe("The fullest limit of the plan; null for none"),
      costCents30d: z.number().describe("Today and the 29 days before, UTC"),
      refusals7d: z.int().min(0).describe("Refused calls of the last 7 x 24 hours"),
      lastSeenAt: time.nullable().describe("Start of the minute of the last metering call; null for none"),
    })),
    nextCursor: z.string().nullable(),
    isExact: z.boolean().describe(
      "False if the search looked through a part of the users only, or if more users have a cost or refusals " +
        "than are compared: the users with the largest ones come first, and others follow by id",
    ),
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
  summary: "List a user's open holds",
  description: "userId may be an alias. Expired holds are settled first, so every hold in the list is open.",
  answer: z.strictObject({
    holds: z.array(z.strictObject({
      reservationId: z.string(),
      heldFor: z.string().optional()
        .describe("Present if a call of a user below holds it: the id of that user, whose reservation it is"),
      event: z.string(),
      metadata: z.record(z.string(), z.unknown()).nullable(),
      amounts: amounts.describe("Held amounts of limit groups and credit balances"),
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
  summary: "Look up an id",
  description:
    "Finds events, reservations, balances, subscriptions and merges by their ids. Any other text is " +
    "looked up as the externalRef of a grant and as the externalId of a subscription. Only exact " +
    "matches.",
  answer: z.strictObject({
    found: z.array(z.strictObject({
      kind: z.enum(["event", "reservation", "balance", "subscription", "merge"]),
      id: z.string(),
      userId: z.string().describe("The canonical id of the user it belongs to"),
      alias: z.string().nullable().describe("For a merge: the id that became an alias; else null"),
      status: z.enum(["held", "committed", "released", "expired"]).nullable()
        .describe("For a reservation: its status; else null"),
    })).describe(
      "Empty for an unknown id; several for a reference that is used several times, at most 20",
    ),
  }),
  errors: ["not_found"],
});

/** `GET /admin/v1/apps/{appId}/users/{userId}/covered-ids` */
export const listCoveredIds = defineCall({
  id: "listCoveredIds",
  method: "GET",
  path: "/admin/v1/apps/:appId/users/:userId/covered-ids",
  access: "admin",
  about: "appId",
  input: z.object({ ...inMode, userId: endUserId }),
  tag: "Administration",
  summary: "List the ids that an export or a deletion covers",
  description: "userId may be any distinct id, also one that was never seen: it covers itself.",
  answer: z.strictObject({
    exported: z.array(z.string()).describe("Every id whose data an export of this id contains, sorted"),
    deleted: z.array(z.string()).describe("Every id that a deletion of this id removes, sorted"),
  }),
  errors: ["not_found"],
});

/** `GET /admin/v1/apps/{appId}/person-links` */
export const findPersonLinks = defineCall({
  id: "findPersonLinks",
  method: "GET",
  path: "/admin/v1/apps/:appId/person-links",
  access: "admin",
  about: "appId",
  input: z.object(inMode),
  tag: "Administration",
  summary: "Find links of metered ids that a public key may have made",
  description:
    "Earlier versions let a public key join any two ids and recorded no maker. Each person in the list has " +
    "several metered ids, and a link without a maker between them: check whether they are one person.",
  answer: z.strictObject({
    people: z.array(z.strictObject({
      personId: z.string(),
      distinctIds: z.array(z.string()).describe("The metered ids, sorted"),
    })).describe("At most 200"),
    hasMore: z.boolean(),
  }),
  errors: ["not_found"],
});
