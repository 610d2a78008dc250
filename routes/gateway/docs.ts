// The gateway's calls in the API reference. Their bodies and answers are OpenAI's and documented there; this file adds who
// is metered, as what, and the form of errors.

import { z } from "zod";
import { REFUSAL_CODES, type RefusalCode } from "../../src/domain/values/refusal.ts";
import type { CallDoc } from "../contract/definition.ts";
import type { ForeignCall, Page } from "../reference/pages.ts";

const error = z.strictObject({
  error: z.strictObject({
    message: z.string(),
    type: z.enum(["invalid_request_error", "insufficient_quota", "server_error"]),
    param: z.string().nullable().describe("The invalid member or header"),
    code: z.string().describe(
      `The reason why a reserve is not allowed, or one of ${REFUSAL_CODES.join(", ")}`,
    ),
  }),
}).meta({
  id: "GatewayError",
  description: "Refusals of the model server pass unchanged; its 401 and 403 become a 502.",
});

const answer = z.looseObject({}).describe("What the model server answered");

const HEADERS = {
  "X-Holdfast-User": { description: "Who is metered; by default the body's user" },
  "X-Holdfast-Event": { description: "The event type, instead of the default" },
  "X-Holdfast-Run": { description: "A run of the user, in which the call counts" },
  "X-Holdfast-Metadata": { description: "A JSON object for the rules of plans; model is always the body's" },
};

const ERRORS: readonly RefusalCode[] = [
  "unavailable",
  "internal_error",
  "invalid_key",
  "rate_limited",
  "requires_secret_key",
  "not_implemented",
  "generation_failed",
];

const METERED_ERRORS: readonly RefusalCode[] = [
  ...ERRORS,
  "invalid_request",
  "payload_too_large",
  "not_found",
  "run_ended",
  "limit_reached",
  "workspace_limit_reached",
  "test_quota_exceeded",
  "ai_budget_exceeded",
  "forbidden",
];

const METERED =
  "Holds the input and the longest answer in tokens and in cents by the model's price, asks the " +
  "model server, and charges what it reports. A call for which the user's limits leave no room is a 429 with " +
  "x-should-retry: false, and no model is asked. ";

function metered(
  path: string,
  doc: Pick<CallDoc, "id" | "summary" | "description">,
  members: z.ZodRawShape,
): Page {
  const body = z.looseObject({
    model: z.string().describe("Its row in the catalog has the price"),
    user: z.string().optional().describe("Who is metered, unless a header names a user"),
    ...members,
  });
  const foreign: ForeignCall = {
    method: "POST",
    body,
    headers: HEADERS,
    answerHeaders: { "X-Holdfast-Reservation": "The hold of this call" },
    error,
  };
  return page(path, { ...doc, errors: METERED_ERRORS }, foreign);
}

function page(path: string, doc: Omit<CallDoc, "tag" | "answer">, foreign: ForeignCall): Page {
  return {
    path: `/openai/v1${path}`,
    mediaType: "application/json",
    doc: { ...doc, tag: "Gateway", answer },
    foreign,
  };
}

/** Every call of the gateway. */
export const GATEWAY_PAGES: readonly Page[] = [
  metered("/chat/completions", {
    id: "gatewayChat",
    summary: "A chat completion, metered",
    description: METERED + "Metered as openai.chat. A stream passes through as it comes.",
  }, { messages: z.array(z.unknown()) }),
  metered("/responses", {
    id: "gatewayResponses",
    summary: "A response, metered",
    description: METERED +
      "Metered as openai.responses. A stream passes through as it comes; background is " +
      "not possible.",
  }, { input: z.unknown() }),
  metered("/embeddings", {
    id: "gatewayEmbeddings",
    summary: "Embeddings, metered",
    description: METERED + "Metered as openai.embeddings.",
  }, { input: z.unknown() }),
  page(
    "/models",
    { id: "gatewayModels", summary: "The models of the model server; not metered", errors: ERRORS },
    { method: "GET", body: null, headers: {}, answerHeaders: {}, error },
  ),
];
