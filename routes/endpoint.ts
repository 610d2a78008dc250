// One endpoint of the API and the way of every request through it, in the decided order of refusals: writer, key,
// route, method, key class, mode, rate, validation, idempotency; the cap and the domain's own come in the turn. An
// endpoint is data: method, path, who may call it, the schema of its input, what it does, and what the reference says.

import type { Context } from "hono";
import type { z } from "zod";
import type { Idempotency, IdempotentCall } from "../actors/idempotency.ts";
import type { Term } from "../actors/term.ts";
import type { Clock } from "../src/process/clock.ts";
import { REQUEST_LIMITS } from "../src/process/limits.ts";
import { hashOf } from "../src/secrets/hash.ts";
import type { Caller, Registry } from "../src/tenant/registry.ts";
import {
  type Answer,
  type Handled,
  isKept,
  readKept,
  valueOf,
  writeHandled,
  type WrittenAnswer,
} from "./answer.ts";
import { type Access, authenticate, authorize, authorizeAdmin, type EndUser } from "./auth.ts";
import { type Members, readMembers, refuseForbiddenText } from "./body.ts";
import { invalidMember, Refused } from "./errors.ts";
import { checkInput, readInput } from "./input.ts";
import type { Definition } from "./definition.ts";
import { countCall } from "./rate_limit.ts";
import { refusalOf, requestId } from "./respond.ts";
import type { RouteWatch } from "./watch.ts";

/** An endpoint for callers with an API key; `World` is what it works on. */
export interface Endpoint<World> extends Definition {
  readonly access: Access;
  readonly input: z.ZodType;
  /** Whether an answer holds a token: it is then not kept under an idempotency key. */
  readonly answersToken?: boolean;
  readonly handle: (request: EndpointRequest<World, unknown>) => Promise<Handled> | Handled;
}

/** An endpoint that asks for the admin token, or for nothing. */
export interface KeylessEndpoint<World> extends Definition {
  readonly access: "admin" | "open";
  /** What input that does not fit is refused with; by default `invalid_request`, naming the member. */
  readonly misfit?: () => Refused;
  /** The media type of an answer without the envelope. */
  readonly mediaType?: string;
  readonly handle: (
    request: KeylessRequest<World, unknown>,
  ) => Promise<Answer | Response> | Answer | Response;
}

/** A request that has passed every check before its decision. */
export interface EndpointRequest<World, Input> {
  readonly world: World;
  readonly caller: Caller;
  /** The end user that a token stands for; null with a secret key. */
  readonly endUser: EndUser | null;
  readonly input: Input;
  /** The address as the caller gave it. */
  readonly url: string;
  /** Null for a call without an idempotency key. */
  readonly idempotent: IdempotentCall | null;
}

/** A request to an endpoint without an API key. */
export interface KeylessRequest<World, Input> {
  readonly world: World;
  readonly input: Input;
  readonly request: Request;
}

/** What every call with a key needs of the running term. */
export interface KeyedWorld {
  readonly registry: Pick<Registry, "authenticate">;
  readonly clock: Clock;
  readonly term: Pick<Term, "keepAnswer"> & { readonly idempotency: Pick<Idempotency, "run"> };
}

/** Where endpoints get what they work on; throws while this process is not the writer. */
export interface Source<World> {
  requireServing(): World;
}

type Typed<Defined, Schema, Handle> = Omit<Defined, "input" | "handle"> & {
  readonly input: Schema;
  readonly handle: Handle;
};

/** Makes endpoints of one kind of world; each knows the type of its own input. */
export function endpointsOn<World>() {
  return <Schema extends z.ZodType>(
    definition: Typed<
      Endpoint<World>,
      Schema,
      (request: EndpointRequest<World, z.infer<Schema>>) => Promise<Handled> | Handled
    >,
  ): Endpoint<World> => definition as unknown as Endpoint<World>;
}

/** The same for endpoints without an API key. */
export function keylessEndpointsOn<World>() {
  return <Schema extends z.ZodType | null>(
    definition: Typed<
      KeylessEndpoint<World>,
      Schema,
      (
        request: KeylessRequest<World, Schema extends z.ZodType ? z.infer<Schema> : null>,
      ) => ReturnType<KeylessEndpoint<World>["handle"]>
    >,
  ): KeylessEndpoint<World> => definition as unknown as KeylessEndpoint<World>;
}

/** Lets a caller in: refuses an unknown key, a call that the key may not make, and one above the key's rate. */
function admit<World extends KeyedWorld>(request: Request, endpoint: Endpoint<World>, source: Source<World>) {
  const { world, caller } = authenticate(request, source);
  const endUser = authorize(request, endpoint.access, caller, world.clock.now());
  const { rateLimit } = caller.app.catalog;
  if (rateLimit !== null) countCall(caller, rateLimit, world.clock.now());
  return { world, caller, endUser };
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
    const key = endpoint.method === "GET" ? null : request.headers.get("idempotency-key");
    // The text of a body is needed for the hash of a call with a key alone.
    const { members, text } = key === null && endpoint.method === "POST"
      ? { members: await readMembers(request), text: "" }
      : await readInput(context, endpoint);
    const input = checkInput(endpoint, members);
    const ready = { world, caller, endUser, input, url: request.url, idempotent: null };
    if (key === null) {
      return watch.answered(startedAt, request, writeHandled(await endpoint.handle(ready)));
    }
    const { answer, isReplayed } = await handleOnce(endpoint, ready, key, text);
    return watch.answered(startedAt, request, answer, isReplayed);
  } catch (error) {
    return watch.threw(startedAt, request, error);
  }
}

/** Handles a request to an endpoint without an API key. */
export async function handleKeyless<World>(
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
    const input = await inputOf(context, endpoint);
    const answer = await endpoint.handle({ world, input, request });
    if (answer instanceof Response) return watch.ended(startedAt, "ok", answer);
    return watch.answered(startedAt, request, writeHandled(answer));
  } catch (error) {
    return watch.threw(startedAt, request, error);
  }
}

async function inputOf(context: Context, endpoint: KeylessEndpoint<never>): Promise<unknown> {
  if (endpoint.input === null) return null;
  try {
    const { members } = await readInput(context, endpoint);
    return checkInput(endpoint, members);
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
    refuseForbiddenText(members);
    const input = checkInput(endpoint, members);
    const ready = { world, caller, endUser, input, url: request.url, idempotent: null };
    return watch.called(startedAt, request, valueOf(await endpoint.handle(ready)));
  } catch (error) {
    return watch.called(startedAt, request, { ok: false, error: refusalOf(requestId(request), error) });
  }
}

async function handleOnce<World extends KeyedWorld>(
  endpoint: Endpoint<World>,
  ready: EndpointRequest<World, unknown>,
  key: string,
  bodyText: string,
): Promise<{ answer: WrittenAnswer; isReplayed: boolean }> {
  if (key.length < 1 || key.length > REQUEST_LIMITS.idempotencyKeyLengthMax) {
    throw invalidMember("Idempotency-Key", "must have 1 to 200 characters");
  }
  const { term } = ready.world;
  const requestHash = hashOf(`${endpoint.method} ${endpoint.path}\n${bodyText}`);
  const idempotent = { realm: ready.caller.realm.realm, key, requestHash };
  const outcome = await term.idempotency.run(idempotent, async () => {
    const handled = await endpoint.handle({ ...ready, idempotent });
    const written = writeHandled(handled);
    // What a turn kept comes as text.
    if (!("body" in handled) && endpoint.answersToken !== true && isKept(written.code)) {
      const userKey = "userKey" in handled ? handled.userKey : null;
      await term.keepAnswer({ ...idempotent, ...written }, userKey);
    }
    return written;
  });
  if (outcome.kind === "conflict") {
    throw new Refused("idempotency_conflict", "The Idempotency-Key was used for another call");
  }
  if (outcome.kind === "first") return { answer: outcome.answer, isReplayed: false };
  return { answer: readKept(outcome.answer), isReplayed: true };
}
