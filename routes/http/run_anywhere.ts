// Where a call with an API key runs: in this process, where it owns the cell of the caller's workspace, else at the owner.
// Both ways answer the same, byte for byte. A call that another member has let in comes here too; the owner looks up key
// and app in its own registry, which is at least as new as the sender's (rule 8 of the cluster's design).

import type { Idempotency, IdempotentCall } from "../../actors/idempotency.ts";
import { CellGone, MayNotAnswer, Unavailable } from "../../actors/port.ts";
import type { Term } from "../../actors/term.ts";
import type { Reply } from "../../src/channel/hub.ts";
import type { Member } from "../../src/cluster/member.ts";
import { callSender, notRun, passOn } from "../../src/cluster/passing.ts";
import type { Caller, Registry } from "../../src/tenant/registry.ts";
import { type Handled, isKept, readKept, write, writeHandled, type WrittenAnswer } from "./answer.ts";
import type { EndUser } from "./auth.ts";
import type { Members } from "./body.ts";
import type { Endpoint, EndpointRequest } from "./endpoint_types.ts";
import { RateLimited, Refused } from "./errors.ts";
import { checkInput } from "./input.ts";
import { countCall, type CountingWorld } from "./rate_limit.ts";
import { refusalOf, requestId } from "./respond.ts";

/** What every call with a key needs of the running term. */
export interface KeyedWorld extends CountingWorld {
  readonly registry: Pick<Registry, "authenticate" | "callerById" | "version">;
  readonly member: Member;
  readonly term: Pick<Term, "keepAnswer" | "doors" | "isServing"> & {
    readonly idempotency: Pick<Idempotency, "run">;
  };
}

/** A call that has passed every check before its cell is entered. */
export interface CheckedCall<World> {
  readonly endpoint: Endpoint<World>;
  readonly caller: Caller;
  readonly endUser: EndUser | null;
  /** As they were sent: what `input` was made of. */
  readonly members: Members;
  readonly input: unknown;
  readonly url: string;
  readonly idempotent: IdempotentCall | null;
  /** Whether its key's bucket has paid for it. */
  readonly isCounted: boolean;
}

/** A call on its way to an owner. `endpoint` "" asks to count it and do nothing else. */
type CallOnTheWay = readonly [
  endpoint: string,
  keyId: string,
  registryVersion: number,
  requestId: string,
  endUserId: string | null,
  url: string,
  members: Members,
  idempotent: readonly [key: string, requestHash: string] | null,
  isCounted: boolean,
];

/** The head of an owner's reply; its body is the answer's text. */
type ReplyHead = readonly [
  status: number,
  code: WrittenAnswer["code"],
  isReplayed: boolean,
  /** Not 0 where the rate limit refused the call. */
  retryAfterS: number,
];

const COUNT_ONLY = "";

/** Runs a call where it belongs. */
export function runAnywhere<World extends KeyedWorld>(
  world: World,
  call: CheckedCall<World>,
  request: Request,
): Promise<WrittenAnswer> {
  return world.term.doors.tryEnter(call.caller.app.cell)
    ? runInside(world, call)
    : runAway(world, call, request);
}

/** Counts a call that is refused for what it says: its key pays for it all the same, before anything else is said. */
export async function countAnywhere(world: KeyedWorld, caller: Caller): Promise<void> {
  if (caller.app.catalog.rateLimit === null) return;
  const call = { endpoint: COUNT_ONLY, caller, endUser: null, members: {}, url: "", idempotent: null };
  const { code } = await runOrPass(
    world,
    caller.app.cell,
    () => Promise.resolve(countInside(world, caller)),
    () => onTheWay(world, { ...call, isCounted: false }, ""),
    "",
  );
  if (code !== "ok") throw new Unavailable("The owner of this workspace may answer nothing at the moment");
}

/** Runs a call whose cell is not open here, which may be for a moment. */
function runAway<World extends KeyedWorld>(
  world: World,
  call: CheckedCall<World>,
  request: Request,
): Promise<WrittenAnswer> {
  return runNamed(world, call, requestId(request));
}

/** Runs a call that belongs to no request of its own, under the id of another one. */
export function runNamed<World extends KeyedWorld>(
  world: World,
  call: CheckedCall<World>,
  id: string,
): Promise<WrittenAnswer> {
  return runOrPass(
    world,
    call.caller.app.cell,
    () => runInside(world, call),
    () => {
      const { endpoint } = call;
      // Only an answer with a link needs the address, which would make up a good part of a short call.
      const url = endpoint.answersToken === true ? call.url : "";
      return onTheWay(world, { ...call, endpoint: endpoint.id, url }, id);
    },
    id,
  );
}

/** Runs where the cell is: here, waiting at a shut door, or at its owner. */
async function runOrPass(
  world: Pick<KeyedWorld, "member" | "term">,
  cell: number,
  run: () => Promise<WrittenAnswer>,
  pass: () => CallOnTheWay,
  id: string,
): Promise<WrittenAnswer> {
  while (true) {
    if (await world.term.doors.enter(cell)) {
      try {
        return await run();
      } catch (error) {
        if (!(error instanceof CellGone)) throw error;
        continue;
      }
    }
    const reply = await passOn(world.member, cell, callSender(world.member, pass()));
    if (reply !== null) return answerOf(reply, id);
  }
}

function onTheWay(
  { registry }: KeyedWorld,
  { endpoint, caller, endUser, members, url, idempotent, isCounted }:
    & Omit<CheckedCall<never>, "endpoint" | "input">
    & { readonly endpoint: string },
  id: string,
): CallOnTheWay {
  return [
    endpoint,
    caller.key.keyId,
    registry.version,
    id,
    endUser?.userId ?? null,
    url,
    members,
    idempotent === null ? null : [idempotent.key, idempotent.requestHash],
    isCounted,
  ];
}

/** An owner's answer; throws where its rate limit refused. */
function answerOf({ head, body }: Reply, requestId: string): WrittenAnswer {
  const [status, code, isReplayed, retryAfterS] = head as ReplyHead;
  if (retryAfterS > 0) throw new RateLimited(retryAfterS);
  return { status, code, body, isReplayed, requestId };
}

/**
 * Runs a call that is inside its cell, and leaves. Promises are chained by hand: nearly every call comes through here, and
 * an async function more costs each of them.
 */
function runInside<World extends KeyedWorld>(
  world: World,
  call: CheckedCall<World>,
): Promise<WrittenAnswer> {
  const { endpoint, caller, endUser, input, url, idempotent } = call;
  const { doors } = world.term;
  const { cell } = caller.app;
  const isLong = endpoint.isLong === true;
  if (isLong) doors.pin(cell);
  let isInside = true;
  const leave = () => {
    if (!isInside) return;
    isInside = false;
    if (isLong) doors.unpin(cell);
    doors.leave(cell);
  };
  const finish = (handled: Handled) => {
    leave();
    // Looked at after the last wait: what is durable by then is true, but a key may have been revoked elsewhere since.
    if (!world.term.isServing) throw new MayNotAnswer();
    return writeHandled(handled);
  };
  const fail = (error: unknown) => {
    leave();
    throw error;
  };
  let handled: Promise<Handled> | Handled;
  try {
    if (!call.isCounted) countCall(world, caller);
    const ready = { world, caller, endUser, input, url, idempotent };
    handled = idempotent === null ? endpoint.handle(ready) : runOnce(endpoint, ready, idempotent);
  } catch (error) {
    handled = Promise.reject(error);
  }
  if (endpoint.waitsOutside === true) leave();
  return (handled instanceof Promise ? handled : Promise.resolve(handled)).then(finish, fail);
}

async function runOnce<World extends KeyedWorld>(
  endpoint: Endpoint<World>,
  ready: EndpointRequest<World, unknown>,
  idempotent: IdempotentCall,
): Promise<WrittenAnswer> {
  const { term } = ready.world;
  const outcome = await term.idempotency.run(idempotent, async () => {
    const handled = await endpoint.handle(ready);
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
  return outcome.kind === "first" ? outcome.answer : readKept(outcome.answer);
}

/** Answers a call that another member has let in. */
export function runPassed<World extends KeyedWorld>(
  world: World,
  endpoints: ReadonlyMap<string, Endpoint<World>>,
  passed: unknown,
): Promise<Reply> {
  const call = passed as CallOnTheWay;
  const [, keyId, version] = call;
  const { registry, term } = world;
  // Nearly every call finds its key known and its door open.
  const caller = version > registry.version ? null : registry.callerById(keyId);
  if (caller === null || !term.doors.tryEnter(caller.app.cell)) return runLater(world, endpoints, call);
  return runEntered(world, endpoints, call, caller);
}

/** Answers a call that has to wait: for a newer version of the registry, or at a door. */
async function runLater<World extends KeyedWorld>(
  world: World,
  endpoints: ReadonlyMap<string, Endpoint<World>>,
  call: CallOnTheWay,
): Promise<Reply> {
  const [, keyId, version, id] = call;
  const { member, registry, term } = world;
  try {
    // A key that the sender knows may be newer than our registry.
    if (version > registry.version) await member.reach(version);
    const caller = registry.callerById(keyId);
    if (caller === null) throw new Refused("invalid_key", "The API key is missing, malformed or revoked");
    const { cell } = caller.app;
    if (!await term.doors.enter(cell)) return notRun(member.parts.owners.of(cell));
    return await runEntered(world, endpoints, call, caller);
  } catch (error) {
    return refusalReply(id, error);
  }
}

/** Answers a call that is inside its cell. */
function runEntered<World extends KeyedWorld>(
  world: World,
  endpoints: ReadonlyMap<string, Endpoint<World>>,
  [name, , , id, endUserId, url, members, kept, isCounted]: CallOnTheWay,
  caller: Caller,
): Promise<Reply> {
  world.member.parts.counts.taken += 1;
  const endpoint = endpoints.get(name);
  try {
    if (endpoint === undefined) return Promise.resolve(replyOf(countInside(world, caller)));
    const idempotent = kept === null
      ? null
      : { realm: caller.realm.realm, key: kept[0], requestHash: kept[1] };
    const endUser = endUserId === null ? null : { userId: endUserId };
    const input = inputInside(world, { endpoint, caller, members });
    const call = { endpoint, caller, endUser, members, input, url, idempotent, isCounted };
    const { cell } = caller.app;
    return runInside(world, call).then(
      (answer) => replyOf(answer),
      (error) => error instanceof CellGone ? goneReply(world, cell) : refusalReply(id, error),
    );
  } catch (error) {
    return Promise.resolve(refusalReply(id, error));
  }
}

/** The reply to a call that reads, and whose cell has gone: it may run at the new owner. */
function goneReply({ member }: KeyedWorld, cell: number): Reply {
  const owner = member.parts.owners.of(cell);
  return notRun(owner === member.term ? null : owner);
}

function refusalReply(id: string, error: unknown): Reply {
  const retryAfterS = error instanceof RateLimited ? error.retryAfterS : 0;
  return replyOf(write({ ok: false, error: refusalOf(id, error) }), retryAfterS);
}

/** The input of a call that is inside its cell; one that does not fit leaves. */
function inputInside(
  { term }: KeyedWorld,
  { endpoint, caller, members }: Pick<CheckedCall<never>, "endpoint" | "caller" | "members">,
): unknown {
  try {
    return checkInput(endpoint, members);
  } catch (error) {
    term.doors.leave(caller.app.cell);
    throw error;
  }
}

const COUNTED: WrittenAnswer = { status: 200, code: "ok", body: "" };

function countInside(world: KeyedWorld, caller: Caller): WrittenAnswer {
  try {
    countCall(world, caller);
    return COUNTED;
  } finally {
    world.term.doors.leave(caller.app.cell);
  }
}

function replyOf(
  { status, code, body, isReplayed = false }: WrittenAnswer,
  retryAfterS = 0,
): Reply {
  return { head: [status, code, isReplayed, retryAfterS] satisfies ReplyHead, body };
}
