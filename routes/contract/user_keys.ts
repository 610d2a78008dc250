// Keys of users: each acts for one user alone.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { endUserId, moment, nameOf } from "./fields.ts";
import { time } from "./records.ts";
import { END_USER_KEYS_MAX } from "../../src/domain/state/end_user_key.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";

const ofUser = { userId: endUserId };

/** `POST /v1/users/{userId}/keys` */
export const createUserKey = defineCall({
  id: "createUserKey",
  method: "POST",
  path: "/v1/users/:userId/keys",
  access: "secret",
  input: z.object({
    ...ofUser,
    name: nameOf(REQUEST_LIMITS.idLengthMax).nullish().describe("For you: where the key is used"),
    expiresAt: moment.nullish().describe("Real time, also in test mode; null: never"),
  }),
  answersToken: true,
  tag: "Accounts",
  summary: "Create a key of a user",
  description:
    "The key acts for this user alone: at the gateway, for the user's own usage, its stream, and its features. Any other call " +
    "refuses it. After a merge it acts for the canonical user. A new id becomes a user. A user " +
    `has at most ${END_USER_KEYS_MAX} keys. The key is shown once, also to a retry with the same ` +
    "Idempotency-Key, which creates another key.",
  answer: z.strictObject({
    userKeyId: z.string(),
    key: z.string().describe('Begins with "uk_live_" or "uk_test_". Only a hash of it is stored'),
  }),
  errors: [],
});

/** `GET /v1/users/{userId}/keys` */
export const listUserKeys = defineCall({
  id: "listUserKeys",
  method: "GET",
  path: "/v1/users/:userId/keys",
  access: "secret",
  input: z.object(ofUser),
  tag: "Accounts",
  summary: "List the keys of a user",
  description: "Newest first, without those that were revoked.",
  answer: z.strictObject({
    keys: z.array(z.strictObject({
      userKeyId: z.string(),
      name: z.string().nullable(),
      prefix: z.string().describe("The beginning of the key"),
      createdAt: time,
      expiresAt: time.nullable(),
      lastUsedAt: time.nullable().describe("The first use of the last day (UTC) with any; null before it"),
    })),
  }),
  errors: [],
});

/** `DELETE /v1/users/{userId}/keys/{userKeyId}` */
export const revokeUserKey = defineCall({
  id: "revokeUserKey",
  method: "DELETE",
  path: "/v1/users/:userId/keys/:userKeyId",
  access: "secret",
  hasNoBody: true,
  input: z.object({ ...ofUser, userKeyId: z.string() }),
  tag: "Accounts",
  summary: "Revoke a key of a user",
  description:
    "Every call that begins after the answer refuses the key, and its streams end. Calls of models in flight end " +
    "and are charged as usual.",
  answer: z.strictObject({ userKeyId: z.string() }),
  errors: ["not_found"],
});
