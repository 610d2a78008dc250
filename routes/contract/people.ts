// Analytics people: capture, identify and the alias of two people.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { endUserId, eventName, metadata, moment, SHOWN_AS } from "./fields.ts";

type Property = string | number | boolean | null;
type Properties = Readonly<Record<string, Property>>;

/** An object of plain values. */
const properties = metadata.transform(({ members }, context): Properties => {
  for (const [name, value] of Object.entries(members)) {
    if (!isProperty(value)) {
      const message = `${name}: must be a string, a number, a boolean or null`;
      context.addIssue({ code: "custom", message });
      break;
    }
  }
  return members as Properties;
}).register(SHOWN_AS, {
  type: "object",
  additionalProperties: { type: ["string", "number", "boolean", "null"] },
});

function isProperty(value: unknown): value is Property {
  return typeof value === "number" ? Number.isFinite(value) : typeof value !== "object" || value === null;
}

/** `POST /v1/capture` */
export const capture = defineCall({
  id: "capture",
  method: "POST",
  path: "/v1/capture",
  access: "any",
  input: z.object({
    distinctId: endUserId.nullish().describe("Left out: an anonymous event, linked to no person"),
    event: eventName,
    properties: properties.nullish(),
    timestamp: moment.nullish().describe("Default: now. At most 24 hours in the future"),
  }),
  tag: "People",
  summary: "Capture an event of a person",
  description:
    "Without distinctId the event is anonymous. timestamp may be up to 24 hours ahead. The answer is " +
    "the same whether the event is recorded or dropped.",
  answer: z.strictObject({ accepted: z.literal(true) }),
  errors: [],
});

/** `POST /v1/identify` */
export const identify = defineCall({
  id: "identify",
  method: "POST",
  path: "/v1/identify",
  access: "any_user",
  input: z.object({
    distinctId: endUserId,
    properties: properties.nullish().describe("Overwrite properties of the same name"),
    propertiesOnce: properties.nullish().describe("Set only properties that the person does not have yet"),
    mergeAnonymousId: endUserId.nullish().describe("The id of an anonymous session of this person"),
    consentGiven: z.boolean().nullish()
      .describe("Whether the person agreed to the merge; required with mergeAnonymousId"),
  }).refine(({ distinctId, mergeAnonymousId }) => distinctId !== mergeAnonymousId, {
    path: ["mergeAnonymousId"],
    message: "must differ from distinctId",
  }),
  tag: "People",
  summary: "Identify a person",
  description: "Sets properties of the person: properties overwrite, propertiesOnce keep the first value. " +
    "mergeAnonymousId links an anonymous session and requires consentGiven: true. With a secret key, or a public key and the " +
    "end-user token of distinctId, both ids are one person from then on. With a public key alone the session must begin with " +
    "anon_, belong to no other person and have no usage: it stays a person by itself, which export, erasure and consents of " +
    "distinctId cover, and never the other way round.",
  answer: z.strictObject({ personId: z.string(), merged: z.boolean() }),
  errors: ["consent_required"],
});

/** `POST /v1/alias` */
export const aliasPerson = defineCall({
  id: "aliasPerson",
  method: "POST",
  path: "/v1/alias",
  access: "secret",
  input: z.object({
    distinctId: endUserId,
    alias: endUserId,
    consentGiven: z.boolean().nullish()
      .describe("Whether the person agreed; required for ids that start with anon_"),
  }),
  tag: "People",
  summary: "Make two ids one person",
  description: "Metering is not affected. An id that starts with anon_ requires consentGiven: true.",
  answer: z.strictObject({ personId: z.string() }),
  errors: ["alias_cycle", "consent_required"],
});
