// Consent, and the erasure of a person.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { endUserId, nameOf } from "./fields.ts";
import { nothing, time } from "./records.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";

const anyScope = z.enum(["analytics", "ai_personalization", "all", "prompt_logging"]);
const oneScope = z.enum(["analytics", "ai_personalization", "prompt_logging"]);
const consentInput = z.object({ distinctId: endUserId, scope: anyScope.nullish() });

/** `POST /v1/opt-out` */
export const optOut = defineCall({
  id: "optOut",
  method: "POST",
  path: "/v1/opt-out",
  access: "secret",
  input: consentInput,
  tag: "Privacy",
  summary: "Opt a person out",
  description: "scope defaults to all, which covers analytics and ai_personalization. Metering continues. " +
    "Idempotent.",
  answer: nothing,
  errors: ["not_implemented"],
});

/** `POST /v1/opt-in` */
export const optIn = defineCall({
  id: "optIn",
  method: "POST",
  path: "/v1/opt-in",
  access: "secret",
  input: consentInput,
  tag: "Privacy",
  summary: "Opt a person back in",
  description: "Changes nothing for a person who never opted out.",
  answer: nothing,
  errors: [],
});

/** `GET /v1/opted-out` */
export const isOptedOut = defineCall({
  id: "isOptedOut",
  method: "GET",
  path: "/v1/opted-out",
  access: "secret",
  input: z.object({ distinctId: endUserId, scope: oneScope.optional() }),
  tag: "Privacy",
  summary: "Check whether a person opted out",
  description: "scope defaults to analytics.",
  answer: z.strictObject({ optedOut: z.boolean() }),
  errors: [],
});

/** `POST /v1/delete-person` */
export const deletePerson = defineCall({
  id: "deletePerson",
  method: "POST",
  path: "/v1/delete-person",
  access: "secret",
  input: z.object({ distinctId: endUserId }),
  tag: "Privacy",
  summary: "Delete a person",
  description:
    "Erases everything of the person, under every id and alias. The person is hidden at once and erased " +
    "soon after. While a deletion job is open, another request returns the same job.",
  answer: z.strictObject({ jobId: z.string() }),
  errors: ["not_implemented"],
});

/** `GET /v1/deletion-status` */
export const getDeletionStatus = defineCall({
  id: "getDeletionStatus",
  method: "GET",
  path: "/v1/deletion-status",
  access: "secret",
  input: z.object({ jobId: nameOf(REQUEST_LIMITS.idLengthMax) }),
  tag: "Privacy",
  summary: "Get the status of a deletion",
  answer: z.strictObject({
    status: z.enum(["queued", "in_progress", "completed", "failed"]),
    requestedAt: time,
    startedAt: time.nullable(),
    completedAt: time.nullable(),
    errorMessage: z.string().nullable(),
  }),
  errors: ["not_found"],
});
