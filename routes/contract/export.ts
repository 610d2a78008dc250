// The export of a person: a signed link, and the document that it opens.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { endUserId, mode } from "./fields.ts";
import { event, period, runLimit, time, unit } from "./records.ts";

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
  summary: "Create a link to a person's data",
  description: "The link is valid for 24 hours and needs no key.",
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
  mediaType: "application/json",
  tag: "Privacy",
  summary: "Download a person's data",
  description:
    "The token of the link authorizes the download. The document is generated while it is sent. At " +
    "most 2 downloads of a person and 20 of an app are open at a time; above that the answer is rate_limited. " +
    "A reader that takes nothing for 60 s is disconnected. HEAD checks the token and makes no document.",
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
    runs: z.array(z.strictObject({
      runId: z.string(),
      parentRunId: z.string().nullable(),
      name: z.string().nullable(),
      metadata: z.record(z.string(), z.unknown()).nullable(),
      createdAt: time,
      expiresAt: time,
      endedAt: time.nullable(),
      reason: z.string().nullable(),
      limits: z.array(runLimit),
    })).optional().describe("Absent for a person without runs"),
    keys: z.array(z.strictObject({
      id: z.string(),
      name: z.string().nullable(),
      createdAt: time,
      expiresAt: time.nullable(),
      lastUsedAt: time.nullable(),
    })).describe("Keys of the user that are not revoked"),
    shares: z.array(z.strictObject({
      groupId: z.string(),
      unit,
      period,
      count: z.number(),
      costCents: z.number(),
    })).optional().describe("What the person used of limit groups of users above; absent for nothing"),
    topUps: z.array(z.strictObject({
      topUpId: z.string(),
      status: z.enum(["open", "processing", "paid", "failed", "canceled"]),
      packId: z.string(),
      quantity: z.number(),
      units: z.number(),
      amount: z.number(),
      currency: z.string(),
      reason: z.string().nullable(),
      stripeCustomerId: z.string(),
      paymentIntentId: z.string().nullable(),
      createdAt: time,
      settledAt: time.nullable(),
    })).optional().describe("Absent for a person without top-ups"),
  }),
  errors: ["invalid_or_expired_token", "not_implemented", "rate_limited"],
});
