// Opting out and in, and erasure. Specification, "Privacy"; section 9 of the decisions.

import { z } from "zod";
import { Refused } from "../http/errors.ts";
import { success } from "../http/answer.ts";
import { endpointsOn } from "../http/endpoint.ts";
import type { Endpoint } from "../http/endpoint_types.ts";
import type { EndpointDoc } from "../contract/doc.ts";
import {
  deletePersonAnswer,
  deletionStatusAnswer,
  nothing,
  optedOutAnswer,
} from "../contract/schemas/answers.ts";
import { endUserId, nameOf, timeText, timeTextOrNull } from "../contract/schemas/fields.ts";
import type { Features } from "../../src/process/features.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";
import { changeConsent, isOptedOut } from "../../src/people/consents.ts";
import { findErasure, requestErasure } from "../../src/people/erasure.ts";

type PrivacyWorld =
  & FeatureWorld
  & Parameters<typeof changeConsent>[0]
  & Parameters<typeof isOptedOut>[0]
  & Parameters<typeof requestErasure>[0]
  & Parameters<typeof findErasure>[0];

const endpoint = endpointsOn<PrivacyWorld>();

const anyScope = z.enum(["analytics", "ai_personalization", "all", "prompt_logging"]);
const oneScope = z.enum(["analytics", "ai_personalization", "prompt_logging"]);

/** `POST /v1/opt-out` and `POST /v1/opt-in`. */
function consentEndpoint(path: string, action: "opt_out" | "opt_in", doc: EndpointDoc) {
  return endpoint({
    method: "POST",
    path,
    access: "secret",
    input: z.object({ distinctId: endUserId, scope: anyScope.nullish() }),
    doc,
    handle: async ({ world, caller, input }) => {
      const scope = input.scope ?? "all";
      const coversAnalytics = scope === "analytics" || scope === "all";
      if (action === "opt_out" && coversAnalytics) requirePrivacySecret(world);
      const userKey = await changeConsent(world, caller.realm, input.distinctId, action, scope);
      return { answer: success({}), userKey };
    },
  });
}

/** `GET /v1/opted-out`: whether a person has opted out of one scope. */
const optedOut = endpoint({
  method: "GET",
  path: "/v1/opted-out",
  access: "secret",
  input: z.object({ distinctId: endUserId, scope: oneScope.optional() }),
  doc: {
    id: "isOptedOut",
    tag: "Privacy",
    summary: "Whether a person has opted out of one scope",
    description: "The default scope is analytics.",
    answer: optedOutAnswer,
    errors: [],
  },
  handle: async ({ world, caller, input }) => {
    const { distinctId, scope = "analytics" } = input;
    return success({ optedOut: await isOptedOut(world, caller.realm.realm, distinctId, scope) });
  },
});

/** `POST /v1/delete-person`: erase everything of a person. */
const deletePerson = endpoint({
  method: "POST",
  path: "/v1/delete-person",
  access: "secret",
  input: z.object({ distinctId: endUserId }),
  doc: {
    id: "deletePerson",
    tag: "Privacy",
    summary: "Erase everything of a person",
    description:
      "Covers every id and alias. The person is hidden at once and erased soon after; a second request " +
      "while a job is open answers that job.",
    answer: deletePersonAnswer,
    errors: ["not_implemented"],
  },
  handle: async ({ world, caller, input }) => {
    requirePrivacySecret(world);
    return success({ jobId: await requestErasure(world, caller.realm, input.distinctId) });
  },
});

/** `GET /v1/deletion-status`: how far an erasure is. */
const deletionStatus = endpoint({
  method: "GET",
  path: "/v1/deletion-status",
  access: "secret",
  input: z.object({ jobId: nameOf(REQUEST_LIMITS.idLengthMax) }),
  doc: {
    id: "getDeletionStatus",
    tag: "Privacy",
    summary: "How far an erasure is",
    answer: deletionStatusAnswer,
    errors: ["not_found"],
  },
  handle: async ({ world, caller, input }) => {
    const job = await findErasure(world, caller.realm.realm, input.jobId);
    if (job === null) throw new Refused("not_found", "No erasure has this jobId");
    return success({
      status: job.status,
      requestedAt: timeText(job.requested_at_ms),
      startedAt: timeTextOrNull(job.started_at_ms),
      completedAt: timeTextOrNull(job.completed_at_ms),
      errorMessage: job.error_message,
    });
  },
});

export const PRIVACY: readonly Endpoint<PrivacyWorld>[] = [
  consentEndpoint("/v1/opt-out", "opt_out", {
    id: "optOut",
    tag: "Privacy",
    summary: "Opt a person out",
    description: "The default scope, all, is analytics and ai_personalization. Metering goes on. Idempotent.",
    answer: nothing,
    errors: ["not_implemented"],
  }),
  consentEndpoint("/v1/opt-in", "opt_in", {
    id: "optIn",
    tag: "Privacy",
    summary: "Opt a person in again",
    description: "Changes nothing for a person who never opted out.",
    answer: nothing,
    errors: [],
  }),
  optedOut,
  deletePerson,
  deletionStatus,
];

interface FeatureWorld {
  readonly features: Pick<Features, "privacySecret">;
}

function requirePrivacySecret({ features }: FeatureWorld): void {
  if (features.privacySecret === null) {
    throw new Refused("not_implemented", "HOLDFAST_PRIVACY_SECRET is not set");
  }
}
