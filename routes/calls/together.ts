// Calls that come in one request: many turns, one answer. Users are decided side by side, the calls of one user in the order of
// the list. Each call has a result of its own, which may be a refusal.

import type { Actor } from "../../actors/actor.ts";
import type { Directory } from "../../actors/directory.ts";
import { allDurable } from "../../actors/gate.ts";
import type { KnownOutcome } from "../../actors/idempotency.ts";
import { ownerOf, type UserKey } from "../../src/domain/values/ids.ts";
import { Steps } from "../../src/process/steps.ts";
import { readKept, write, type WrittenAnswer } from "../http/answer.ts";
import { Refused } from "../http/errors.ts";
import { checkInput } from "../http/input.ts";
import { handledOf, keepingOf, runTurn, type Target } from "../http/turn.ts";
import {
  type Form,
  type Kind,
  piecesOf,
  type Placed,
  refusedWith,
  type Results,
  type TogetherRequest,
  type TogetherWorld,
  Work,
} from "./together_work.ts";

/** What calls share while they are decided together. */
interface Round {
  /** Users with a call that waits, by actor, or by name while the actor is unknown. */
  readonly waiting: Set<unknown>;
  /** Why the lookup of the keys failed, or null. */
  readonly fault: unknown;
}

/**
 * Decides calls, each at its place. All keys take their places before any of them is looked up, in one step, so two requests
 * with the same keys never wait for each other. Many calls are decided in pieces, each once the one before it is durable, so
 * that the calls of others do not wait for all of them.
 */
export async function decideTogether<World extends TogetherWorld>(
  request: TogetherRequest<World>,
  sent: readonly unknown[],
  form: Form<World>,
): Promise<Results> {
  const work = new Work(request, form as unknown as Form, sent.length);
  const placed = placeAll(work, await checkAll(work, sent));
  const decided = decideAll(work, placed);
  if (form.undecidedMs === null || await inTime(decided, form.undecidedMs)) {
    await decided;
    return { text: work.texts.join(","), isPartial: work.isPartial };
  }
  return await answerEarly(work, placed, decided);
}

/** Whether work ends within a time; also where it fails. */
async function inTime(work: Promise<void>, ms: number): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const end = new Promise<boolean>((resolve) => timer = setTimeout(() => resolve(false), ms));
  try {
    return await Promise.race([work.then(() => true, () => true), end]);
  } finally {
    clearTimeout(timer);
  }
}

/** Answers before all calls are decided. The rest have keys: they are finished inside of the cell, and a retry gets their answers. */
async function answerEarly(
  work: Work,
  placed: readonly Placed[],
  decided: Promise<void>,
): Promise<Results> {
  const { term } = work.request.world;
  const { cell } = work.request.caller.app;
  if (work.keyless > 0) {
    const keyless = new Promise<void>((resolve) => work.onKeylessDecided = resolve);
    await Promise.race([decided, keyless]);
  }
  const texts = [...work.texts];
  for (const { kind, place } of placed) {
    if (texts[place] !== "") continue;
    work.isPartial = true;
    texts[place] = work.form.textOf(work.request, kind, UNDECIDED);
  }
  term.doors.remain(cell);
  decided.catch(() => {}).then(() => term.doors.leave(cell));
  await allDurable([...work.awaited]);
  return { text: texts.join(","), isPartial: work.isPartial };
}

const UNDECIDED = refusedWith(
  new Refused("unavailable", "Not decided yet: send the call again with the same idempotencyKey"),
);

async function decideAll(work: Work, placed: readonly Placed[]): Promise<void> {
  const { world, caller } = work.request;
  const { idempotency, batchRoom, drain } = world.term;
  const { appId } = caller.app.record;
  const pieces = piecesOf(placed);
  const bytes = Math.max(0, ...pieces.map((piece) => piece.bytes));
  const entered = batchRoom.enter(appId, bytes);
  const fault = await lookUp(work.request, placed);
  await entered;
  try {
    let since = performance.now();
    for (const { calls } of pieces) {
      await allDurable(work.awaited);
      work.awaited.clear();
      if (pieces.length > 1) await drain.roomForMore(since);
      since = performance.now();
      await decidePiece(work, calls, fault);
    }
    await allDurable(work.awaited);
  } catch (error) {
    for (const { flight } of placed) if (flight !== null) idempotency.end(flight);
    throw error;
  } finally {
    batchRoom.leave(appId, bytes);
  }
}

/** So many calls are checked between two looks at the time, which cost more than a check. */
const CALLS_OF_STEP = 16;

/** Checks the input of calls in steps; the refusals of invalid ones go to their places. */
async function checkAll(work: Work, sent: readonly unknown[]): Promise<Placed[]> {
  const { request, form } = work;
  const steps = new Steps();
  const checked: Placed[] = [];
  for (const [place, each] of sent.entries()) {
    if (place % CALLS_OF_STEP === 0 && steps.isLong) await steps.next();
    let kind: Kind | null = null;
    try {
      const read = form.read(request, each, place);
      kind = read.kind;
      const input = checkInput(kind.definition, read.members) as Placed["input"];
      checked.push({ kind, input, call: read.call, place, flight: null });
    } catch (error) {
      work.refused(place, kind, error);
    }
  }
  return checked;
}

/** Gives calls their places among the calls of their keys. */
function placeAll(work: Work, calls: readonly Placed[]): Placed[] {
  const { idempotency } = work.request.world.term;
  return calls.filter((placed) => {
    const { kind, call, place } = placed;
    if (call === null) work.keyless += 1;
    else if ((placed.flight = idempotency.begin(call)) === null) work.refused(place, kind, keyConflict());
    return call === null || placed.flight !== null;
  });
}

/** Looks up the first answers of calls that wait for no other call. @returns why that failed, or null */
async function lookUp({ world }: TogetherRequest, calls: readonly Placed[]): Promise<unknown> {
  const free = calls.flatMap(({ flight }) => flight !== null && flight.before === null ? [flight] : []);
  if (free.length === 0) return null;
  try {
    await world.term.idempotency.lookUp(free);
    return null;
  } catch (error) {
    return error;
  }
}

/**
 * Decides calls. If the user of a call is in memory, the call is decided at once, and its answer is kept as text only: a
 * promise for each would cost more than the decision.
 *
 * @param fault why the lookup of the keys failed, or null
 */
async function decidePiece(work: Work, calls: readonly Placed[], fault: unknown): Promise<void> {
  const { idempotency } = work.request.world.term;
  const round: Round = { waiting: new Set(), fault };
  const later: Placed[] = [];
  for (const call of calls) {
    try {
      const now = decideNow(work, call, round);
      if (now === null) {
        later.push(call);
        continue;
      }
      work.decided(call, now);
    } catch (error) {
      work.failed(call, error);
    }
    if (call.flight !== null) idempotency.end(call.flight);
  }
  if (later.length > 0) await decideLater(work, later);
}

/** Returns the answer to a call that can be decided without waiting, else null. */
function decideNow(
  { request: { world, caller: { realm } }, awaited }: Work,
  { kind, input, flight }: Placed,
  { waiting, fault }: Round,
): WrittenAnswer | null {
  const { directory, idempotency } = world.term;
  const isBehind = flight !== null && flight.before !== null;
  if (flight !== null && !isBehind) {
    if (flight.known === undefined) throw fault;
    const known = idempotency.outcomeNow(flight, awaited);
    if (known !== null) return knownAnswer(known);
  }
  const { of, name, input: command, isCapped, needs, show } = kind.ask(input);
  const user = userOf(of);
  const actor = inMemory(directory, realm.realm, user);
  const waitsAs = actor ?? user;
  if (actor !== null && !isBehind && !waiting.has(waitsAs)) {
    const keeping = flight === null ? null : keepingOf(flight.call, show, flight.isNew);
    const outcome = actor.runNow({ realm, name, input: command, isCapped, needs, keeping }, awaited);
    if (outcome !== null) return write(handledOf(outcome, show));
  }
  waiting.add(waitsAs);
  return null;
}

/** The name of a call's user: an id, or the number in the id of a reservation; null where that names no user. */
type UserName = string | UserKey | null;

function userOf(of: Target): UserName {
  if ("userId" in of) return of.userId;
  return "reservationId" in of ? ownerOf("reservation", of.reservationId) : null;
}

function inMemory(
  directory: Pick<Directory, "inMemory" | "inMemoryByKey">,
  realm: number,
  user: UserName,
): Actor | null {
  if (user === null) return null;
  if (typeof user === "string") return directory.inMemory(realm, user);
  const actor = directory.inMemoryByKey(user);
  return actor?.state.user.realm === realm ? actor : null;
}

/** Decides calls that wait for a load, another turn or another call with their key. */
async function decideLater(work: Work, calls: readonly Placed[]): Promise<void> {
  const names = calls.map(({ kind, input }) => userOf(kind.ask(input).of));
  const actors = await actorsOf(work.request, new Set(names));
  /** By user: resolves when the last call so far has begun its turn. */
  const begun = new Map<unknown, Promise<void>>();
  await Promise.all(calls.map((call, index) => {
    const name = names[index] as UserName;
    const user = actors.get(name) ?? name;
    const { promise, resolve } = Promise.withResolvers<void>();
    const before = begun.get(user);
    begun.set(user, promise);
    return decideAfter(work, call, before, resolve);
  }));
}

/** Returns the actor of each name, which shows two names of one user. A single name needs no lookup. */
async function actorsOf(
  { world, caller }: TogetherRequest,
  names: ReadonlySet<UserName>,
): Promise<ReadonlyMap<UserName, Actor>> {
  if (names.size < 2) return new Map();
  const { directory } = world.term;
  const { realm } = caller.realm;
  const asked = [...names];
  const found = await Promise.allSettled(
    asked.map((name) =>
      name === null
        ? null
        : typeof name === "string"
        ? directory.actorOf(realm, name)
        : directory.actorByKey(realm, name)
    ),
  );
  return new Map(
    asked.flatMap((name, place) => {
      const outcome = found[place] as PromiseSettledResult<Actor | null>;
      return outcome.status === "fulfilled" && outcome.value !== null ? [[name, outcome.value] as const] : [];
    }),
  );
}

/**
 * Decides a call after the one before it.
 *
 * @param before resolves when the previous call of the same user has begun its turn
 * @param begins called when this call has begun its turn, or failed before
 */
async function decideAfter(
  work: Work,
  placed: Placed,
  before: Promise<void> | undefined,
  begins: () => void,
): Promise<void> {
  const { request } = work;
  const { kind, input, flight } = placed;
  const first = async () => {
    await before;
    const asked = kind.ask(input);
    const handled = runTurn({ ...request, idempotent: flight?.call ?? null }, asked.of, asked, asked.show);
    begins();
    return write(await handled);
  };
  try {
    if (flight === null) return work.decided(placed, await first());
    const outcome = await request.world.term.idempotency.runBegun(flight, first);
    work.decided(placed, outcome.kind === "first" ? outcome.answer : knownAnswer(outcome));
  } catch (error) {
    work.failed(placed, error);
  } finally {
    begins();
  }
}

/** Returns the first answer of a key; throws if the key was used for another call. */
function knownAnswer(known: KnownOutcome): WrittenAnswer {
  if (known.kind === "conflict") throw keyConflict();
  return readKept(known.answer);
}

function keyConflict(): Refused {
  return new Refused("idempotency_conflict", "The idempotencyKey was used for another call");
}
