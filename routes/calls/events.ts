// The event feed. Specification, "Events feed".

import { z } from "zod";
import type { Realm } from "../../actors/actor.ts";
import type { Term } from "../../actors/term.ts";
import { Refused } from "../http/errors.ts";
import { success } from "../http/answer.ts";
import { endpointsOn } from "../http/endpoint.ts";
import type { Endpoint } from "../http/endpoint_types.ts";
import { eventsAnswer } from "../contract/schemas/answers.ts";
import { endUserId, eventName, nameOf, wholeNumber } from "../contract/schemas/fields.ts";
import { eventDetail } from "../contract/schemas/records.ts";
import { getEvent, listEvents, type LogView } from "../../src/storage/queries/feed.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";

/** What reads of the feed work on. */
export interface FeedWorld {
  readonly term: Pick<Term, "flush">;
  readonly database: Parameters<typeof listEvents>[0];
}

const endpoint = endpointsOn<FeedWorld>();

/** `GET /v1/events`: a page of events, newest first. */
const list = endpoint({
  method: "GET",
  path: "/v1/events",
  access: "secret",
  input: z.object({
    userId: endUserId.optional(),
    eventType: eventName.optional(),
    limit: wholeNumber(1, REQUEST_LIMITS.feedLimitMax).optional(),
    offset: wholeNumber(0, REQUEST_LIMITS.feedOffsetMax).optional(),
  }),
  doc: {
    id: "listEvents",
    tag: "Events",
    summary: "A page of events, newest first",
    description:
      "Without users who opted out of ai_personalization or wait for an erasure. Items can shift between " +
      "pages when new events arrive. While prompt logging is off, hasLog is false and promptPreview null.",
    answer: eventsAnswer,
    errors: [],
  },
  handle: async ({ world, caller, input }) => {
    await world.term.flush();
    const limit = input.limit ?? REQUEST_LIMITS.feedLimitDefault;
    const offset = input.offset ?? 0;
    const events = await listEvents(world.database, {
      realm: caller.realm.realm,
      logs: logViewOf(caller.realm),
      userId: input.userId ?? null,
      eventType: input.eventType ?? null,
      limit,
      offset,
    });
    return success({ events, limit, offset, logPromptsEnabled: caller.app.catalog.promptLogging });
  },
});

/** `GET /v1/events/{eventId}`: one event with its details. */
const detail = endpoint({
  method: "GET",
  path: "/v1/events/:eventId",
  access: "secret",
  input: z.object({ eventId: nameOf(REQUEST_LIMITS.idLengthMax) }),
  doc: {
    id: "getEvent",
    tag: "Events",
    summary: "One event with its details",
    answer: eventDetail,
    errors: ["not_found"],
  },
  handle: async ({ world, caller, input }) => {
    await world.term.flush();
    const { realm } = caller.realm;
    const event = await getEvent(world.database, realm, input.eventId, logViewOf(caller.realm));
    if (event === null) throw new Refused("not_found", "No event has this eventId");
    return success(event);
  },
});

/** The logs that the realm's app shows now. */
function logViewOf(realm: Realm): LogView {
  const { promptLogging, promptLogRetentionMs } = realm.catalog;
  return { isOn: promptLogging, keptFrom: realm.now() - promptLogRetentionMs };
}

export const EVENTS: readonly Endpoint<FeedWorld>[] = [list, detail];
