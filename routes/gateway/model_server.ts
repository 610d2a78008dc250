// Requests to the model server, and the parts of its answers that go back to callers: status, body, and the headers about
// the answer. Headers about the account behind this service's key are not passed on.

import { DEFAULT_URL } from "../../src/integrations/compose/model_client.ts";
import type { ModelServer } from "../../src/process/features.ts";
import { Refused } from "../http/errors.ts";
import { headersOf } from "../http/respond.ts";

/** Headers of a caller's request that the server receives. */
const ASKED = ["openai-beta"];
/** Headers of the server that the caller receives. */
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
 * @throws what `fetch` throws when there is no answer
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
  // A redirect could send the key to another host.
  return fetch(url, { method, headers, body, signal, redirect: "manual" });
}

/** Whether the server refused this service's key: its message would be about that key. */
export function refusesKey({ status }: Response): boolean {
  return status === 401 || status === 403;
}

/** The refusal when the server gave no usable answer. */
export function serverFailed(message: string): Refused {
  return new Refused("generation_failed", message);
}

/**
 * Returns an answer of the server with another body.
 *
 * @param more headers to add
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
