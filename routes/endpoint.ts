// One endpoint of the API and the way of every request through it, in the decided order of refusals: writer, key,
// route, method, key class, mode, rate, validation, idempotency; the cap and the domain's own come in the turn. An
// endpoint is data: method, path, who may call it, the schema of its input, what it does, and what the reference says.

import type { Context } from "hono";
import type { z } from "zod";
import type { Call } from "../actors/actor.ts";
import type { Directory } from "../actors/directory.ts";
import type { WireAnswer } from "../actors/idempotency.ts";
import type { IdempotencyRow } from "../actors/port.ts";
import type { CommandName, Commands } from "../src/domain/command.ts";
import { unknownBalance } from "../src/domain/credits/revoke.ts";
import { ownerOf } from "../src/domain/ids.ts";
import { unknownReservation } from "../src/domain/metering/reservation.ts";
import { refused, type Result } from "../src/domain/result.ts";
import { REQUEST_LIMITS } from "../src/process/limits.ts";
import { hashOf } from "../src/secrets/hash.ts";
import type { Service, Serving } from "../src/service/service.ts";
import type { Caller } from "../src/tenant/registry.ts";
import { type Access, authenticate, authorize, type EndUser } from "./auth.ts";
import {
  flattenOptions,
  type Members,
  readBody,
  readMembers,
  readQuery,
  refuseForeignEscapes,
  type RequestInput,
} from "./body.ts";
import { errorBody, NOT_KEPT, Refused, STATUS } from "./errors.ts";
import { countCall } from "./rate_limit.ts";
import type { EndpointDoc } from "./reference/doc.ts";
import type { RouteWatch } from "./watch.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** An endpoint under `/api`. */
export interface Endpoint<Input> {
  readonly method: Method;
  /** Under `/api`, with `:name` for path members. */
  readonly path: string;
  readonly access: Access;
  readonly input: z.ZodType<Input>;
  /** Whether a nested `options` object may hold members of the body. */
  readonly hasOptions?: boolean;
  /** Whether an answer holds a token: it is then not kept under an idempotency key. */
  readonly answersToken?: boolean;
  readonly doc: EndpointDoc;
  readonly handle: (request: EndpointRequest<Input>) => Promise<WireAnswer>;
}

/** A request that has passed every check before its decision. */
export interface EndpointRequest<Input> {
  readonly serving: Serving;
  readonly caller: Caller;
  /** The end user that a token stands for; null with a secret key. */
  readonly endUser: EndUser | null;
  readonly input: Input;
  /** The address as the caller gave it. */
  readonly url: string;
  /** Set when the call has an idempotency key: makes the row of a first answer. */
  readonly firstAnswer: FirstAnswer | null;
}

/** Keeps track of whether a first answer was written with the changes of a turn. */
export interface FirstAnswer {
  isKept: boolean;
  /** The user that the answer is about, where no turn says it: it is erased with that user. */
  userKey: number | null;
  row(answer: WireAnswer, userKey: number | null): IdempotencyRow;
}

/** An endpoint with its input type known to itself alone. */
export function endpoint<Input>(definition: Endpoint<Input>): Endpoint<unknown> {
  return definition as Endpoint<unknown>;
}

/** Who a command is for. */
export type Target =
  | { readonly userId: string }
  | { readonly reservationId: string }
  | { readonly balanceId: string };

/** Puts a command to a user and answers with what the result shows as; a first answer is kept with the turn. */
export function runTurn<Name extends CommandName>(
  { serving, caller, firstAnswer }: EndpointRequest<unknown>,
  target: Target,
  { name, input, isCapped, needs, aiCents }: Pick<
    Call<Name>,
    "name" | "input" | "isCapped" | "needs" | "aiCents"
  >,
  show: (answer: Commands[Name]["answer"]) => unknown,
): Promise<WireAnswer> {
  let kept: WireAnswer | null = null;
  const record = firstAnswer === null
    ? null
    : (result: Result<Commands[Name]["answer"]>, userKey: number | null) => {
      if (!isKeepable(result)) return null;
      kept = wireAnswer(result, show);
      firstAnswer.isKept = true;
      return firstAnswer.row(kept, userKey);
    };
  const { directory } = serving.term;
  const { realm } = caller;
  const result = "userId" in target
    ? directory.runById(target.userId, { realm, name, input, isCapped, needs, aiCents, record })
    : runOnOwned(directory, target, { realm, name, input, isCapped, needs: target, aiCents, record });
  return result.then((result) => kept ?? wireAnswer(result, show));
}

/** The id of a reservation or balance names its owner; one that names nobody of the caller's realm is unknown. */
async function runOnOwned<Name extends CommandName>(
  directory: Directory,
  target: Exclude<Target, { readonly userId: string }>,
  call: Call<Name>,
): Promise<Result<Commands[Name]["answer"]>> {
  const isBalance = "balanceId" in target;
  const owner = isBalance
    ? ownerOf("creditBalance", target.balanceId)
    : ownerOf("reservation", target.reservationId);
  const result = owner === null ? null : await directory.runByKey(owner, call);
  return result ?? refused(isBalance ? unknownBalance() : unknownReservation());
}

/** The answer of a result on the wire. */
export function wireAnswer<Answer>(result: Result<Answer>, show: (answer: Answer) => unknown): WireAnswer {
  if (result.ok) return success(show(result.answer));
  return { status: STATUS[result.refusal.code], body: errorBody(result.refusal) };
}

/** A 200 answer with data. */
export function success(data: unknown): WireAnswer {
  return { status: 200, body: JSON.stringify({ ok: true, data }) };
}

/** Handles a request to an endpoint. */
export async function handle(
  context: Context,
  definition: Endpoint<unknown>,
  service: Service,
  watch: RouteWatch,
): Promise<Response> {
  const request = context.req.raw;
  const startedAt = watch.starts();
  try {
    const { serving, caller } = authenticate(request, service);
    const endUser = authorize(request, definition.access, caller, serving.clock.now());
    const { rateLimit } = caller.app.catalog;
    if (rateLimit !== null) countCall(caller, rateLimit, serving.clock.now());
    const key = definition.method === "GET" ? null : request.headers.get("idempotency-key");
    // The text of a body is needed for the hash of a call with a key alone.
    const { members, text } = key === null && definition.method === "POST"
      ? { members: await readMembers(request), text: "" }
      : await readInput(context, definition);
    const input = checked(definition, members);
    const ready = { serving, caller, endUser, input, url: request.url, firstAnswer: null };
    if (key === null) return watch.answered(startedAt, request, await definition.handle(ready));
    const { answer, isReplayed } = await handleOnce(definition, ready, key, text);
    return watch.answered(startedAt, request, answer, isReplayed);
  } catch (error) {
    return watch.threw(startedAt, request, error);
  }
}

/** The input of an endpoint; refuses members that do not fit its schema. */
function checked<Input>({ input, hasOptions }: Endpoint<Input>, members: Members): Input {
  const parsed = input.safeParse(hasOptions === true ? flattenOptions(members) : members);
  if (!parsed.success) throw invalid(parsed.error);
  return parsed.data;
}

async function readInput(context: Context, definition: Endpoint<unknown>): Promise<RequestInput> {
  const request = context.req.raw;
  if (definition.method === "GET") {
    const query = readQuery(request);
    if (!definition.path.includes(":")) return query;
    refuseForeignEscapes(request.url);
    return { ...query, members: { ...query.members, ...context.req.param() } };
  }
  const body = await readBody(request);
  if (definition.method !== "DELETE") return body;
  const query = readQuery(request);
  for (const name of Object.keys(query.members)) {
    if (Object.hasOwn(body.members, name)) {
      throw new Refused("invalid_request", `${name}: stands both in the body and in the query`);
    }
  }
  return { members: { ...query.members, ...body.members }, text: `${query.text}\n${body.text}` };
}

/** The refusal of a body that does not fit its schema: the first fault as the message, all of them as details. */
export function invalid(error: z.ZodError): Refused {
  const details = error.issues.slice(0, 20).map(({ path, message }) => ({ path: path.join("."), message }));
  const [first] = details;
  return new Refused(
    "invalid_request",
    first?.path ? `${first.path}: ${first.message}` : "The request is invalid",
    details,
  );
}

async function handleOnce(
  definition: Endpoint<unknown>,
  ready: EndpointRequest<unknown>,
  key: string,
  bodyText: string,
): Promise<{ answer: WireAnswer; isReplayed: boolean }> {
  if (key.length < 1 || key.length > REQUEST_LIMITS.idempotencyKeyLengthMax) {
    throw new Refused("invalid_request", "Idempotency-Key: must have 1 to 200 characters");
  }
  const { term, clock } = ready.serving;
  const { realm } = ready.caller.realm;
  const requestHash = hashOf(`${definition.method} ${definition.path}\n${bodyText}`);
  const firstAnswer: FirstAnswer = {
    isKept: false,
    userKey: null,
    row: ({ status, body }, userKey) => ({ realm, key, requestHash, status, body, userKey, at: clock.now() }),
  };
  const outcome = await term.idempotency.run({ realm, key, requestHash }, async () => {
    const answer = await definition.handle({ ...ready, firstAnswer });
    const isOpen = !firstAnswer.isKept && definition.answersToken !== true;
    if (isOpen && isKeepableStatus(answer)) {
      await term.keepAnswer(firstAnswer.row(answer, firstAnswer.userKey));
    }
    return answer;
  });
  if (outcome.kind === "conflict") {
    throw new Refused("idempotency_conflict", "The Idempotency-Key was used for another call");
  }
  return { answer: outcome.answer, isReplayed: outcome.kind === "replayed" };
}

function isKeepable(result: Result<unknown>): boolean {
  return result.ok || !NOT_KEPT.has(result.refusal.code);
}

function isKeepableStatus({ status }: WireAnswer): boolean {
  return status === 200 || status === 404 || status === 409;
}
