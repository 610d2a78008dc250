// The model server: one question, one answer, over the OpenAI protocol. Every fault there becomes a ModelFailure; its
// message never has text of the server, which may quote a key or a prompt.

import type { ProviderUsage } from "../../domain/pricing/provider_usage.ts";
import type OpenAI from "openai";
import { REQUEST_LIMITS } from "../../process/limits.ts";
import type { ModelServer } from "../../process/features.ts";

/** A question to a model. */
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

/** The answer; null for a part that is missing or malformed. */
export interface ModelAnswer {
  readonly text: string | null;
  readonly usage: ProviderUsage | null;
}

/** The model server did not answer, or answered with an error. */
export class ModelFailure extends Error {
  override readonly name = "ModelFailure";
}

/** The server that is called when the settings name no other. */
export const DEFAULT_URL = "https://api.openai.com/v1";
const SCHEMA_NAME_MAX = 64;
const clients = new WeakMap<ModelServer, OpenAI>();

/** Asks once. When the signal aborts, throws its reason at once, whatever the connection does. */
export async function askModel(
  server: ModelServer,
  question: Question,
  signal: AbortSignal,
): Promise<ModelAnswer> {
  // Loaded with the first question: a process without a model server does not need the package.
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

/** Makes a client from the settings alone: it reads no environment variables, and logs nothing. */
function clientOf(Client: typeof OpenAI, server: ModelServer): OpenAI {
  let client = clients.get(server);
  if (client === undefined) {
    client = new Client({
      apiKey: server.apiKey,
      baseURL: server.baseUrl ?? DEFAULT_URL,
      organization: null,
      project: null,
      maxRetries: 0,
      // A redirect could send the prompt to another host.
      fetchOptions: { redirect: "manual" },
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

/** Reads an answer without trusting its form: any OpenAI-compatible server may have sent it. */
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
