// What if: the recorded events of a span, decided anew under another catalog.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { appPath, mode, moment } from "./fields.ts";

/** The media type of an answer of lines of JSON. */
export const JSON_LINES = "application/x-ndjson";

/** `POST /admin/v1/apps/{appId}/what-if` */
export const whatIf = defineCall({
  id: "whatIf",
  method: "POST",
  path: "/admin/v1/apps/:appId/what-if",
  access: "admin",
  about: "appId",
  input: z.object({
    mode: mode.describe("Whether to read live or test events"),
    from: moment.describe("The first moment of the span"),
    to: moment.describe("The end of the span, exclusive"),
    catalog: z.record(z.string(), z.unknown()).nullish()
      .describe("The catalog to try, as PUT of the catalog takes it; absent or null for the one in force"),
  }).extend(appPath).refine(({ from, to }) => from < to, { path: ["to"], message: "must be after from" }),
  mediaType: JSON_LINES,
  tag: "Administration",
  summary: "Try a catalog on recorded events",
  description:
    "Decides the events of the span anew, as tracks at their times, and changes nothing. Events that were " +
    "blocked are decided again; released reservations are left out. A commit that no longer fits counts past " +
    "the quota if the catalog would have allowed its reserve. Plans come from the history of subscriptions; " +
    "usage before the span is not known, so a window that began earlier starts at 0. Limits of runs are not " +
    "applied. The answer is lines of JSON: any number of { progress: { events, users } }, then one { result } " +
    "or { error: { code, message } }. A result has events and users that were decided; refused: [{ day, " +
    "groupId, calls, users }] by UTC day and limit group, where groupId is null if no limit refused; and " +
    "counters: [{ userId, groupId, windowStart, count }], the first 100,000. An app has one such call at a time.",
  answer: z.string().describe("Lines of JSON"),
  errors: ["not_found", "rate_limited"],
});
