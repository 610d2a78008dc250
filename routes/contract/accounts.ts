// The tree of users: organisations, teams and people, each with limits of its own.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { cursorPage, endUserId, quotasByGroup } from "./fields.ts";
import { limitsByGroup } from "./records.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";

/** `PUT /v1/users/{userId}/parent` */
export const setParent = defineCall({
  id: "setParent",
  method: "PUT",
  path: "/v1/users/:userId/parent",
  access: "secret",
  input: z.object({
    userId: endUserId,
    parentId: endUserId.nullable().describe("null: the user has no parent any more"),
    memberLimits: quotasByGroup(REQUEST_LIMITS.memberLimitsMax).nullish().describe(
      "The most that the user may use of limit groups of the users above, by group id. Left out: unchanged " +
        "under the same parent",
    ),
  }),
  tag: "Accounts",
  summary: "Put a user under another one",
  description:
    "From the next call on, calls of the user count at the parent too, and at every user above it. A new " +
    "id becomes a user. A path has at most 8 users. Free.",
  answer: z.strictObject({
    userId: z.string(),
    parentId: z.string().nullable(),
    path: z.array(z.string()).describe("The user, its parent, and so on"),
    memberLimits: limitsByGroup.nullable(),
  }),
  errors: ["parent_cycle", "path_too_long"],
});

/** `GET /v1/users/{userId}/members` */
export const listMembers = defineCall({
  id: "listMembers",
  method: "GET",
  path: "/v1/users/:userId/members",
  access: "secret",
  input: z.object({
    userId: endUserId,
    groupId: z.string().describe("A limit group of the user's plan in force"),
    ...cursorPage(REQUEST_LIMITS.childrenLimitMax, REQUEST_LIMITS.childrenLimit),
  }),
  tag: "Accounts",
  summary: "List what each user below used of a limit group",
  description:
    "Of the running window, most first, then by id. Users below at any depth are listed once they used or " +
    "hold something; one that moved away stays for the window. Empty if the plan in force lacks the group.",
  answer: z.strictObject({
    members: z.array(z.strictObject({
      userId: z.string(),
      count: z.number().describe("Used and held: whole calls, paid by the plan or by credits"),
      quota: z.number().nullable().describe(
        "The most that it may use: of its memberLimits, else the group's perMember; null for no limit",
      ),
      costCents: z.number().describe("The cost of the counted events"),
    })),
    cursor: z.string().nullable(),
  }),
  errors: [],
});

/** `GET /v1/users/{userId}/children` */
export const listChildren = defineCall({
  id: "listChildren",
  method: "GET",
  path: "/v1/users/:userId/children",
  access: "secret",
  input: z.object({
    userId: endUserId,
    ...cursorPage(REQUEST_LIMITS.childrenLimitMax, REQUEST_LIMITS.childrenLimit),
  }),
  tag: "Accounts",
  summary: "List the users directly below a user",
  description: "In the order of their ids, each with the number of its own children.",
  answer: z.strictObject({
    children: z.array(z.strictObject({ userId: z.string(), children: z.int().min(0) })),
    cursor: z.string().nullable(),
  }),
  errors: [],
});
