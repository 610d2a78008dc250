// Answers as HTTP responses: one place for the headers that every answer carries and for what was thrown.

import type { WireAnswer } from "actors/idempotency.ts";
import { Unavailable } from "actors/port.ts";
import { type Refusal, refusal } from "domain/refusal.ts";
import { errorBody, Refused, STATUS } from "routes/errors.ts";
import { log, messageOf } from "src/log.ts";

const REQUEST_ID = /^[A-Za-z0-9._-]{1,100}$/;
const RETRY_AFTER_S = "1";

/** The caller's request id where it is well formed, else a new one. */
export function requestId(request: Request): string {
  const given = request.headers.get("x-request-id");
  return given !== null && REQUEST_ID.test(given) ? given : crypto.randomUUID();
}

/** The response to a request. */
export function respond(
  request: Request,
  { status, body }: WireAnswer,
  isReplayed = false,
  id = requestId(request),
): Response {
  const headers = headersOf(id, "application/json; charset=UTF-8");
  if (isReplayed) headers["idempotent-replayed"] = "true";
  if (status === 503) headers["retry-after"] = RETRY_AFTER_S;
  return new Response(body, { status, headers });
}

/** The headers that every answer carries. */
export function headersOf(id: string, contentType: string): Record<string, string> {
  return {
    "content-type": contentType,
    "x-request-id": id,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
  };
}

/** The response to what a request threw: a refusal, a fault that may pass, or a bug. */
export function respondTo(request: Request, thrown: unknown): Response {
  const id = requestId(request);
  return refuse(request, refusalOf(id, thrown), id);
}

/** The response of a refusal. */
export function refuse(request: Request, refusal: Refusal, id = requestId(request)): Response {
  return respond(request, { status: STATUS[refusal.code], body: errorBody(refusal) }, false, id);
}

/** The refusal of what a request threw; a bug is logged. */
export function refusalOf(requestId: string, thrown: unknown): Refusal {
  if (thrown instanceof Refused) return thrown.refusal;
  if (thrown instanceof Unavailable) {
    return refusal("unavailable", "The service cannot answer right now: try again");
  }
  const stack = thrown instanceof Error ? thrown.stack : undefined;
  log("error", "A request failed", { requestId, error: messageOf(thrown), stack });
  return refusal("internal_error", "Something went wrong on our side");
}
