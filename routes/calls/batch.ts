// Batches of events: one request, many turns. Users are decided side by side, the events of one user in the order of the
// list. Each event has a result of its own, which may be a refusal; the status of the call doesn't depend on them.

import type { Actor } from "../../actors/actor.ts";
import type { BatchRoom } from "../../actors/batch_room.ts";
import type { Directory } from "../../actors/directory.ts";
import type { Drain } from "../../actors/drain.ts";
import { allDurable, type Batch } from "../../actors/gate.ts";
import type { Flight, Idempotency, IdempotentCall, KnownOutcome } from "../../actors/idempotency.ts";
import type { TrackAnswer } from "../../src/domain/metering/track.ts";
import { REQUEST_LIMITS, RUNTIME_LIMITS } from "../../src/process/limits.ts";
import { Steps } from "../../src/process/steps.ts";
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
    readonly batchRoom: BatchRoom;
    readonly drain: Pick<Drain, "roomForMore">;
    readonly idempotency: Pick<Idempotency, "begin" | "end" | "lookUp" | "outcomeNow" | "runBegun">;
  };
}

type Request = EndpointRequest<BatchWorld, unknown>;
type Tracked = DataOf<typeof track>;

/** An event with valid input. */
interface CheckedEvent {
  readonly input: CheckedOf<typeof track>;
  /** Its key and what it is compared by; null for an event without a key. */
  readonly call: IdempotentCall | null;
  /** Its place among the events of the batch. */
  readonly place: number;
}

/** An event with its place among the calls of its key; null for an event without one. */
interface Event extends Pick<CheckedEvent, "input" | "place"> {
  readonly flight: Flight | null;
}

/** What events share while they are decided together. */
interface Round {
  /** Batches of changes that must be durable before any answer leaves. */
  readonly awaited: Set<Batch>;
  /** Users with an event that waits, by actor, or by id while the actor is unknown. */
  readonly waiting: Set<unknown>;
  /** Why the lookup of the keys failed, or null. */
  readonly fault: unknown;
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
 * Tracks events, each at its place. All keys take their places before any of them is looked up, in one step, so two batches
 * with the same keys never wait for each other. A large batch is decided in pieces, each once the one before it is durable,
 * so that the calls of others do not wait for all of it.
 *
 * @returns the results as JSON texts, separated by commas
 */
async function trackAll(request: Request, events: readonly unknown[]): Promise<string> {
  const { idempotency, batchRoom, drain } = request.world.term;
  const { appId } = request.caller.app.record;
  const texts = Array<string>(events.length).fill("");
  const placed = placeAll(request, await checkAll(request, events, texts), texts);
  const pieces = piecesOf(placed);
  const bytes = Math.max(0, ...pieces.map((piece) => piece.bytes));
  const entered = batchRoom.enter(appId, bytes);
  const fault = await lookUp(request, placed);
  await entered;
  try {
    let awaited: ReadonlySet<Batch> = new Set();
    let since = performance.now();
    for (const { events } of pieces) {
      await allDurable(awaited);
      if (pieces.length > 1) await drain.roomForMore(since);
      since = performance.now();
      awaited = await trackPiece(request, events, texts, fault);
    }
    // Only one text is held during the wait, not one for each event.
    const text = texts.join(",");
    await allDurable(awaited);
    return text;
  } catch (error) {
    for (const { flight } of placed) if (flight !== null) idempotency.end(flight);
    throw error;
  } finally {
    batchRoom.leave(appId, bytes);
  }
}

/** Checks the input of events in steps; the refusals of invalid ones go to their places. */
async function checkAll(
  request: Request,
  events: readonly unknown[],
  texts: string[],
): Promise<CheckedEvent[]> {
  const steps = new Steps();
  const checked: CheckedEvent[] = [];
  for (const [place, event] of events.entries()) {
    if (steps.isLong) await steps.next();
    try {
      checked.push(checkedEvent(request, event, place));
    } catch (error) {
      texts[place] = refusedWith(error).body;
    }
  }
  return checked;
}

/** Gives events their places among the calls of their keys. */
function placeAll({ world }: Request, events: readonly CheckedEvent[], texts: string[]): Event[] {
  return events.flatMap(({ input, call, place }) => {
    const flight = call === null ? null : world.term.idempotency.begin(call);
    if (call === null || flight !== null) return [{ input, flight, place }];
    texts[place] = refusedWith(keyConflict()).body;
    return [];
  });
}

/** Looks up the first answers of events that wait for no other call. @returns why that failed, or null */
async function lookUp({ world }: Request, events: readonly Event[]): Promise<unknown> {
  const free = events.flatMap(({ flight }) => flight !== null && flight.before === null ? [flight] : []);
  if (free.length === 0) return null;
  try {
    await world.term.idempotency.lookUp(free);
    return null;
  } catch (error) {
    return error;
  }
}

/** Events of a batch that are decided together. */
interface Piece {
  readonly events: Event[];
  bytes: number;
}

function piecesOf(events: readonly Event[]): Piece[] {
  const pieces: Piece[] = [];
  for (const event of events) {
    const bytes = bytesOf(event);
    let piece = pieces.at(-1);
    if (piece === undefined || piece.bytes + bytes > RUNTIME_LIMITS.batchPieceBytes) {
      pieces.push(piece = { events: [], bytes: 0 });
    }
    piece.events.push(event);
    piece.bytes += bytes;
  }
  return pieces;
}

/** Bytes of an event's row and counters, about. */
const ROW_BYTES = 512;

/** About what an event writes. */
function bytesOf({ input: { metadata, prompt, response } }: Event): number {
  return ROW_BYTES + (metadata?.text.length ?? 0) + (prompt?.length ?? 0) + (response?.length ?? 0);
}

/**
 * Tracks events. If the user of an event is in memory, the event is decided at once, and its answer is kept as text only: a
 * promise for each would cost more than the decision.
 *
 * @param fault why the lookup of the keys failed, or null
 * @returns the batches of changes that must be durable before any answer leaves
 */
async function trackPiece(
  request: Request,
  events: readonly Event[],
  texts: string[],
  fault: unknown,
): Promise<ReadonlySet<Batch>> {
  const { idempotency } = request.world.term;
  const round: Round = { awaited: new Set(), waiting: new Set(), fault };
  const later: Event[] = [];
  for (const event of events) {
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
  return round.awaited;
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
 * Returns an event with checked input; throws on invalid input. In a batch with a key an event without one is a part of the
 * call: a retry repeats none of those that became durable.
 */
function checkedEvent({ world, caller, idempotent }: Request, event: unknown, place: number): CheckedEvent {
  countCall(world, caller);
  if (typeof event !== "object" || event === null || Array.isArray(event)) {
    throw invalidMember("", "The event is not a JSON object");
  }
  refuseForbiddenText(event as Members);
  const { members, key } = keyOf(event as Members);
  const input = checkInput(track, members) as Event["input"];
  if (key !== null) return { input, call: keyedEvent(caller, key, members), place };
  return { input, call: idempotent === null ? null : partOf(idempotent, place), place };
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
