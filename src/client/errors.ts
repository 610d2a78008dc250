// Errors of calls: the codes of the service, those of the client itself, and the one error class that carries both.

import type { ServiceErrorCode } from "./wire_types.ts";

/**
 * Codes that only the client uses: no connection or a broken one, no answer in time, an answer that is not the
 * service's (a proxy's error page, say), a request that is no message of a webhook.
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
  /** What happened. Compare this one; later versions of the service may know more codes. */
  readonly code: ServiceErrorCode | ClientErrorCode | (string & Record<never, never>);
  /** The HTTP status; 0 when no answer came. */
  readonly status: number;
  /**
   * More about it, for some codes. Of `invalid_request`: the members at fault as `[{ path, message }]`. Of `track`'s
   * `limit_reached`: `LimitReachedDetails`.
   */
  readonly details: unknown;
  /** Names the request in the service's log; null when no answer came. */
  readonly requestId: string | null;
  /** How long the service asks to wait before the next try; null when it does not ask. */
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

/** The error of an input that cannot be sent as it is; nothing was sent. */
export function invalidInput(message: string, cause?: unknown): HoldfastError {
  return new HoldfastError({ code: "invalid_request", status: 400, message, cause });
}
