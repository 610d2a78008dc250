// Requests to the model server, and what of its answers goes back to callers: status, body, and the headers that speak
// of the answer. What speaks of the account behind our key stays here.

import { DEFAULT_URL } from "../../src/integrations/compose/model_client.ts";
import type { ModelServer } from "../../src/process/features.ts";
import { Refused } from "../http/errors.ts";
import { headersOf } from "../http/respond.ts";

/** What a caller's request may say to the server. */
const ASKED = ["openai-beta"];
/** What the server may say to the caller. */
const PASSED = [
  "openai-processing-ms",
  "openai-version",
  "retry-after",
  "retry-after-ms",
  "x-should-retry",
];

/**
 * Asks the server.
 *
 * @param body null for a GET
 * @throws whatever keeps it from answering
 */
export function askServer(
  { baseUrl, apiKey }: ModelServer,
  path: string,
  request: Request,
  body: Uint8Array<ArrayBuffer> | null,
  signal: AbortSignal,
): Promise<Response> {
  const headers = new Headers({
    authorization: `Bearer ${apiKey}`,
    // Compressed pieces would come late.
    "accept-encoding": "identity",
    "user-agent": "holdfast",
  });
  if (body !== null) headers.set("content-type", "application/json");
  for (const name of ASKED) {
    const value = request.headers.get(name);
    if (value !== null) headers.set(name, value);
  }
  const url = `${(baseUrl ?? DEFAULT_URL).replace(/\/+$/, "")}${path}`;
  const method = body === null ? "GET" : "POST";
  // A redirect could lead our key to another host.
  return fetch(url, { method, headers, body, signal, redirect: "manual" });
}

/** Whether the server refused our own key: its words would speak of that. */
export function refusesKey({ status }: Response): boolean {
  return status === 401 || status === 403;
}

/** What stands for a server that gave no answer of use. */
export function serverFailed(message: string): Refused {
  return new Refused("generation_failed", message);
}

/**
 * An answer of the server as ours, with another body.
 *
 * @param more headers of ours
 */
export function passedOn(
  answer: Response,
  body: BodyInit | null,
  id: string,
  more: Readonly<Record<string, string>> = {},
): Response {
  const headers = headersOf(id, answer.headers.get("content-type") ?? "application/json");
  for (const name of PASSED) {
    const value = answer.headers.get(name);
    if (value !== null) headers[name] = value;
  }
  return new Response(body, { status: answer.status, headers: { ...headers, ...more } });
}
