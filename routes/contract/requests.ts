// Requests with an API key that failed, for engineers.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { appPath, cursorPage, mode, textOf, wholeNumber } from "./fields.ts";
import { time } from "./records.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";
import { REQUEST_LOG_LIMITS } from "../../src/process/sent_limits.ts";

const filterText = textOf(REQUEST_LIMITS.idLengthMax).optional();

/** `GET /admin/v1/apps/{appId}/requests` */
export const listRequests = defineCall({
  id: "listRequests",
  method: "GET",
  path: "/admin/v1/apps/:appId/requests",
  access: "admin",
  input: z.object({
    ...appPath,
    mode: mode.optional(),
    status: wholeNumber(400, 599).optional(),
    code: filterText,
    path: filterText.describe("A part of the path, case-sensitive"),
    requestId: filterText.describe("One of the newest 20 request ids of a row"),
    ...cursorPage(REQUEST_LIMITS.feedLimitMax, REQUEST_LIMITS.feedLimitDefault),
  }),
  tag: "Administration",
  summary: "List the failed requests of an app",
  description:
    "Answers with a 4xx or 5xx status to requests with a key that is or was the app's. A refused reserve " +
    "is a 200, and not listed; failed calls of a batch are, under the path of the batch. Requests of one key " +
    "with the same method, route, status and code within one hour (UTC) are one row with a count; it shows the " +
    "newest of them; those with the status 429 are one row a day. All keys of the app's users count as one key. Rows are there within seconds and kept for " +
    "7 days, at most 10,000 an app. Deleting a user's data removes the rows about the user.",
  answer: z.strictObject({
    requests: z.array(
      z.strictObject({
        requestId: z.string().describe("The newest one"),
        requestIds: z.array(z.string()).describe("Newest first, at most 20"),
        at: time.describe("When the newest one was answered"),
        mode,
        method: z.string(),
        path: z.string().describe("Without the query"),
        status: z.int(),
        code: z.string(),
        message: z.string().nullable(),
        keyId: z.string().describe("`users` for the keys of users"),
        keyPrefix: z.string(),
        userId: z.string().nullable().describe("As the request named the user"),
        body: z.string().nullable().describe(
          "The first 500 characters of the members of path, query and body as JSON. Prompts, responses and " +
            'free metadata are "[hidden]". Only the length of a body that is not JSON',
        ),
        count: z.int().min(1).describe("Requests, or calls of a batch"),
        firstAt: time,
        lastAt: time,
      }).meta({ id: "FailedRequest" }),
    ).describe("Newest first by lastAt"),
    cursor: z.string().nullable().describe("For the next page; null on the last one"),
  }),
  errors: ["not_found"],
});

/** `GET /admin/v1/unknown-keys` */
export const listUnknownKeys = defineCall({
  id: "listUnknownKeys",
  method: "GET",
  path: "/admin/v1/unknown-keys",
  access: "admin",
  input: null,
  tag: "Administration",
  summary: "List unknown API keys that were used",
  description:
    "Keys that no app ever had, and keys of users that are unknown or revoked, by their first 12 characters, " +
    "for 7 days.",
  answer: z.strictObject({
    keys: z.array(z.strictObject({
      keyPrefix: z.string(),
      method: z.string(),
      route: z.string(),
      code: z.string(),
      count: z.int().min(1).describe("Requests within one hour (UTC)"),
      firstAt: time,
      lastAt: time,
    })).describe(`Newest first by lastAt, at most ${REQUEST_LOG_LIMITS.unknownShownMax}`),
  }),
  errors: [],
});
