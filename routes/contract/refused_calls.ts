// Calls that were refused at a limit.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { endUserId, eventName, feedPage } from "./fields.ts";
import { REASONS, time } from "./records.ts";

/** `GET /v1/refusals` */
export const listRefusals = defineCall({
  id: "listRefusals",
  method: "GET",
  path: "/v1/refusals",
  access: "secret",
  input: z.object({
    userId: endUserId.optional(),
    event: eventName.optional(),
    refusedBy: endUserId.optional().describe("Only calls that this user refused, above their own user"),
    ...feedPage,
  }),
  tag: "Events",
  summary: "List refused calls",
  description:
    "Reserves, tracks and composes that were refused at a limit. Calls of one user with the same event " +
    "and reasons within one hour (UTC) are one row with a count. Kept for 90 days. Without users who " +
    "have a pending deletion.",
  answer: z.strictObject({
    refusals: z.array(z.strictObject({
      userId: z.string(),
      event: z.string(),
      reasons: z.array(
        z.enum([...REASONS, "workspace_limit_reached", "test_quota_exceeded", "ai_budget_exceeded"]),
      ),
      groupIds: z.array(z.string())
        .describe("Limit groups without room for the newest call, in the plan's order"),
      refusedBy: z.array(z.string()).optional()
        .describe("Of a user with a parent: the ids of the users that refused"),
      count: z.int().min(1),
      firstAt: time,
      lastAt: time,
    })).describe("Newest first by lastAt"),
    limit: z.int(),
    offset: z.int(),
  }),
  errors: [],
});
