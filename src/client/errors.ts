// Errors of calls: the error class, and the codes of the client itself.

import type { ReserveReason, ServiceErrorCode } from "./wire_types.ts";

/**
 * Codes that only the client uses: no connection or a broken one, no answer in time, an answer that is not from
 * the service (such as the error page of a proxy), a request that is not a message of a webhook.
 */
export type ClientErrorCode = "network_error" | "timeout" | "bad_answer" | "invalid_webhook";

/** The members of an error. */
export interface ErrorParts {
  readonly code: string;
  readonly status: number;
  readonly message: string;
  readonly details?: unknown;
  readonly requestId?: string | null;
  readonly retryAfterMs?: number | null;
  readonly cause?: unknown;
}

/**
 * The error of a call that failed.
 *
 * @example At the limit, track is an error and reserve is not
 * ```ts
 * try {
 *   await client.track("user_1", "image.render", 101);
 * } catch (error) {
 *   if (!(error instanceof HoldfastError)) throw error;
 *   console.log(error.code); // "limit_reached"
 *   console.log(error.status); // 429
 * }
 * const hold = await client.reserve("user_1", "image.render", 1, {}, { count: 101 });
 * console.log(hold.reasons); // ["limit_reached"]
 * ```
 */
export class HoldfastError extends Error {
  /** The kind of the error. Compare this member; later versions of the service may have more codes. */
  readonly code: ServiceErrorCode | ClientErrorCode | ReserveReason | (string & Record<never, never>);
  /** The HTTP status; 0 without an answer. */
  readonly status: number;
  /**
   * More about the error, for some codes. For `invalid_request`: the invalid members as `[{ path, message }]`. For
   * `limit_reached` of `track`: `LimitReachedDetails`.
   */
  readonly details: unknown;
  /** The id of the request in the service's log; null without an answer. */
  readonly requestId: string | null;
  /** The pause that the service asks for before the next try; null if it does not ask. */
  readonly retryAfterMs: number | null;

  constructor({ code, status, message, details, requestId, retryAfterMs, cause }: ErrorParts) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "HoldfastError";
    this.code = code;
    this.status = status;
    this.details = details;
    this.requestId = requestId ?? null;
    this.retryAfterMs = retryAfterMs ?? null;
  }
}

/** The error of an input that cannot be sent. It is thrown before anything is sent. */
export function invalidInput(message: string, cause?: unknown): HoldfastError {
  return new HoldfastError({ code: "invalid_request", status: 400, message, cause });
}
