// The stream of a user's usage.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { endUserId, eventPattern } from "./fields.ts";

/** The media type of a stream of events. */
export const EVENT_STREAM = "text/event-stream";

const answer = z.string()
  .describe("Events: usage, with the data of getUsage, and end, with { reason }");

/** `GET /v1/usage/stream`: the answer of `GET /v1/usage`, and again after every change. */
export const streamUsage = defineCall({
  id: "streamUsage",
  method: "GET",
  path: "/v1/usage/stream",
  access: "end_user",
  takesUserKey: true,
  input: z.object({ userId: endUserId.optional(), event: eventPattern.optional() }),
  mediaType: EVENT_STREAM,
  tag: "Usage",
  summary: "Stream a user's usage",
  description:
    "Server-sent events. The event usage has the data of getUsage, without the envelope: at once, and " +
    "after each change, at most every 250 ms; the last state is always sent. A comment is sent every 15 " +
    "s. The event end has the reason why the stream ends: stopping (connect again), token_expired, " +
    "key_revoked, merged (the user became an alias; connect again for the other user), erased, replaced " +
    "(the user has opened newer streams; do not connect again by yourself). A process has at most 5 " +
    "streams of one token, 20 of one user, with 8 different values of event, and 2,000 of one app, above " +
    "which the answer is unavailable. With a public key, userId may be left out: it is the user of the " +
    "token, and the stream ends with the token.",
  answer: answer,
  errors: [],
});
