// The gateway's calls in the API reference. Their bodies and answers are those of OpenAI and Anthropic and documented there;
// this file adds who is metered, as what, and the form of errors.

import { z } from "zod";
import { REFUSAL_CODES, type RefusalCode } from "../../src/domain/values/refusal.ts";
import type { CallDoc } from "../contract/definition.ts";
import type { ForeignCall, Page } from "../reference/pages.ts";
import { ANTHROPIC, type Dialect, OPENAI } from "./dialects.ts";

const code = z.string().describe(
  `The reason why a reserve is not allowed, or one of ${REFUSAL_CODES.join(", ")}`,
);

const openaiError = z.strictObject({
  error: z.strictObject({
    message: z.string(),
    type: z.enum(["invalid_request_error", "insufficient_quota", "rate_limit_error", "server_error"]),
    param: z.string().nullable().describe("The invalid member or header"),
    code,
  }),
}).meta({
  id: "GatewayError",
  description: "Refusals of the model server pass unchanged; its 401 and 403 become a 502.",
});

const anthropicError = z.strictObject({
  type: z.literal("error"),
  error: z.strictObject({
    type: z.enum([
      "invalid_request_error",
      "authentication_error",
      "permission_error",
      "not_found_error",
      "request_too_large",
      "rate_limit_error",
      "api_error",
      "overloaded_error",
    ]),
    message: z.string(),
    code,
    param: z.string().optional().describe("The invalid member or header"),
  }),
  request_id: z.string(),
}).meta({
  id: "AnthropicGatewayError",
  description: "Refusals of the model server pass unchanged, a 529 too; its 401 and 403 become a 502.",
});

const answer = z.looseObject({}).describe("What the model server answered");

const HEADERS = {
  "X-Holdfast-User": {
    description: "Who is metered; at /openai/v1 by default the body's user, with a user's key that user",
  },
  "X-Holdfast-Event": { description: "The event type, instead of the default" },
  "X-Holdfast-Run": { description: "A run of the user, in which the call counts" },
  "X-Holdfast-Metadata": { description: "A JSON object for the rules of plans; model is always the body's" },
};

const FITTING = {
  "X-Holdfast-Fit": {
    description:
      "<minOutputTokens>[;model,model]: the answer's limit, which the call must have, is lowered to what " +
      "is left, to minOutputTokens at the least; if that does not fit either, the first of the models is asked for " +
      "which it does. All tokens are those of one answer",
  },
};

const FITTED = {
  "X-Holdfast-Fitted": "<model>;<maxOutputTokens>: with X-Holdfast-Fit, what the model server was asked for",
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

type Doc = Pick<CallDoc, "id" | "summary" | "description">;

/** What a call takes beside its model. */
interface Taken {
  readonly members: z.ZodRawShape;
  readonly bodyType?: string;
  /** Whether a call may be fitted to what is left. */
  readonly fits?: boolean;
}

function metered(dialect: Dialect, path: string, doc: Doc, { members, fits = false, ...taken }: Taken): Page {
  const isOpenAI = dialect === OPENAI;
  const body = z.looseObject({
    model: z.string().describe("Its row in the catalog has the price"),
    ...isOpenAI
      ? { user: z.string().optional().describe("Who is metered, unless a header names a user") }
      : {},
    ...members,
  });
  return page(dialect, path, { ...doc, errors: METERED_ERRORS }, {
    method: "POST",
    body,
    headers: { ...HEADERS, ...fits ? FITTING : {} },
    answerHeaders: { "X-Holdfast-Reservation": "The hold of this call", ...fits ? FITTED : {} },
    ...taken,
  });
}

function page(
  dialect: Dialect,
  path: string,
  doc: Omit<CallDoc, "tag" | "answer">,
  foreign: Omit<ForeignCall, "error">,
): Page {
  return {
    path: dialect.path + path,
    mediaType: "application/json",
    doc: { ...doc, tag: "Gateway", answer },
    foreign: dialect === OPENAI
      ? { ...foreign, error: openaiError }
      : { ...foreign, error: anthropicError, unavailable: 529 },
  };
}

const PLAIN_ERRORS: readonly RefusalCode[] = [
  ...ERRORS,
  "invalid_request",
  "payload_too_large",
  "not_found",
  "forbidden",
];

const PLAIN = { headers: {}, answerHeaders: {} } as const;

function models(dialect: Dialect, id: string): Page {
  const doc = { id, summary: "The models that the app may call; not metered", errors: ERRORS };
  return page(dialect, "/models", doc, { ...PLAIN, method: "GET", body: null });
}

const IMAGES = METERED +
  "Held by n and counted by the images that come, as openai.images; stream is not possible.";

/** Every call of the gateway. */
export const GATEWAY_PAGES: readonly Page[] = [
  metered(OPENAI, "/chat/completions", {
    id: "gatewayChat",
    summary: "A chat completion, metered",
    description: METERED + "Metered as openai.chat. A stream passes through as it comes.",
  }, { fits: true, members: { messages: z.array(z.unknown()) } }),
  metered(OPENAI, "/responses", {
    id: "gatewayResponses",
    summary: "A response, metered",
    description: METERED +
      "Metered as openai.responses. A stream passes through as it comes; background is " +
      "not possible.",
  }, { fits: true, members: { input: z.unknown() } }),
  metered(OPENAI, "/embeddings", {
    id: "gatewayEmbeddings",
    summary: "Embeddings, metered",
    description: METERED + "Metered as openai.embeddings.",
  }, { members: { input: z.unknown() } }),
  metered(OPENAI, "/images/generations", {
    id: "gatewayImages",
    summary: "Images, metered",
    description: IMAGES,
  }, { members: { prompt: z.string(), n: z.int().positive().optional() } }),
  metered(OPENAI, "/images/edits", {
    id: "gatewayImageEdits",
    summary: "Edits of images, metered",
    description: IMAGES + " The body is a form with files of up to 32 MiB together, or JSON.",
  }, {
    members: { prompt: z.string(), n: z.int().positive().optional(), image: z.unknown() },
    bodyType: "multipart/form-data",
  }),
  models(OPENAI, "gatewayModels"),
  metered(ANTHROPIC, "/messages", {
    id: "gatewayMessages",
    summary: "A message, metered",
    description: METERED +
      "Metered as anthropic.messages. A stream passes through as it comes. The key is in " +
      "x-api-key, else the bearer token. Tools that Anthropic runs are refused unless the catalog allows them.",
  }, { fits: true, members: { max_tokens: z.int().optional(), messages: z.array(z.unknown()) } }),
  page(ANTHROPIC, "/messages/count_tokens", {
    id: "gatewayCountTokens",
    summary: "The tokens of a message; not metered",
    errors: PLAIN_ERRORS,
  }, {
    ...PLAIN,
    method: "POST",
    body: z.looseObject({ model: z.string(), messages: z.array(z.unknown()) }),
  }),
  models(ANTHROPIC, "gatewayAnthropicModels"),
  page(ANTHROPIC, "/models/:id", {
    id: "gatewayAnthropicModel",
    summary: "A model; not metered",
    errors: [...ERRORS, "not_found"],
  }, { ...PLAIN, method: "GET", body: null, parameters: { id: z.string() } }),
];
