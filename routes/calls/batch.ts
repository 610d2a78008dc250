// Batches of events: one request, many turns. Users are decided side by side, the events of one user in the order of the
// list. Each event has a result of its own, which may be a refusal; the status of the call doesn't depend on them.

import type { Actor } from "../../actors/actor.ts";
import type { Directory } from "../../actors/directory.ts";
import { allDurable, type Batch } from "../../actors/gate.ts";
import type { Flight, Idempotency, IdempotentCall, KnownOutcome } from "../../actors/idempotency.ts";
import type { TrackAnswer } from "../../src/domain/metering/track.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";
import type { Caller } from "../../src/tenant/registry.ts";
import { type Answer, failure, success, write, type WrittenAnswer } from "../http/answer.ts";
import { type Members, refuseForbiddenText } from "../http/json_body.ts";
import { valueHash } from "../http/canonical.ts";
import { endpointsOn } from "../http/endpoint.ts";
import type { Endpoint, EndpointRequest } from "../http/endpoint_types.ts";
import type { CheckedOf, DataOf } from "../contract/definition.ts";
import { trackBatch } from "../contract/batch.ts";
import { track } from "../contract/metering.ts";
import { invalidMember, Refused } from "../http/errors.ts";
import { checkInput } from "../http/input.ts";
import { showTrackOf, trackCommand } from "./metering.ts";
import { countCall, type CountingWorld } from "../http/rate_limit.ts";
import { refusalOf } from "../http/respond.ts";
import { partOf, storedKey } from "../http/stored_keys.ts";
import { handledOf, keepingOf, runTurn, type TurnWorld } from "../http/turn.ts";
import { joined, warningsAbout } from "../http/unknown_members.ts";

/** What batches need of the running service. */
export interface BatchWorld extends TurnWorld, CountingWorld {
  readonly term: TurnWorld["term"] & {
    readonly directory: Pick<Directory, "actorOf" | "inMemory">;
    readonly idempotency: Pick<Idempotency, "begin" | "end" | "lookUp" | "outcomeNow" | "runBegun">;
  };
}

type Request = EndpointRequest<BatchWorld, unknown>;
type Tracked = DataOf<typeof track>;

/** An event with valid input. */
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
  /** Batches of changes that must be durable before any answer leaves. */
  readonly awaited: Set<Batch>;
  /** Users with an event that waits, by actor, or by id while the actor is unknown. */
  readonly waiting: Set<unknown>;
  /** Set when the lookup of the keys failed: the error. */
  fault: unknown;
}

const endpoint = endpointsOn<BatchWorld>();

export const BATCHES: readonly Endpoint<BatchWorld>[] = [
  endpoint(trackBatch, async (request) => {
    const { events } = request.input;
    const results = await trackAll(request, events);
    const warnings = joined(warningsAbout(request.input));
    // A first answer is kept as a value. Otherwise the texts of the results make up the text of the answer.
    return request.idempotent === null
      ? writtenBatch(results, warnings)
      : success({ results: readResults(results), warnings });
  }),
];

type Batched = DataOf<typeof trackBatch>;

function writtenBatch(results: string, warnings: string[] | undefined): WrittenAnswer<Batched> {
  const told = warnings === undefined ? "" : `,"${WARNINGS}":${JSON.stringify(warnings)}`;
  return { code: "ok", status: 200, body: `{"ok":true,"data":{"${RESULTS}":[${results}]${told}}}` };
}

const RESULTS: keyof Batched = "results";
const WARNINGS: keyof Batched = "warnings";

function readResults(results: string): Batched["results"] {
  return JSON.parse(`[${results}]`) as Answer<Tracked>[];
}

/**
 * Tracks events, each at its place. If the user of an event is in memory, the event is decided at once, and its answer is kept as text
 * only: a promise for each would cost more than the decision. All keys take their places before any of them is looked up,
 * so two batches with the same keys never wait for each other.
 *
 * @returns the results as JSON texts, separated by commas
 */
async function trackAll(request: Request, events: readonly unknown[]): Promise<string> {
  const { idempotency } = request.world.term;
  const texts: string[] = [];
  const ready: PlacedEvent[] = [];
  const free: Flight[] = [];
  for (const [place, event] of events.entries()) {
    try {
      const { input, flight } = checkedEvent(request, event, place);
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
      texts[place] = now.body;
    } catch (error) {
      texts[place] = refusedWith(error).body;
    }
    if (flight !== null) idempotency.end(flight);
  }
  if (later.length > 0) {
    const bodies = await trackLater(request, later);
    for (const [index, { place }] of later.entries()) {
      texts[place] = (bodies[index] as WrittenAnswer<Tracked>).body;
    }
  }
  // Only one text is held during the wait, not one for each event.
  const text = texts.join(",");
  await allDurable(round.awaited);
  return text;
}

/** Returns the answer to an event that can be decided without waiting, else null. */
function trackNow(
  { world, caller: { realm } }: Request,
  { input, flight }: Event,
  { awaited, waiting, fault }: Round,
): WrittenAnswer<Tracked> | null {
  const { directory, idempotency } = world.term;
  const isBehind = flight !== null && flight.before !== null;
  if (flight !== null && !isBehind) {
    if (flight.known === undefined) throw fault;
    const known = idempotency.outcomeNow(flight, awaited);
    if (known !== null) return knownAnswer(known);
  }
  const actor = directory.inMemory(realm.realm, input.userId);
  const user = actor ?? input.userId;
  if (actor !== null && !isBehind && !waiting.has(user)) {
    const show = showTrackOf(input);
    const keeping = flight === null ? null : keepingOf(flight.call, show);
    const outcome = actor.runNow({ realm, ...trackCommand(input), keeping }, awaited);
    if (outcome !== null) return write(handledOf<TrackAnswer, Tracked>(outcome, show));
  }
  waiting.add(user);
  return null;
}

/** Tracks events that wait for a load, another turn or another call with their key; answers are in the order of events. */
async function trackLater(request: Request, events: readonly Event[]): Promise<WrittenAnswer<Tracked>[]> {
  const userOf = await usersOf(request, new Set(events.map(({ input }) => input.userId)));
  /** By user: resolves when the last event so far has begun its turn. */
  const begun = new Map<unknown, Promise<void>>();
  return await Promise.all(events.map((event) => {
    const user = userOf.get(event.input.userId) ?? event.input.userId;
    const { promise, resolve } = Promise.withResolvers<void>();
    const before = begun.get(user);
    begun.set(user, promise);
    return trackOne(request, event, before, resolve);
  }));
}

/** Returns the actor of each id, which shows two ids of one user. A single id needs no lookup. */
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
 * Tracks an event after the one before it.
 *
 * @param before resolves when the previous event of the same user has begun its turn
 * @param begins called when this event has begun its turn, or failed before
 */
async function trackOne(
  request: Request,
  { input, flight }: Event,
  before: Promise<void> | undefined,
  begins: () => void,
): Promise<WrittenAnswer<Tracked>> {
  const first = async () => {
    await before;
    const call = { ...request, idempotent: flight?.call ?? null };
    const handled = runTurn<"track", Tracked>(call, input, trackCommand(input), showTrackOf(input));
    begins();
    return write(await handled);
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

/**
 * Returns an event with checked input and its place among the calls of its key; throws on invalid input. In a batch with a
 * key an event without one is a part of the call: a retry repeats none of those that became durable.
 */
function checkedEvent({ world, caller, idempotent }: Request, event: unknown, place: number): Event {
  countCall(world, caller);
  if (typeof event !== "object" || event === null || Array.isArray(event)) {
    throw invalidMember("", "The event is not a JSON object");
  }
  refuseForbiddenText(event as Members);
  const { members, key } = keyOf(event as Members);
  const input = checkInput(track, members) as Event["input"];
  if (key === null && idempotent === null) return { input, flight: null };
  const call = key === null && idempotent !== null
    ? partOf(idempotent, place)
    : keyedEvent(caller, key, members);
  const flight = world.term.idempotency.begin(call);
  if (flight === null) throw keyConflict();
  return { input, flight };
}

/** Splits an event into its key and the members of a `POST /v1/track` body. */
function keyOf(event: Members): { readonly members: Members; readonly key: unknown } {
  if (event.idempotencyKey === undefined) return { members: event, key: null };
  const { idempotencyKey: key, ...members } = event;
  return { members, key };
}

function keyedEvent({ realm, key: apiKey }: Caller, key: unknown, members: Members): IdempotentCall {
  if (typeof key !== "string" || key.length < 1 || key.length > REQUEST_LIMITS.idempotencyKeyLengthMax) {
    throw invalidMember("idempotencyKey", "must be a string of 1 to 200 characters");
  }
  return { realm: realm.realm, key: storedKey(apiKey, key), requestHash: valueHash(track.path, members) };
}

/** Returns the first answer of a key; throws if the key was used for another event. */
function knownAnswer(known: KnownOutcome): WrittenAnswer<Tracked> {
  if (known.kind === "conflict") throw keyConflict();
  return { ...known.answer, code: "ok" };
}

function keyConflict(): Refused {
  return new Refused("idempotency_conflict", "The idempotencyKey was used for another event");
}

function refusedWith(error: unknown): WrittenAnswer<never> {
  return write(failure(refusalOf("", error)));
}
