// One endpoint of the API and the way of every request through it, in the decided order of refusals: whether this process
// may answer, key, route, method, key class, mode, rate, validation, idempotency; the cap and the domain's own come in the
// turn. An endpoint is data: method, path, who may call it, the schema of its input, what it does, and what the reference
// says. Where its call runs, here or at the owner of the caller's cell, is in `run_anywhere.ts`.

import type { Context } from "hono";
import type { IdempotentCall } from "../../actors/idempotency.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";
import { hashOf } from "../../src/process/secrets/hash.ts";
import type { Caller } from "../../src/tenant/registry.ts";
import type { CheckedOf, DataOf, KeyedDefinition, KeylessDefinition } from "../contract/definition.ts";
import { type Answer, type Handled, type RawAnswer, readAnswer } from "./answer.ts";
import { authenticate, authorize, authorizeAdmin } from "./auth.ts";
import { type Members, readMembers, refuseForbiddenText, type RequestInput } from "./body.ts";
import { valueHash } from "./canonical.ts";
import { invalidMember, Refused } from "./errors.ts";
import { checkInput, readInput } from "./input.ts";
import type { About, Endpoint, EndpointRequest, KeylessEndpoint, KeylessRequest } from "./endpoint_types.ts";
import { countCall } from "./rate_limit.ts";
import { refusalOf, requestId } from "./respond.ts";
import { type CheckedCall, countAnywhere, type KeyedWorld, runAnywhere } from "./run_anywhere.ts";
import type { AuditedWorld } from "./audit_values.ts";
import { runKeylessAudited } from "./audited.ts";
import type { AuditWorld } from "../../src/audit/audit.ts";
import type { KeylessWorld } from "./run_keyless.ts";
import type { RouteWatch } from "./request_metrics.ts";

/** Where endpoints get what they work on; throws while this process may answer nothing. */
export interface Source<World> {
  requireServing(): World;
}

/** Binds calls to handlers that work on `World`: a handler gets the call's input and returns the call's answer. */
export function endpointsOn<World>() {
  return <Call extends KeyedDefinition>(
    call: Call,
    handle: (
      request: EndpointRequest<World, CheckedOf<Call>>,
    ) => Promise<Handled<DataOf<Call>>> | Handled<DataOf<Call>>,
  ): Endpoint<World> => ({ ...call, handle }) as unknown as Endpoint<World>;
}

/** The result of a handler without an API key: a response of its own if the answer has no envelope. */
type KeylessHandled<Call extends KeylessDefinition> = Call extends { readonly mediaType: string }
  ? RawAnswer<DataOf<Call>>
  : Answer<DataOf<Call>>;

/** Options of a call without an API key. */
interface KeylessOptions<World, Call extends KeylessDefinition>
  extends Pick<KeylessEndpoint<World>, "misfit"> {
  /** Set if the input names neither an app nor a workspace. */
  readonly about?: (
    request: Pick<KeylessRequest<World, CheckedOf<Call>>, "world" | "input">,
  ) => About | null;
  readonly gather?: (answers: readonly DataOf<Call>[]) => DataOf<Call>;
}

/** The same for calls without an API key. */
export function keylessEndpointsOn<World>() {
  return <Call extends KeylessDefinition>(
    { about, ...call }: Call,
    handle: (
      request: KeylessRequest<World, CheckedOf<Call>>,
    ) => Promise<KeylessHandled<Call>> | KeylessHandled<Call>,
    options: KeylessOptions<World, Call> = {},
  ): KeylessEndpoint<World> => {
    const found = about === undefined ? {} : { about: aboutMember(about) };
    return { ...call, ...found, ...options, handle } as unknown as KeylessEndpoint<World>;
  };
}

function aboutMember(member: "appId" | "workspaceId") {
  return ({ input }: { readonly input: unknown }): About | null => {
    const id = (input as Readonly<Record<string, string | null | undefined>>)[member] ?? null;
    return id === null ? null : { [member]: id } as About;
  };
}

/** Lets a caller in: refuses an unknown key, and a call that the key may not make. */
export function admit<World extends KeyedWorld>(
  request: Request,
  endpoint: Endpoint<World>,
  source: Source<World>,
) {
  const { world, caller } = authenticate(request, source);
  return { world, caller, endUser: authorize(request, endpoint.access, caller, world.clock.now()) };
}

/** Handles a request to an endpoint. */
export async function handle<World extends KeyedWorld>(
  context: Context,
  endpoint: Endpoint<World>,
  source: Source<World>,
  watch: RouteWatch,
): Promise<Response> {
  const request = context.req.raw;
  const startedAt = watch.starts();
  try {
    const { world, caller, endUser } = admit(request, endpoint, source);
    // The owner counts. Where that is this process, a call above the rate is refused before its body is read.
    const countsItself = endpoint.isBatch === true;
    const isCounted = countsItself || world.term.doors.isOpen(caller.app.cell);
    if (isCounted && !countsItself) countCall(world, caller);
    const key = endpoint.method === "GET" ? null : request.headers.get("idempotency-key");
    let call: CheckedCall<World>;
    try {
      // The text of a body is needed for the hash of a call with a key alone.
      const { members, text } = key === null && endpoint.method === "POST"
        ? { members: await readMembers(request, endpoint), text: "" }
        : await readInput(context, endpoint);
      const input = checkInput(endpoint, members);
      const idempotent = key === null ? null : idempotentCall(endpoint, caller, key, { members, text });
      call = { endpoint, caller, endUser, members, input, url: request.url, idempotent, isCounted };
    } catch (error) {
      if (!isCounted) await countAnywhere(world, caller);
      throw error;
    }
    return watch.answered(startedAt, request, await runAnywhere(world, call, request));
  } catch (error) {
    return watch.threw(startedAt, request, error);
  }
}

/** What an idempotent call is known by. */
function idempotentCall(
  endpoint: Pick<Endpoint<never>, "method" | "path" | "mayBeInBatch">,
  { realm }: Caller,
  key: string,
  { members, text }: RequestInput,
): IdempotentCall {
  if (key.length < 1 || key.length > REQUEST_LIMITS.idempotencyKeyLengthMax) {
    throw invalidMember("Idempotency-Key", "must have 1 to 200 characters");
  }
  const hash = hashOf(`${endpoint.method} ${endpoint.path}\n${text}`);
  const requestHash = endpoint.mayBeInBatch === true ? hash + valueHash(endpoint.path, members) : hash;
  return { realm: realm.realm, key, requestHash };
}

/** Whoever has the admin token. */
const ADMIN = { who: "admin", via: "api" } as const;

/** Handles a request to an endpoint without an API key. */
export async function handleKeyless<World extends KeylessWorld & AuditWorld & AuditedWorld>(
  context: Context,
  endpoint: KeylessEndpoint<World>,
  source: Source<World>,
  adminToken: string | null,
  watch: RouteWatch,
): Promise<Response> {
  const request = context.req.raw;
  const startedAt = watch.starts();
  try {
    const world = source.requireServing();
    if (endpoint.access === "admin") authorizeAdmin(request, adminToken);
    const { members, input } = await inputOf(context, endpoint);
    const answer = await runKeylessAudited(world, { endpoint, members, input }, request, ADMIN);
    if (answer instanceof Response) return watch.ended(startedAt, "ok", answer);
    return watch.answered(startedAt, request, answer);
  } catch (error) {
    return watch.threw(startedAt, request, error);
  }
}

async function inputOf(
  context: Context,
  endpoint: KeylessEndpoint<never>,
): Promise<{ members: Members; input: unknown }> {
  if (endpoint.input === null) return { members: {}, input: null };
  try {
    const { members } = await readInput(context, endpoint);
    return { members, input: checkInput(endpoint, members) };
  } catch (error) {
    const isMisfit = error instanceof Refused && error.refusal.code === "invalid_request";
    throw isMisfit ? endpoint.misfit?.() ?? error : error;
  }
}

/**
 * Calls an endpoint from within the process, with the key of another request: its answer as a value.
 *
 * @param members what a query would hold
 */
export async function callEndpoint<World>(
  request: Request,
  endpoint: Endpoint<World>,
  members: Members,
  source: Source<KeyedWorld & World>,
  watch: RouteWatch,
): Promise<Answer> {
  const startedAt = watch.starts();
  try {
    const { world, caller, endUser } = admit(request, endpoint, source);
    const isCounted = world.term.doors.isOpen(caller.app.cell);
    if (isCounted) countCall(world, caller);
    let call: CheckedCall<World>;
    try {
      refuseForbiddenText(members);
      const input = checkInput(endpoint, members);
      call = { endpoint, caller, endUser, members, input, url: request.url, idempotent: null, isCounted };
    } catch (error) {
      if (!isCounted) await countAnywhere(world, caller);
      throw error;
    }
    return watch.called(startedAt, request, readAnswer(await runAnywhere(world, call, request)));
  } catch (error) {
    return watch.called(startedAt, request, { ok: false, error: refusalOf(requestId(request), error) });
  }
}
