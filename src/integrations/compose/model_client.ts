// The model server: one question, one answer, over the OpenAI protocol. Whatever goes wrong there is a ModelFailure
// whose message holds no text of the server's, since that may quote a key or a prompt.

import type { ProviderUsage } from "../../domain/pricing/provider_usage.ts";
import type OpenAI from "openai";
import { REQUEST_LIMITS } from "../../process/limits.ts";
import type { ModelServer } from "../../process/features.ts";

/** What a model is asked. */
export interface Question {
  /** The model's id, as the catalog and the server know it. */
  readonly model: string;
  readonly instructions: string;
  readonly prompt: string;
  readonly schemaName: string;
  readonly schema: Readonly<Record<string, unknown>>;
  readonly isStrict: boolean;
  readonly maxOutputTokens?: number | undefined;
  readonly temperature?: number | undefined;
}

/** What came back; null for what the server left out or garbled. */
export interface ModelAnswer {
  readonly text: string | null;
  readonly usage: ProviderUsage | null;
}

/** The model server did not answer, or answered with an error. */
export class ModelFailure extends Error {
  override readonly name = "ModelFailure";
}

/** Where calls go when the settings name no other server. */
export const DEFAULT_URL = "https://api.openai.com/v1";
const SCHEMA_NAME_MAX = 64;
const clients = new WeakMap<ModelServer, OpenAI>();

/** Asks once; when the signal aborts, its reason is thrown at once, whatever the connection does. */
export async function askModel(
  server: ModelServer,
  question: Question,
  signal: AbortSignal,
): Promise<ModelAnswer> {
  // Loaded with the first question: a process without a model server never needs the package.
  const { APIError, default: Client } = await import("openai");
  try {
    return readAnswer(await unlessAborted(send(clientOf(Client, server), question, signal), signal));
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    const status = error instanceof APIError ? error.status : undefined;
    throw new ModelFailure(
      status === undefined ? "The model server did not answer" : `The model server answered ${status}`,
    );
  }
}

/** The settings name everything: nothing is taken from other variables of the environment, and nothing is logged. */
function clientOf(Client: typeof OpenAI, server: ModelServer): OpenAI {
  let client = clients.get(server);
  if (client === undefined) {
    client = new Client({
      apiKey: server.apiKey,
      baseURL: server.baseUrl ?? DEFAULT_URL,
      organization: null,
      project: null,
      maxRetries: 0,
      logLevel: "off",
    });
    clients.set(server, client);
  }
  return client;
}

function send(client: OpenAI, question: Question, signal: AbortSignal): Promise<unknown> {
  const { model, instructions, prompt, schema, isStrict, maxOutputTokens, temperature } = question;
  const name = question.schemaName.slice(0, SCHEMA_NAME_MAX);
  return client.chat.completions.create({
    model,
    messages: [{ role: "system", content: instructions }, { role: "user", content: prompt }],
    response_format: { type: "json_schema", json_schema: { name, schema, strict: isStrict } },
    ...(maxOutputTokens === undefined ? {} : { max_completion_tokens: maxOutputTokens }),
    ...(temperature === undefined ? {} : { temperature }),
  }, { signal });
}

async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", onAbort);
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Any OpenAI-compatible server may stand behind it, so no member is taken for granted. */
function readAnswer(completion: unknown): ModelAnswer {
  const { choices, usage } = looseOf(completion);
  const text = looseOf(looseOf(Array.isArray(choices) ? choices[0] : null).message).content;
  const reported = looseOf(usage);
  const hasFigures = isTokens(reported.prompt_tokens) && isTokens(reported.completion_tokens);
  return { text: typeof text === "string" ? text : null, usage: hasFigures ? reported : null };
}

function looseOf(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? value as Record<string, unknown> : {};
}

function isTokens(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0 &&
    (value as number) <= REQUEST_LIMITS.amountMax;
}
