// The stream of a user's usage.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { endUserId, eventPattern } from "./fields.ts";

/** The media type of a stream of events. */
export const EVENT_STREAM = "text/event-stream";

const answer = z.string()
  .describe("Events: usage, with the object that getUsage answers as its data, and end, with { reason }");

/** `GET /v1/usage/stream`: what `GET /v1/usage` answers, and again whenever that changes. */
export const streamUsage = defineCall({
  id: "streamUsage",
  method: "GET",
  path: "/v1/usage/stream",
  access: "end_user",
  input: z.object({ userId: endUserId.optional(), event: eventPattern.optional() }),
  mediaType: EVENT_STREAM,
  tag: "Usage",
  summary: "The counters of a user, live",
  description:
    "Server-sent events. The event usage carries what getUsage answers, without the envelope: at once, and " +
    "again whenever it has changed, at most every 250 ms; the last state is always sent. A comment comes every " +
    "15 s. The event end says why the stream ends: stopping (connect again), token_expired, key_revoked, merged " +
    "(the user became an alias; connect again for the other user), erased. With a public key userId may be left " +
    "out: the token's user, and the stream ends with the token.",
  answer: answer,
  errors: [],
});

/** The next state of a stream, which one process asks another for. It has no route. */
export const nextUsage = defineCall({
  id: "nextUsage",
  method: "GET",
  path: "/v1/usage/stream/next",
  access: "end_user",
  input: z.object({
    id: z.string(),
    key: z.number().nullable(),
    digest: z.string(),
    event: z.string().nullable(),
    withDuplicates: z.boolean(),
  }),
  waitsOutside: true,
  tag: "Usage",
  summary: "The next state of a stream, between members",
  answer: answer,
  errors: [],
});
