// Reads answers: the envelope of data or an error.

import { HoldfastError } from "./errors.ts";
import { readRetryAfter } from "./retry.ts";

/** The answer to a call. */
export interface Answer {
  readonly body: unknown;
  readonly status: number;
  readonly requestId: string | null;
}

/** The body of a success. Throws for an error of the service, and for an answer from another program. */
export function readAnswer({ ok, status, headers }: Response, text: string): Answer {
  const requestId = headers.get("x-request-id");
  const retryAfterMs = readRetryAfter(headers.get("retry-after"), Date.now());
  const body = parse(text);
  if (ok && body !== undefined) return { body, status, requestId };
  const error = (body as { error?: Record<string, unknown> } | null | undefined)?.error;
  if (typeof error?.code === "string" && typeof error.message === "string") {
    const { code, message, details } = error as { code: string; message: string; details?: unknown };
    throw new HoldfastError({ code, status, message, details, requestId, retryAfterMs });
  }
  throw badAnswer(status, requestId, retryAfterMs);
}

/** The data of an answer. Throws where it has none. */
export function dataOf({ body, status, requestId }: Answer): unknown {
  const { ok, data } = (body ?? {}) as { ok?: unknown; data?: unknown };
  if (ok !== true || data === undefined) throw badAnswer(status, requestId, null);
  return data;
}

/** The error of an answer that is not from the service. */
export function badAnswer(
  status: number,
  requestId: string | null,
  retryAfterMs: number | null,
): HoldfastError {
  const message = `The answer with status ${status} is not from the service; check baseUrl`;
  return new HoldfastError({ code: "bad_answer", status, message, requestId, retryAfterMs });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
