// The two dialects of the gateway: where its calls are, which there are, how they name their key, what passes between caller
// and model server, and the form of errors. Everything else is the same for both.

import type { Catalog } from "../../src/domain/catalog/catalog.ts";
import { patternCovers } from "../../src/domain/values/match.ts";
import { DEFAULT_URL } from "../../src/integrations/compose/model_client.ts";
import type { Features, ModelServer, ServerKind } from "../../src/process/features.ts";
import type { AnswerShape } from "../../src/client/answer_shapes.ts";
import { Refused } from "../http/errors.ts";

/** A kind of call. */
export interface CallKind {
  /** Its path, here and at the server. */
  readonly path: string;
  readonly shape: AnswerShape;
  /** The event type, where the caller names none; null for a call that is neither held nor counted. */
  readonly event: string | null;
  /** Whether the body may be a form with files. */
  readonly takesForm?: boolean;
}

/** A refusal, before it has the form of a dialect. */
interface GatewayError {
  readonly status: number;
  /** The reason of a refused reserve, else our code. */
  readonly code: string;
  readonly message: string;
  /** The invalid member; null for none. */
  readonly param: string | null;
  /** Whether limits refuse: a rate, which passes by itself, or another limit. */
  readonly limit: "rate" | "quota" | null;
  readonly requestId: string;
}

/** What differs between the gateways of two kinds of model servers. */
export interface Dialect {
  readonly kind: ServerKind;
  /** The name that people know. */
  readonly label: string;
  /** The path under which its calls are. */
  readonly path: string;
  readonly calls: readonly CallKind[];
  /** Whether one model can be asked for, beside the list. */
  readonly hasModel: boolean;
  /** The header that has the key, if it is there; else it is the bearer token. */
  readonly keyHeader: string | null;
  /** The setting that switches the gateway on. */
  readonly setting: string;
  readonly serverOf: (features: GatewayFeatures) => ModelServer | null;
  /** The address of a path at a server. */
  readonly urlOf: (baseUrl: string | null, path: string) => string;
  readonly keyHeaders: (apiKey: string) => Readonly<Record<string, string>>;
  /** Headers of a caller's request that the server receives. */
  readonly asked: readonly string[];
  /** Whether the server receives the query of a caller's request. */
  readonly passesQuery: boolean;
  /** Headers of the server that the caller receives. */
  readonly passed: readonly string[];
  /** The header that has the id of a request, beside X-Request-Id. */
  readonly idHeader: string | null;
  /** The status and the body of a refusal. */
  readonly errorOf: (error: GatewayError) => { readonly status: number; readonly body: unknown };
}

export type GatewayFeatures = Pick<Features, "modelServer" | "anthropicServer" | "upstreams">;

const withoutSlash = (url: string) => url.replace(/\/+$/, "");

export const OPENAI: Dialect = {
  kind: "openai",
  label: "OpenAI",
  path: "/openai/v1",
  calls: [
    { path: "/chat/completions", shape: "chat", event: "openai.chat" },
    { path: "/responses", shape: "responses", event: "openai.responses" },
    { path: "/embeddings", shape: "none", event: "openai.embeddings" },
    { path: "/images/generations", shape: "images", event: "openai.images" },
    { path: "/images/edits", shape: "images", event: "openai.images", takesForm: true },
  ],
  hasModel: false,
  keyHeader: null,
  setting: "OPENAI_API_KEY",
  serverOf: ({ modelServer }) => modelServer,
  urlOf: (baseUrl, path) => withoutSlash(baseUrl ?? DEFAULT_URL) + path,
  keyHeaders: (apiKey) => ({ authorization: `Bearer ${apiKey}` }),
  asked: ["openai-beta"],
  passesQuery: false,
  passed: ["openai-processing-ms", "openai-version", "retry-after", "retry-after-ms", "x-should-retry"],
  idHeader: null,
  errorOf: ({ status, code, message, param, limit }) => {
    const type = limit === "rate"
      ? "rate_limit_error"
      : limit === "quota"
      ? "insufficient_quota"
      : status < 500
      ? "invalid_request_error"
      : "server_error";
    return { status, body: { error: { message, type, param, code } } };
  },
};

const ANTHROPIC_URL = "https://api.anthropic.com";

/** The types of errors by their status; other refusals are of the request, other failures of the API. */
const ANTHROPIC_TYPES: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  529: "overloaded_error",
};

export const ANTHROPIC: Dialect = {
  kind: "anthropic",
  label: "Anthropic",
  path: "/anthropic/v1",
  calls: [
    { path: "/messages", shape: "messages", event: "anthropic.messages" },
    { path: "/messages/count_tokens", shape: "messages", event: null },
  ],
  hasModel: true,
  keyHeader: "x-api-key",
  setting: "ANTHROPIC_API_KEY",
  serverOf: ({ anthropicServer }) => anthropicServer,
  // As in Anthropic's own clients, the base URL has no version; one that has it means the same.
  urlOf: (baseUrl, path) => `${withoutSlash(baseUrl ?? ANTHROPIC_URL).replace(/\/v1$/, "")}/v1${path}`,
  keyHeaders: (apiKey) => ({ "x-api-key": apiKey }),
  asked: ["anthropic-version", "anthropic-beta"],
  passesQuery: true,
  passed: ["retry-after", "retry-after-ms", "x-should-retry"],
  idHeader: "request-id",
  errorOf: ({ status: ours, code, message, param, requestId }) => {
    const status = ours === 503 ? 529 : ours;
    const type = ANTHROPIC_TYPES[status] ?? (status < 500 ? "invalid_request_error" : "api_error");
    const error = { type, message, code, ...param === null ? {} : { param } };
    return { status, body: { type: "error", error, request_id: requestId } };
  },
};

export const DIALECTS: readonly Dialect[] = [OPENAI, ANTHROPIC];

/** Whether no server of a dialect is set. */
export function isOff({ kind, serverOf }: Dialect, features: GatewayFeatures): boolean {
  return serverOf(features) === null && !features.upstreams.some((upstream) => upstream.kind === kind);
}

/**
 * Returns the server of a model: that of the first rule of the catalog that covers it, else that of the setting.
 *
 * @param model null for a call without a model
 * @throws Refused with `not_implemented` and the setting that is missing
 */
export function serverFor(
  dialect: Dialect,
  features: GatewayFeatures,
  { gateway }: Catalog,
  model: string | null,
): ModelServer {
  for (const { models, upstream: name } of model === null ? [] : gateway.upstreams) {
    if (!models.some((pattern) => patternCovers(pattern, model as string))) continue;
    const upstream = features.upstreams.find((each) => each.name === name);
    if (upstream === undefined) throw notSet(`add the server "${name}" to HOLDFAST_UPSTREAMS`);
    if (upstream.kind !== dialect.kind) continue;
    if (upstream.server === null) {
      throw notSet(`set ${upstream.keyVariable} to the key of the server "${name}"`);
    }
    return upstream.server;
  }
  const server = dialect.serverOf(features);
  if (server === null) throw switchedOff(dialect);
  return server;
}

/** The refusal of a gateway without a server. */
export function switchedOff({ setting }: Dialect): Refused {
  return notSet(`set ${setting} to the key of a model server`);
}

function notSet(advice: string): Refused {
  return new Refused("not_implemented", `The gateway is off: ${advice}`);
}
