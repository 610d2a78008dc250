// Errors in the reference: what each code means, and which codes an endpoint's key class and method bring with them. The statuses stand in `routes/http/errors.ts`. Specification, "Errors"; section 1 of the decisions.

import type { RefusalCode } from "../../src/domain/values/refusal.ts";
import type { Access, CallDefinition } from "../contract/definition.ts";

/** When each code is answered. */
export const MEANING: Readonly<Record<RefusalCode, string>> = {
  unavailable: "The service cannot answer right now; send the call again after Retry-After.",
  invalid_key: "The key or admin token is missing, malformed, wrong or revoked.",
  invalid_or_expired_token: "The export link's token is missing, tampered with or expired.",
  not_found: "What the call names does not exist, or is hidden from this caller.",
  method_not_allowed: "The path does not answer this method.",
  requires_secret_key: "A public key on a call for secret keys.",
  forbidden: "This caller may not do this.",
  rate_limited: "The key's rate limit is reached; send the call again after Retry-After.",
  payload_too_large: "The body is larger than 1 MiB.",
  invalid_request: "The call is malformed; the message and details name the member at fault.",
  idempotency_conflict: "The Idempotency-Key was used for another call.",
  not_implemented: "A setting that this call needs is not configured.",
  workspace_limit_reached: "The workspace's operations of the month are used up.",
  test_quota_exceeded: "The sandbox quota of test mode is used up.",
  credit_pack_not_found: "No credit pack on offer has this id or name.",
  invalid_quantity: "The pack needs a quantity above 0.",
  credit_balance_not_found: "No credit balance has this id.",
  alias_conflict: "from is already an alias of another user.",
  alias_cycle: "Both ids are the same, or to is already an alias of from.",
  consent_required: "An anonymous session is linked only with consentGiven: true.",
  reservation_not_pending: "The reservation is already settled.",
  already_canceled: "The subscription has already ended.",
  catalog_in_use:
    "A plan or pack that would be removed is still held, and can only be archived; or the catalog is not " +
    "the one that expectedVersion names.",
  limit_reached:
    "A limit of the user's plan is reached; details name the blocked event and the groups without room.",
  ai_budget_exceeded: "The workspace's AI budget of the month is spent.",
  generation_failed: "The model server failed, or its answer did not match the schema.",
  not_processed: "The batch ran out of time before this pair: send it again.",
  internal_error: "Something went wrong on our side.",
};

/** What every endpoint can answer. */
const OF_EVERY_CALL: readonly RefusalCode[] = ["unavailable", "internal_error"];

const OF_ACCESS: Readonly<Record<Access | "admin" | "open", readonly RefusalCode[]>> = {
  secret: ["requires_secret_key"],
  credit_write: ["forbidden"],
  hidden: ["not_found"],
  any: [],
  end_user: ["forbidden"],
  token: ["forbidden"],
  test_secret: ["requires_secret_key", "forbidden"],
  admin: ["invalid_key", "not_implemented"],
  open: [],
};

/** Every code that an endpoint can answer. */
export function errorsOf(call: CallDefinition): RefusalCode[] {
  const { access, method, input, hasNoBody, errors } = call;
  const isKeyed = access !== "admin" && access !== "open";
  const ofKey: RefusalCode[] = isKeyed ? ["invalid_key", "rate_limited"] : [];
  const ofInput: RefusalCode[] = input === null || access === "open" ? [] : ["invalid_request"];
  const ofBody: RefusalCode[] = input === null || hasNoBody || method === "GET" ? [] : ["payload_too_large"];
  const ofWrite: RefusalCode[] = isKeyed && method !== "GET" ? ["idempotency_conflict"] : [];
  const all = [OF_EVERY_CALL, ofKey, OF_ACCESS[access], ofInput, ofBody, ofWrite, errors];
  return [...new Set(all.flat())];
}
