// Answers as HTTP responses: the headers that every answer carries, and the responses to thrown errors.

import type { WireAnswer } from "../../actors/idempotency.ts";
import { Stopping, Unavailable } from "../../actors/port.ts";
import { type Refusal, refusal } from "../../src/domain/values/refusal.ts";
import { write } from "./answer.ts";
import { RateLimited, Refused } from "./errors.ts";
import { log, messageOf } from "../../src/process/log.ts";
import { inParts, isLong } from "../../src/process/downloads.ts";
import { Unconfirmed } from "../../src/tenant/registry_changes.ts";

const ENCODER = new TextEncoder();
const REQUEST_ID = /^[A-Za-z0-9._-]{1,100}$/;
const RETRY_AFTER_S = "1";
const RETRY_MS = /"retryAfterMs":(\d+)/;
const RETRY_AFTER_MAX_S = 86_400;

/** The value of Retry-After for a time: whole seconds, at least 1. */
export function retryAfterOf(ms: number): string {
  return String(Math.min(Math.max(Math.ceil(ms / 1000), 1), RETRY_AFTER_MAX_S));
}

/** The value of Retry-After of an answer; null for none. */
export function retryAfterFor({ status, body }: WireAnswer): string | null {
  if (status === 503) return RETRY_AFTER_S;
  if (status !== 429) return null;
  const found = RETRY_MS.exec(body);
  return found === null ? null : retryAfterOf(Number(found[1]));
}

/** Returns the caller's request id where it is valid, else a new one. */
export function requestId(request: Request): string {
  const given = request.headers.get("x-request-id");
  return given !== null && REQUEST_ID.test(given) ? given : crypto.randomUUID();
}

/** The response to a request. */
export function respond(
  request: Request,
  answer: WireAnswer,
  isReplayed = false,
  id = requestId(request),
): Response {
  const { status, body } = answer;
  // We set headers one by one: with headers in its constructor, the runtime makes a second, native response, which
  // costs 2 to 3 microseconds more.
  const bytes = isLong(body) ? ENCODER.encode(body) : null;
  const sent = bytes === null ? body : inParts(bytes);
  const response = status === 200 ? new Response(sent) : new Response(sent, { status });
  const { headers } = response;
  if (bytes !== null) headers.set("content-length", String(bytes.length));
  headers.set("content-type", "application/json; charset=UTF-8");
  headers.set("x-request-id", id);
  headers.set("cache-control", "no-store");
  headers.set("x-content-type-options", "nosniff");
  headers.set("referrer-policy", "no-referrer");
  if (isReplayed) headers.set("idempotent-replayed", "true");
  if (status !== 200) {
    const retryAfter = retryAfterFor(answer);
    if (retryAfter !== null) headers.set("retry-after", retryAfter);
  }
  return response;
}

/** The headers that every answer carries, for answers without the JSON envelope. */
export function headersOf(id: string, contentType: string): Record<string, string> {
  return { "content-type": contentType, "cache-control": "no-store", ...carriedUnder(id) };
}

function carriedUnder(id: string) {
  return { "x-request-id": id, "x-content-type-options": "nosniff", "referrer-policy": "no-referrer" };
}

/** The same request under one id, for answers that several parts make. */
export function underOneId(request: Request): Request {
  const headers = new Headers(request.headers);
  headers.set("x-request-id", requestId(request));
  return new Request(request, { headers });
}

/** Adds the headers that every answer carries to a response that lacks them. */
export function completed(request: Request, response: Response): Response {
  for (const [name, value] of Object.entries(carriedUnder(requestId(request)))) {
    if (!response.headers.has(name)) response.headers.set(name, value);
  }
  return response;
}

/** Maps a thrown value to a response: a refusal, a temporary fault, or a bug. */
export function respondTo(request: Request, thrown: unknown): Response {
  const id = requestId(request);
  return refuseThrown(request, thrown, refusalOf(id, thrown), id);
}

/** Maps a thrown value and its refusal to an error response. */
export function refuseThrown(request: Request, thrown: unknown, refusal: Refusal, id: string): Response {
  const response = refuse(request, refusal, id);
  if (thrown instanceof RateLimited) response.headers.set("retry-after", String(thrown.retryAfterS));
  return thrown instanceof Stopping ? lastOf(response) : response;
}

/** Marks a response as the last one on its connection. */
export function lastOf(response: Response): Response {
  response.headers.set("connection", "close");
  return response;
}

/** The response of a refusal. */
export function refuse(request: Request, refusal: Refusal, id = requestId(request)): Response {
  return respond(request, write({ ok: false, error: refusal }), false, id);
}

/** Maps a thrown value to a refusal. A value that is neither a refusal nor a temporary fault is a bug, and logged. */
export function refusalOf(requestId: string, thrown: unknown): Refusal {
  if (thrown instanceof Refused) return thrown.refusal;
  // The caller has to know that the change was made.
  if (thrown instanceof Unconfirmed) return refusal("unavailable", thrown.message);
  if (thrown instanceof Unavailable) {
    return refusal("unavailable", "The service cannot answer right now: try again");
  }
  const stack = thrown instanceof Error ? thrown.stack : undefined;
  log("error", "A request failed", { requestId, error: messageOf(thrown), stack });
  return refusal("internal_error", "Something went wrong on our side");
}
