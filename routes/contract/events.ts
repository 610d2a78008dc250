// The event feed.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { anyId, endUserId, eventName, feedPage, moment, nameOf } from "./fields.ts";
import { MATCH_STATUSES } from "../../src/domain/state/event.ts";
import { event, eventDetail } from "./records.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";

/** The statuses by which the feed can be filtered: most events are matched, so the others are found by an index. */
export const FEED_STATUSES = MATCH_STATUSES.filter((status) => status !== "matched");

/** `GET /v1/events` */
export const listEvents = defineCall({
  id: "listEvents",
  method: "GET",
  path: "/v1/events",
  access: "secret",
  input: z.object({
    userId: endUserId.optional(),
    eventType: eventName.optional(),
    status: z.enum(FEED_STATUSES).optional().describe("Only events of this status"),
    runId: anyId(REQUEST_LIMITS.idLengthMax).optional().describe(
      "Events of this run, without those of runs within it",
    ),
    from: moment.optional().describe("Only events at and after this time"),
    to: moment.optional().describe("Only events before this time"),
    ...feedPage,
  }),
  tag: "Events",
  summary: "List events",
  description:
    "Newest first, without users who opted out of ai_personalization or have a pending deletion. Items " +
    "can shift between pages when new events arrive. While prompt logging is off, hasLog is false and " +
    "promptPreview is null.",
  answer: z.strictObject({
    events: z.array(event).describe("Newest first"),
    limit: z.int(),
    offset: z.int(),
    logPromptsEnabled: z.boolean().describe("Whether prompts are logged now; if not, no event shows a log"),
  }),
  errors: [],
});

/** `GET /v1/events/{eventId}` */
export const getEvent = defineCall({
  id: "getEvent",
  method: "GET",
  path: "/v1/events/:eventId",
  access: "secret",
  input: z.object({ eventId: nameOf(REQUEST_LIMITS.idLengthMax) }),
  tag: "Events",
  summary: "Get an event",
  description:
    "With its metadata and the charged amounts, and with prompt and response while prompt logging is " +
    "on.",
  answer: eventDetail,
  errors: ["not_found"],
});
