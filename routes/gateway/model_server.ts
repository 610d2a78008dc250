// Requests to the model server, and the parts of its answers that go back to callers: status, body, and the headers about
// the answer. Headers about the account behind this service's key are not passed on.

import type { ModelServer } from "../../src/process/features.ts";
import { Refused } from "../http/errors.ts";
import { headersOf } from "../http/respond.ts";
import type { Dialect } from "./dialects.ts";

/** What is asked of a server. */
export interface Asked {
  readonly path: string;
  /** null for a GET. */
  readonly body: Uint8Array<ArrayBuffer> | null;
  /** The content type of the body. */
  readonly type?: string;
}

/**
 * Asks the server.
 *
 * @throws what `fetch` throws when there is no answer
 */
export function askServer(
  { urlOf, keyHeaders, asked, passesQuery }: Dialect,
  { baseUrl, apiKey }: ModelServer,
  { path, body, type = "application/json" }: Asked,
  request: Request,
  signal: AbortSignal,
): Promise<Response> {
  const headers = new Headers({
    ...keyHeaders(apiKey),
    // Compressed pieces would come late.
    "accept-encoding": "identity",
    "user-agent": "holdfast",
  });
  if (body !== null) headers.set("content-type", type);
  for (const name of asked) {
    const value = request.headers.get(name);
    if (value !== null) headers.set(name, value);
  }
  const query = passesQuery ? new URL(request.url).search : "";
  const method = body === null ? "GET" : "POST";
  // A redirect could send the key to another host.
  return fetch(urlOf(baseUrl, path) + query, { method, headers, body, signal, redirect: "manual" });
}

/** Whether the server refused this service's key: its message would be about that key. */
export function refusesKey({ status }: Response): boolean {
  return status === 401 || status === 403;
}

/** The refusal when the server refused this service's key. */
export function keyRefused({ status, body }: Response): Refused {
  void body?.cancel().catch(() => {});
  return serverFailed(`The model server refused this service's key with ${status}`);
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
  { passed, idHeader }: Dialect,
  answer: Response,
  body: BodyInit | null,
  id: string,
  more: Readonly<Record<string, string>> = {},
): Response {
  const headers = headersOf(id, answer.headers.get("content-type") ?? "application/json");
  if (idHeader !== null) headers[idHeader] = id;
  for (const name of passed) {
    const value = answer.headers.get(name);
    if (value !== null) headers[name] = value;
  }
  return new Response(body, { status: answer.status, headers: { ...headers, ...more } });
}
