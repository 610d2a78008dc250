// Consent, erasure and export of a person.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { endUserId, mode, nameOf } from "./fields.ts";
import { event, nothing, time } from "./records.ts";
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
  description: "The default scope, all, is analytics and ai_personalization. Metering goes on. Idempotent.",
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
  summary: "Opt a person in again",
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
  summary: "Whether a person has opted out of one scope",
  description: "The default scope is analytics.",
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
  summary: "Erase everything of a person",
  description:
    "Covers every id and alias. The person is hidden at once and erased soon after; a second request " +
    "while a job is open answers that job.",
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
  summary: "How far an erasure is",
  answer: z.strictObject({
    status: z.enum(["queued", "in_progress", "completed", "failed"]),
    requestedAt: time,
    startedAt: time.nullable(),
    completedAt: time.nullable(),
    errorMessage: z.string().nullable(),
  }),
  errors: ["not_found"],
});

const properties = z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()]));

/** `POST /v1/export-person` */
export const exportPerson = defineCall({
  id: "exportPerson",
  method: "POST",
  path: "/v1/export-person",
  access: "secret",
  input: z.object({ distinctId: endUserId }),
  answersToken: true,
  tag: "Privacy",
  summary: "A link to everything of a person",
  description: "The link works for 24 hours and needs no key.",
  answer: z.strictObject({
    downloadUrl: z.url(),
    expiresAt: time.describe("24 hours from now"),
    format: z.literal("json"),
  }),
  errors: ["not_implemented"],
});

/** `GET /v1/export-download` */
export const downloadExport = defineCall({
  id: "downloadExport",
  method: "GET",
  path: "/v1/export-download",
  access: "open",
  input: z.object({ token: z.string().optional() }),
  isLong: true,
  mediaType: "application/json",
  tag: "Privacy",
  summary: "The export document of a person",
  description: "The token of the link is the authorisation. The document is made while it is sent.",
  answer: z.strictObject({
    format: z.literal("json"),
    exportedAt: time,
    appId: z.string(),
    mode,
    distinctId: z.string(),
    person: z.strictObject({
      personId: z.string(),
      distinctIds: z.array(z.string()),
      properties,
      identifiedAt: time.nullable(),
      createdAt: time,
    }).nullable(),
    events: z.strictObject({
      analytics: z.array(z.strictObject({
        id: z.string(),
        event: z.string(),
        properties,
        timestamp: time,
      })),
      metering: z.array(event),
    }),
    consentLog: z.array(z.strictObject({
      id: z.string(),
      action: z.enum(["opt_out", "opt_in"]),
      scope: z.enum(["analytics", "ai_personalization", "all", "prompt_logging"]),
      consentGiven: z.boolean(),
      createdAt: time,
    })),
  }),
  errors: ["invalid_or_expired_token", "not_implemented"],
});
