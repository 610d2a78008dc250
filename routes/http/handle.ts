// Handles the requests of endpoints, in the decided order of refusals: whether this process may answer, key, route, method, key
// class, mode, rate, validation, idempotency; the workspace's cap and the domain's own refusals come when the call runs.

import type { Context } from "hono";
import type { IdempotentCall } from "../../actors/idempotency.ts";
import type { AuditWorld } from "../../src/audit/audit.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";
import { hashOf } from "../../src/process/secrets/hash.ts";
import type { Caller } from "../../src/tenant/registry.ts";
import { admit, refuseInput } from "./admission.ts";
import { type Answer, failure, type Handled, valueOf } from "./answer.ts";
import type { AuditedWorld } from "./audit_values.ts";
import { dispatchAcross, worldOf } from "./across_stores.ts";
import { type AdminAccess, authorizeAdmin, type EndUser, type Source } from "./auth.ts";
import { type HeldBody, readMembers, type RequestInput, rulesOf } from "./body.ts";
import type { CallDefinition } from "../contract/definition.ts";
import type { DispatchWorld, KeyedCall } from "./call.ts";
import { valueHash } from "./canonical.ts";
import { dispatch } from "./dispatch.ts";
import type { Endpoint, KeylessEndpoint, StoreSource } from "./endpoint_types.ts";
import { invalidMember, Refused, unknownPath } from "./errors.ts";
import { addressOf } from "./guesses.ts";
import { isHead } from "./head.ts";
import { checkInput, readInput } from "./input.ts";
import { type Members, refuseForbiddenText } from "./json_body.ts";
import type { RouteMetrics } from "./request_metrics.ts";
import { refusalOf, requestId } from "./respond.ts";
import { storedKey } from "./stored_keys.ts";

/** Handles a request with an API key. */
export async function handle<World extends DispatchWorld>(
  context: Context,
  endpoint: Endpoint<World>,
  source: Source<World>,
  metrics: RouteMetrics,
): Promise<Response> {
  const request = context.req.raw;
  const startedAt = metrics.starts();
  const held: HeldBody | null = endpoint.isBatch === true ? { give: () => {} } : null;
  let sent: Members | null = null;
  let user: EndUser | null = null;
  try {
    const admission = admit(request, source, endpoint);
    const admitted = admission instanceof Promise ? await admission : admission;
    const { world, caller, endUser, isCounted } = admitted;
    user = endUser;
    const key = endpoint.method === "GET" ? null : request.headers.get("idempotency-key");
    let call: KeyedCall<World>;
    try {
      // The text of a body is needed only for the hash of a call with an idempotency key.
      const isBodyAlone = endpoint.method === "POST" && !endpoint.path.includes(":");
      const { members, text } = key === null && isBodyAlone
        ? { members: await readMembers(request, rulesOf(endpoint, caller, held)), text: "" }
        : await readInput(context, endpoint, caller, held);
      sent = members;
      const input = checkInput(endpoint, members);
      const idempotent = key === null ? null : idempotentCall(endpoint, caller, key, { members, text });
      call = { target: endpoint, caller, endUser, members, input, url: request.url, idempotent, isCounted };
    } catch (error) {
      return await refuseInput(admitted, request, error);
    }
    const handled = await dispatch(world, call, request) as Handled;
    if (endpoint.isBatch === true) metrics.failedInside(request, handled, sent);
    return metrics.answered(startedAt, request, handled, sent, user);
  } catch (error) {
    return metrics.threw(startedAt, request, error, sent, user);
  } finally {
    held?.give();
  }
}

/** Returns what identifies an idempotent call. */
function idempotentCall(
  endpoint: Pick<Endpoint<never>, "method" | "path" | "mayBeInBatch">,
  { realm, key: apiKey }: Caller,
  key: string,
  { members, text }: RequestInput,
): IdempotentCall {
  if (key.length < 1 || key.length > REQUEST_LIMITS.idempotencyKeyLengthMax) {
    throw invalidMember("Idempotency-Key", "must have 1 to 200 characters");
  }
  const hash = hashOf(`${endpoint.method} ${endpoint.path}\n${text}`);
  const requestHash = endpoint.mayBeInBatch === true ? hash + valueHash(endpoint.path, members) : hash;
  return { realm: realm.realm, key: storedKey(apiKey, key), requestHash };
}

/** The holder of the admin token, in the audit log. */
const ADMIN = { who: "admin", via: "api" } as const;

/** Handles a request without an API key. */
export async function handleKeyless<World extends DispatchWorld & AuditWorld & AuditedWorld>(
  context: Context,
  endpoint: KeylessEndpoint<World>,
  source: StoreSource<World>,
  admin: AdminAccess,
  metrics: RouteMetrics,
): Promise<Response> {
  const request = context.req.raw;
  const startedAt = metrics.starts();
  try {
    const anyWorld = source.requireServing();
    if (endpoint.access === "admin") await authorizeAdmin(request, admin, anyWorld, addressOf(context.env));
    const path: Readonly<Record<string, string>> = context.req.param();
    if (endpoint.admits?.(source.requireServingOf({ appId: path.appId ?? "" }), path) === false) {
      throw endpoint.misfit?.() ?? unknownPath(request);
    }
    const { members, input } = await inputOf(context, endpoint);
    if (isHead(request) && endpoint.head !== undefined) {
      const world = await worldOf(source, endpoint, input);
      const call = { world, input, requestId: requestId(request), who: "api" };
      return metrics.ended(startedAt, "ok", endpoint.head(call));
    }
    const call = { target: endpoint, caller: null, members, input };
    const outcome = await dispatchAcross(source, call, request, ADMIN);
    return outcome instanceof Response
      ? metrics.ended(startedAt, "ok", outcome)
      : metrics.answered(startedAt, request, outcome);
  } catch (error) {
    return metrics.threw(startedAt, request, error);
  }
}

async function inputOf(
  context: Context,
  endpoint: Pick<KeylessEndpoint<never>, "misfit" | keyof CallDefinition>,
): Promise<{ members: Members; input: unknown }> {
  if (endpoint.input === null) return { members: {}, input: null };
  try {
    const { members } = await readInput(context, endpoint, null);
    return { members, input: checkInput(endpoint, members) };
  } catch (error) {
    const isMisfit = error instanceof Refused && error.refusal.code === "invalid_request";
    throw isMisfit ? endpoint.misfit?.() ?? error : error;
  }
}

/**
 * Calls an endpoint from within the process with the key of another request, as a tool of an agent does.
 *
 * @param members those of path, query and body in one object
 */
export async function callEndpoint<World extends DispatchWorld>(
  request: Request,
  endpoint: Endpoint<World>,
  members: Members,
  source: Source<World>,
  metrics: RouteMetrics,
): Promise<Answer> {
  const startedAt = metrics.starts();
  try {
    const admitted = await admit(request, source, endpoint);
    const input = await checkedMembers(endpoint, members).catch((fault) =>
      refuseInput(admitted, request, fault)
    );
    const { world, ...by } = admitted;
    const call = { ...by, target: endpoint, members, input, url: request.url, idempotent: null };
    return metrics.called(startedAt, request, valueOf(await dispatch(world, call, request)), members);
  } catch (error) {
    return metrics.called(startedAt, request, failure(refusalOf(requestId(request), error)), members);
  }
}

// deno-lint-ignore require-await -- a refusal is a rejection
async function checkedMembers(endpoint: Endpoint<never>, members: Members): Promise<unknown> {
  refuseForbiddenText(members);
  return checkInput(endpoint, members);
}
