// The meaning of each error code, and the codes that a call can answer.

import type { RefusalCode } from "../../src/domain/values/refusal.ts";
import type { Access, CallDefinition } from "../contract/definition.ts";

/** The meaning of each code. */
export const MEANING: Readonly<Record<RefusalCode, string>> = {
  unavailable: "The service cannot answer right now; retry after Retry-After.",
  invalid_key: "The API key or admin token is missing, malformed, wrong or revoked.",
  invalid_or_expired_token: "The token of the export link is missing, invalid or expired.",
  not_found: "Not found, or hidden from this caller.",
  method_not_allowed: "The path does not allow this method.",
  requires_secret_key: "The call requires a secret key.",
  forbidden: "The caller is not allowed to do this.",
  rate_limited:
    "The rate limit of the API key is exceeded, or too many wrong tokens were sent; retry after " +
    "Retry-After.",
  payload_too_large:
    "The body is larger than 1 MiB (a batch 8 MiB, a call of the gateway 32 MiB), or than 64 KiB with a " +
    "public key.",
  invalid_request: "The request is malformed; the message and details name the invalid member.",
  idempotency_conflict: "The Idempotency-Key was used for another call.",
  not_implemented: "A setting that this call requires is not configured.",
  workspace_limit_reached: "The workspace's operations of this month are used up.",
  test_quota_exceeded: "The quota of test mode is used up.",
  credit_pack_not_found: "Credit pack not found or archived.",
  invalid_quantity: "The credit pack requires a quantity greater than 0.",
  credit_balance_not_found: "Credit balance not found.",
  alias_conflict: "from is already an alias of another user.",
  alias_cycle: "Both ids are the same, or to is already an alias of from.",
  parent_cycle: "The parent is the user itself, or a user below it.",
  path_too_long: "A path would have more than 8 users.",
  consent_required: "Linking an anonymous session requires consentGiven: true.",
  reservation_not_pending: "The reservation is already settled.",
  run_ended: "The run, or a run around it, has ended.",
  already_canceled: "The subscription has already ended.",
  trial_used: "The user had the trial of the plan, or has the plan without one.",
  catalog_in_use:
    "A plan or credit pack that would be removed is still in use, and can only be archived; or another " +
    "catalog version than expectedVersion is in force.",
  no_subscription: "A user above had a plan and has none now; details name the blocked event.",
  unmatched_event: "The plan does not cover the event; details name the blocked event.",
  unpriced_model:
    "Of a user with a parent: a limit counts cents, and the call has no price; details name the blocked event.",
  reservation_headroom_exceeded: "The headroom of a limit leaves no room.",
  member_limit_reached:
    "The user's share of a limit of a user above is used up; details name the blocked event and the limit groups.",
  run_limit_reached:
    "A limit of the run, or of a run around it, leaves no room; details name the blocked event.",
  rate_limit_reached:
    "A rate leaves no room now; details name the blocked event and retryAfterMs, and Retry-After has the seconds.",
  concurrency_limit_reached: "Too many calls are in flight.",
  limit_reached:
    "A limit of the user's plan is reached; details name the blocked event and the limit groups without " +
    "room.",
  ai_budget_exceeded: "The workspace's AI budget of this month is spent.",
  generation_failed: "The model server failed, or its answer did not match the schema.",
  not_processed: "The batch ran out of time before this pair; send it again.",
  internal_error: "Internal error.",
};

/** Codes of every call. */
const OF_EVERY_CALL: readonly RefusalCode[] = ["unavailable", "internal_error"];

const OF_ACCESS: Readonly<Record<Access | "admin" | "open", readonly RefusalCode[]>> = {
  secret: ["requires_secret_key"],
  credit_write: ["forbidden"],
  hidden: ["not_found"],
  any: [],
  any_user: ["forbidden"],
  end_user: ["forbidden"],
  token: ["forbidden"],
  test_secret: ["requires_secret_key", "forbidden"],
  admin: ["invalid_key", "not_implemented", "rate_limited"],
  open: [],
};

/** Returns every code that a call can answer. */
export function errorsOf(call: CallDefinition): RefusalCode[] {
  const { access, method, input, hasNoBody, errors } = call;
  const isKeyed = access !== "admin" && access !== "open";
  const ofKey: RefusalCode[] = isKeyed ? ["invalid_key", "rate_limited"] : [];
  const ofUserKey: RefusalCode[] = isKeyed && call.takesUserKey !== true ? ["requires_secret_key"] : [];
  const ofReader: RefusalCode[] = isKeyed && method !== "GET" && call.isRead !== true ? ["forbidden"] : [];
  const ofInput: RefusalCode[] = input === null || access === "open" ? [] : ["invalid_request"];
  const ofBody: RefusalCode[] = input === null || hasNoBody || method === "GET" ? [] : ["payload_too_large"];
  const ofWrite: RefusalCode[] = isKeyed && method !== "GET" ? ["idempotency_conflict"] : [];
  const all = [
    OF_EVERY_CALL,
    ofKey,
    ofUserKey,
    ofReader,
    OF_ACCESS[access],
    ofInput,
    ofBody,
    ofWrite,
    errors,
  ];
  return [...new Set(all.flat())];
}
