// Errors in the shape of a dialect, so that its clients read them like errors of the model server. Codes are those of the rest
// of the API.

import { Stopping } from "../../actors/port.ts";
import type { ReserveReason } from "../../src/domain/state/refused_call.ts";
import type { FieldFault, RefusalCode } from "../../src/domain/values/refusal.ts";
import { RateLimited, Refused, STATUS } from "../http/errors.ts";
import { headersOf, lastOf, refusalOf, requestId, retryAfterOf } from "../http/respond.ts";
import type { Dialect } from "./dialects.ts";
import type { Reserved } from "./holds.ts";
import type { RouteMetrics } from "../http/request_metrics.ts";

/** The refusal of a call for which a user's limits leave no room. */
export class QuotaRefused extends Refused {
  readonly reason: ReserveReason;
  /** Present where rates and concurrency limits alone refuse. */
  readonly retryAfterMs: number | null | undefined;

  constructor({ reasons: [reason = "limit_reached"], limit, account, retryAfterMs }: Reserved) {
    const text = account === null ? REASONS[reason] : REASONS_ABOVE[reason]?.(account) ?? REASONS[reason];
    super("limit_reached", limit === null ? text : `${text}: ${textOf(limit)}`);
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
  }
}

function textOf({ label, resetsAt }: NonNullable<Reserved["limit"]>): string {
  return resetsAt === null ? label : `${label} (resets at ${resetsAt})`;
}

const REASONS: Readonly<Record<ReserveReason, string>> = {
  limit_reached: "The user's limit leaves no room for this call",
  reservation_headroom_exceeded: "The safety buffer of the user's plan leaves no room for this call",
  unmatched_event: "The user's plan does not cover this event",
  no_subscription: "The user has no subscription",
  unpriced_model: "The model has no price",
  member_limit_reached: "The user's share of an account's limit leaves no room for this call",
  run_limit_reached: "A limit of the run leaves no room for this call",
  rate_limit_reached: "The user's rate limit leaves no room for this call now",
  concurrency_limit_reached: "The user has too many calls in flight",
};

/** The reasons of a user above, by what it is called. */
const REASONS_ABOVE: Readonly<Partial<Record<ReserveReason, (account: string) => string>>> = {
  limit_reached: (account) => `The limit of ${account} leaves no room for this call`,
  reservation_headroom_exceeded: (account) =>
    `The safety buffer of the plan of ${account} leaves no room for this call`,
  no_subscription: (account) => `The subscription of ${account} has ended`,
  rate_limit_reached: (account) => `The rate limit of ${account} leaves no room for this call now`,
  concurrency_limit_reached: (account) => `${account} has too many calls in flight`,
};

const CAPS: ReadonlySet<RefusalCode> = new Set([
  "workspace_limit_reached",
  "test_quota_exceeded",
  "ai_budget_exceeded",
]);

/** Maps a thrown value to an error response, and counts it under its code. */
export function refuseCall(
  { errorOf, idHeader, keyHeader }: Dialect,
  metrics: RouteMetrics,
  startedAt: number,
  request: Request,
  thrown: unknown,
): Response {
  const id = requestId(request);
  const { code, message, details } = refusalOf(id, thrown);
  const retryAfterMs = thrown instanceof QuotaRefused ? thrown.retryAfterMs : undefined;
  const isQuota = thrown instanceof QuotaRefused || CAPS.has(code);
  const limit = retryAfterMs !== undefined ? "rate" : isQuota ? "quota" : null;
  const shownCode = thrown instanceof QuotaRefused ? thrown.reason : code;
  const { status, body } = errorOf({
    status: STATUS[code],
    code: shownCode,
    message,
    param: paramOf(details),
    limit,
    requestId: id,
  });
  const headers = headersOf(id, "application/json; charset=UTF-8");
  if (idHeader !== null) headers[idHeader] = id;
  // Clients retry a 429 by themselves, which is useless until the limit changes.
  if (limit === "quota") headers["x-should-retry"] = "false";
  if (STATUS[code] === 503) headers["retry-after"] = "1";
  if (thrown instanceof RateLimited) headers["retry-after"] = String(thrown.retryAfterS);
  if (retryAfterMs != null) headers["retry-after"] = retryAfterOf(retryAfterMs);
  const response = new Response(JSON.stringify(body), { status, headers });
  metrics.failed(request, { status, code: shownCode, message, requestId: id }, { members: null, keyHeader });
  return metrics.ended(startedAt, code, thrown instanceof Stopping ? lastOf(response) : response);
}

/** Records an error that the model server answered. */
export function recordServerError(
  { keyHeader }: Dialect,
  metrics: RouteMetrics,
  request: Request,
  { status, headers }: Response,
): void {
  const id = headers.get("x-request-id") ?? requestId(request);
  const message = `The model server answered ${status}`;
  const sent = { members: null, keyHeader };
  metrics.failed(request, { status, code: "generation_failed", message, requestId: id }, sent);
}

/** The invalid member: details of an `invalid_request` list it first. */
function paramOf(details: unknown): string | null {
  if (!Array.isArray(details)) return null;
  const [first] = details as FieldFault[];
  return first === undefined || first.path === "" ? null : first.path;
}
