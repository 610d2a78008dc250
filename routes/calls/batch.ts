// Batches of events: one body, many turns. Users are decided side by side, the events of one user in the order in which
// they stand. What becomes of an event, a refusal too, is its result, and never the status of the call. beyond.md, section
// 5.

import type { Actor } from "../../actors/actor.ts";
import type { Directory } from "../../actors/directory.ts";
import { allDurable, type Batch } from "../../actors/gate.ts";
import type { Flight, Idempotency, IdempotentCall, KnownOutcome } from "../../actors/idempotency.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";
import { write, writeHandled, type WrittenAnswer } from "../http/answer.ts";
import { type Members, refuseForbiddenText } from "../http/body.ts";
import { valueHash } from "../http/canonical.ts";
import { endpointsOn } from "../http/endpoint.ts";
import type { Endpoint, EndpointRequest } from "../http/endpoint_types.ts";
import type { CheckedOf, DataOf } from "../contract/definition.ts";
import { track, trackBatch } from "../contract/metering.ts";
import { invalidMember, Refused } from "../http/errors.ts";
import { checkInput } from "../http/input.ts";
import { showTrack, trackCommand } from "./metering.ts";
import { countCall, type CountingWorld } from "../http/rate_limit.ts";
import { refusalOf } from "../http/respond.ts";
import { handledOf, keepingOf, runTurn, type TurnWorld } from "../http/turn.ts";

/** What batches run on. */
export interface BatchWorld extends TurnWorld, CountingWorld {
  readonly term: TurnWorld["term"] & {
    readonly directory: Pick<Directory, "actorOf" | "inMemory">;
    readonly idempotency: Pick<Idempotency, "begin" | "end" | "lookUp" | "outcomeNow" | "runBegun">;
  };
}

type Request = EndpointRequest<BatchWorld, unknown>;
type Tracked = DataOf<typeof track>;

/** An event that may be decided. */
interface Event {
  readonly input: CheckedOf<typeof track>;
  /** Its place among the calls of its key; null for an event without one. */
  readonly flight: Flight | null;
}

/** An event and its place among those of the batch. */
interface PlacedEvent extends Event {
  readonly place: number;
}

/** What the events of a batch share while they are decided. */
interface Round {
  /** What must be durable before anybody is told. */
  readonly awaited: Set<Batch>;
  /** Users with an event that waits, by actor, or by id where nobody knows the actor yet. */
  readonly waiting: Set<unknown>;
  /** Why the keys could not be looked up. */
  fault: unknown;
}

const endpoint = endpointsOn<BatchWorld>();

export const BATCHES: readonly Endpoint<BatchWorld>[] = [
  endpoint(trackBatch, async (request) => {
    const { events } = request.input;
    const results = await trackAll(request, events);
    // A first answer is kept as a value; otherwise the results' texts are the answer's text.
    if (request.idempotent !== null) return { ok: true, data: { results: JSON.parse(`[${results}]`) } };
    return { code: "ok", status: 200, body: `{"ok":true,"data":{"results":[${results}]}}` };
  }),
];

/**
 * Tracks events, each at its place. An event that needs nothing but the memory of its user is decided at once, and its
 * answer is kept as text alone: a promise and an object for each would cost more than the decision. All keys have their
 * places before any of them is looked up, so two batches with the same keys never wait for each other.
 *
 * @returns the results as JSON, with commas between them
 */
async function trackAll(request: Request, events: readonly unknown[]): Promise<string> {
  const { idempotency } = request.world.term;
  const texts: string[] = [];
  const ready: PlacedEvent[] = [];
  const free: Flight[] = [];
  for (const [place, event] of events.entries()) {
    try {
      const { input, flight } = checkedEvent(request, event);
      ready.push({ input, flight, place });
      if (flight !== null && flight.before === null) free.push(flight);
      texts.push("");
    } catch (error) {
      texts.push(refusedWith(error).body);
    }
  }
  const round: Round = { awaited: new Set(), waiting: new Set(), fault: null };
  if (free.length > 0) await idempotency.lookUp(free)?.catch((error) => round.fault = error);
  const later: PlacedEvent[] = [];
  for (const event of ready) {
    const { flight, place } = event;
    try {
      const now = trackNow(request, event, round);
      if (now === null) {
        later.push(event);
        continue;
      }
      texts[place] = now;
    } catch (error) {
      texts[place] = refusedWith(error).body;
    }
    if (flight !== null) idempotency.end(flight);
  }
  if (later.length > 0) {
    const bodies = await trackLater(request, later);
    for (const [index, { place }] of later.entries()) texts[place] = (bodies[index] as WrittenAnswer).body;
  }
  // One text outlives the wait, in place of one for each event.
  const text = texts.join(",");
  await allDurable(round.awaited);
  return text;
}

/** The answer to an event that waits for no load, no turn of others and no other call under its key; else null. */
function trackNow(
  { world, caller: { realm } }: Request,
  { input, flight }: Event,
  { awaited, waiting, fault }: Round,
): string | null {
  const { directory, idempotency } = world.term;
  const isBehind = flight !== null && flight.before !== null;
  if (flight !== null && !isBehind) {
    if (flight.known === undefined) throw fault;
    const known = idempotency.outcomeNow(flight, awaited);
    if (known !== null) return knownAnswer(known).body;
  }
  const actor = directory.inMemory(realm.realm, input.userId);
  const user = actor ?? input.userId;
  if (actor !== null && !isBehind && !waiting.has(user)) {
    const keeping = flight === null ? null : keepingOf(flight.call, showTrack);
    const outcome = actor.runNow({ realm, ...trackCommand(input), keeping }, awaited);
    if (outcome !== null) return writeHandled(handledOf(outcome, showTrack)).body;
  }
  waiting.add(user);
  return null;
}

/** Tracks events that have to wait for a load, for a turn of others or for a key; answers in the order of the events. */
async function trackLater(request: Request, events: readonly Event[]): Promise<WrittenAnswer[]> {
  const userOf = await usersOf(request, new Set(events.map(({ input }) => input.userId)));
  /** The last event of each user that has begun its turn, or will. */
  const begun = new Map<unknown, Promise<void>>();
  return await Promise.all(events.map((event) => {
    const user = userOf.get(event.input.userId) ?? event.input.userId;
    const { promise, resolve } = Promise.withResolvers<void>();
    const before = begun.get(user);
    begun.set(user, promise);
    return trackOne(request, event, before, resolve);
  }));
}

/** The actor of each id, so that two ids of one user are known as one. A single id needs no look. */
async function usersOf(
  { world, caller }: Request,
  userIds: ReadonlySet<string>,
): Promise<ReadonlyMap<string, Actor>> {
  if (userIds.size < 2) return new Map();
  const { directory } = world.term;
  const { realm } = caller.realm;
  const found = await Promise.allSettled([...userIds].map((id) => directory.actorOf(realm, id)));
  return new Map(
    [...userIds].flatMap((id, place) => {
      const outcome = found[place] as PromiseSettledResult<Actor>;
      return outcome.status === "fulfilled" ? [[id, outcome.value] as const] : [];
    }),
  );
}

/**
 * Tracks an event once it is its turn.
 *
 * @param before the event of the same user that stands before it has begun its turn
 * @param begins called when this one has, or never will
 */
async function trackOne(
  request: Request,
  { input, flight }: Event,
  before: Promise<void> | undefined,
  begins: () => void,
): Promise<WrittenAnswer> {
  const first = async () => {
    await before;
    const call = { ...request, idempotent: flight?.call ?? null };
    const handled = runTurn<"track", Tracked>(call, input, trackCommand(input), showTrack);
    begins();
    return writeHandled(await handled);
  };
  try {
    if (flight === null) return await first();
    const outcome = await request.world.term.idempotency.runBegun(flight, first);
    return outcome.kind === "first" ? outcome.answer : knownAnswer(outcome);
  } catch (error) {
    return refusedWith(error);
  } finally {
    begins();
  }
}

/** An event whose input fits, with its place under its key; throws the refusal of any other. */
function checkedEvent({ world, caller }: Request, event: unknown): Event {
  countCall(world, caller);
  if (typeof event !== "object" || event === null || Array.isArray(event)) {
    throw invalidMember("", "The event is not a JSON object");
  }
  refuseForbiddenText(event as Members);
  const { members, key } = keyOf(event as Members);
  const input = checkInput(track, members) as Event["input"];
  if (key === null) return { input, flight: null };
  const flight = world.term.idempotency.begin(keyedEvent(caller.realm.realm, key, members));
  if (flight === null) throw keyConflict();
  return { input, flight };
}

/** The key of an event, and the members that make a body of track. */
function keyOf(event: Members): { readonly members: Members; readonly key: unknown } {
  if (event.idempotencyKey === undefined) return { members: event, key: null };
  const { idempotencyKey: key, ...members } = event;
  return { members, key };
}

function keyedEvent(realm: number, key: unknown, members: Members): IdempotentCall {
  if (typeof key !== "string" || key.length < 1 || key.length > REQUEST_LIMITS.idempotencyKeyLengthMax) {
    throw invalidMember("idempotencyKey", "must be a text of 1 to 200 characters");
  }
  return { realm, key, requestHash: valueHash(track.path, members) };
}

/** The answer to an event whose key has a first answer; throws the refusal of another event under it. */
function knownAnswer(known: KnownOutcome): WrittenAnswer {
  if (known.kind === "conflict") throw keyConflict();
  return { ...known.answer, code: "ok" };
}

function keyConflict(): Refused {
  return new Refused("idempotency_conflict", "The idempotencyKey was used for another event");
}

function refusedWith(error: unknown): WrittenAnswer {
  return write({ ok: false, error: refusalOf("", error) });
}
