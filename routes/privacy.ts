// Opting out and in, and erasure. Specification, "Privacy"; section 9 of the decisions.

import { z } from "zod";
import { Refused } from "routes/errors.ts";
import { type Operation, operation, success } from "routes/operation.ts";
import { endUserId, textOf, timeText, timeTextOrNull } from "routes/schemas/fields.ts";
import { REQUEST_LIMITS } from "src/limits.ts";
import { changeConsent, isOptedOut } from "src/privacy/consents.ts";
import { findErasure, requestErasure } from "src/privacy/erasure.ts";
import type { Serving } from "src/service.ts";

const anyScope = z.enum(["analytics", "ai_personalization", "all", "prompt_logging"]);
const oneScope = z.enum(["analytics", "ai_personalization", "prompt_logging"]);

/** `POST /v1/opt-out` and `POST /v1/opt-in`. */
function consentOperation(path: string, action: "opt_out" | "opt_in") {
  return operation({
    method: "POST",
    path,
    access: "secret",
    input: z.object({ distinctId: endUserId, scope: anyScope.nullish() }),
    handle: async ({ serving, caller, input, firstAnswer }) => {
      const scope = input.scope ?? "all";
      const coversAnalytics = scope === "analytics" || scope === "all";
      if (action === "opt_out" && coversAnalytics) requirePrivacySecret(serving);
      const userKey = await changeConsent(serving, caller.realm, input.distinctId, action, scope);
      if (firstAnswer !== null) firstAnswer.userKey = userKey;
      return success({});
    },
  });
}

/** `GET /v1/opted-out`: whether a person has opted out of one scope. */
const optedOut = operation({
  method: "GET",
  path: "/v1/opted-out",
  access: "secret",
  input: z.object({ distinctId: endUserId, scope: oneScope.optional() }),
  handle: async ({ serving, caller, input }) => {
    const { distinctId, scope = "analytics" } = input;
    return success({ optedOut: await isOptedOut(serving, caller.realm.realm, distinctId, scope) });
  },
});

/** `POST /v1/delete-person`: erase everything of a person. */
const deletePerson = operation({
  method: "POST",
  path: "/v1/delete-person",
  access: "secret",
  input: z.object({ distinctId: endUserId }),
  handle: async ({ serving, caller, input }) => {
    requirePrivacySecret(serving);
    return success({ jobId: await requestErasure(serving, caller.realm, input.distinctId) });
  },
});

/** `GET /v1/deletion-status`: how far an erasure is. */
const deletionStatus = operation({
  method: "GET",
  path: "/v1/deletion-status",
  access: "secret",
  input: z.object({ jobId: textOf(1, REQUEST_LIMITS.idLengthMax) }),
  handle: async ({ serving, caller, input }) => {
    const job = await findErasure(serving, caller.realm.realm, input.jobId);
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

export const PRIVACY: readonly Operation<unknown>[] = [
  consentOperation("/v1/opt-out", "opt_out"),
  consentOperation("/v1/opt-in", "opt_in"),
  optedOut,
  deletePerson,
  deletionStatus,
];

function requirePrivacySecret({ features }: Serving): void {
  if (features.privacySecret === null) {
    throw new Refused("not_implemented", "HOLDFAST_PRIVACY_SECRET is not set");
  }
}
