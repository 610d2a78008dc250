// Analytics people: capture, identify and the alias of two people. Section 9 of the decisions.

import { z } from "zod";
import { answerOf, success } from "../http/answer.ts";
import { endpointsOn } from "../http/endpoint.ts";
import type { Endpoint } from "../http/endpoint_types.ts";
import { invalidMember, Refused } from "../http/errors.ts";
import { aliasPeopleAnswer, captureAnswer, identifyAnswer } from "../contract/schemas/answers.ts";
import { endUserId, eventName, metadata, moment, SHOWN_AS } from "../contract/schemas/fields.ts";
import { capture, type Properties, type Property } from "../../src/people/capture.ts";
import { identify } from "../../src/people/identify.ts";
import { PEOPLE_LIMITS } from "../../src/process/limits.ts";
import { aliasPeople } from "../../src/people/link.ts";

type PeopleWorld =
  & Parameters<typeof capture>[0]
  & Parameters<typeof identify>[0]
  & Parameters<typeof aliasPeople>[0];

const endpoint = endpointsOn<PeopleWorld>();

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

/** `POST /v1/capture`: record an event of a person, or of nobody. */
const captureEvent = endpoint({
  method: "POST",
  path: "/v1/capture",
  access: "any",
  input: z.object({
    distinctId: endUserId.nullish(),
    event: eventName,
    properties: properties.nullish(),
    timestamp: moment.nullish(),
  }),
  doc: {
    id: "capture",
    tag: "People",
    summary: "Record an event of a person, or of nobody",
    description:
      "Without distinctId the event is anonymous. timestamp may be up to 24 hours ahead. The answer is " +
      "the same whatever becomes of the event.",
    answer: captureAnswer,
    errors: [],
  },
  handle: async ({ world, caller, input }) => {
    const now = caller.realm.now();
    const at = input.timestamp ?? now;
    if (at > now + PEOPLE_LIMITS.timestampAheadMs) {
      throw invalidMember("timestamp", "must be at most 24 hours ahead");
    }
    const { distinctId = null, event } = input;
    await capture(world, caller.realm, { distinctId, event, properties: input.properties ?? {}, at });
    return success({ accepted: true });
  },
});

/** `POST /v1/identify`: say who an id is. */
const identifyPerson = endpoint({
  method: "POST",
  path: "/v1/identify",
  access: "any",
  input: z.object({
    distinctId: endUserId,
    properties: properties.nullish(),
    propertiesOnce: properties.nullish(),
    mergeAnonymousId: endUserId.nullish(),
    consentGiven: z.boolean().nullish(),
  }).refine(({ distinctId, mergeAnonymousId }) => distinctId !== mergeAnonymousId, {
    path: ["mergeAnonymousId"],
    message: "must differ from distinctId",
  }),
  doc: {
    id: "identify",
    tag: "People",
    summary: "Say who an id is",
    description:
      "properties overwrite, the first write of propertiesOnce wins. mergeAnonymousId links an anonymous " +
      "session with consentGiven: true.",
    answer: identifyAnswer,
    errors: ["consent_required"],
  },
  handle: async ({ world, caller, input }) => {
    const anonymousId = input.mergeAnonymousId ?? null;
    if (anonymousId !== null && input.consentGiven !== true) requireConsent("mergeAnonymousId");
    const result = await identify(world, caller.realm, {
      distinctId: input.distinctId,
      properties: input.properties ?? {},
      propertiesOnce: input.propertiesOnce ?? {},
      anonymousId,
    });
    return answerOf(result, (answer) => answer);
  },
});

/** `POST /v1/alias`: make one person of two ids; metering is not touched. */
const alias = endpoint({
  method: "POST",
  path: "/v1/alias",
  access: "secret",
  input: z.object({ distinctId: endUserId, alias: endUserId, consentGiven: z.boolean().nullish() }),
  doc: {
    id: "aliasPerson",
    tag: "People",
    summary: "Make one person of two ids",
    description: "Metering is not touched. An id that starts with anon_ needs consentGiven: true.",
    answer: aliasPeopleAnswer,
    errors: ["alias_cycle", "consent_required"],
  },
  handle: async ({ world, caller, input }) => {
    const { distinctId, alias } = input;
    if (distinctId === alias) throw new Refused("alias_cycle", "distinctId and alias are the same id");
    const needsConsent = distinctId.startsWith("anon_") || alias.startsWith("anon_");
    if (needsConsent && input.consentGiven !== true) requireConsent("alias");
    return success({ personId: await aliasPeople(world, caller.realm, distinctId, alias) });
  },
});

export const PEOPLE: readonly Endpoint<PeopleWorld>[] = [captureEvent, identifyPerson, alias];

function requireConsent(member: string): never {
  throw new Refused(
    "consent_required",
    `${member}: an anonymous session is linked only with consentGiven: true`,
  );
}
