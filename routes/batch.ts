// Batches of events: one body, many turns. Users are decided side by side, the events of one user in the order in which
// they stand. What becomes of an event, a refusal too, is its result, and never the status of the call. beyond.md, section
// 5.

import type { z } from "zod";
import type { Actor } from "../actors/actor.ts";
import type { Directory } from "../actors/directory.ts";
import { allDurable, type Batch } from "../actors/gate.ts";
import type { Idempotency, IdempotentCall } from "../actors/idempotency.ts";
import { REQUEST_LIMITS } from "../src/process/limits.ts";
import { write, writeHandled, type WrittenAnswer } from "./answer.ts";
import { type Members, refuseForbiddenText } from "./body.ts";
import { valueHash } from "./canonical.ts";
import { endpointsOn } from "./endpoint.ts";
import type { Endpoint, EndpointRequest } from "./endpoint_types.ts";
import { invalidMember, Refused } from "./errors.ts";
import { checkInput } from "./input.ts";
import { showTrack, track, trackCommand } from "./metering.ts";
import { countCall, type CountingWorld } from "./rate_limit.ts";
import { refusalOf } from "./respond.ts";
import { trackBatchAnswer } from "./schemas/answers.ts";
import { trackBatchInput, type trackInput } from "./schemas/metering.ts";
import { handledOf, type TurnWorld } from "./turn.ts";

/** What batches run on. */
export interface BatchWorld extends TurnWorld, CountingWorld {
  readonly term: TurnWorld["term"] & {
    readonly directory: Pick<Directory, "actorOf" | "inMemory">;
    readonly idempotency: Pick<Idempotency, "run">;
  };
}

type Request = EndpointRequest<BatchWorld, unknown>;

/** An event that may be decided. */
interface Event {
  readonly input: z.infer<typeof trackInput>;
  /** Null for an event without a key. */
  readonly idempotent: IdempotentCall | null;
}

/** An event that has to wait, and its place among the events of the batch. */
interface LaterEvent extends Event {
  readonly place: number;
}

const endpoint = endpointsOn<BatchWorld>();

/** `POST /v1/track/batch`: many events in one call. */
const trackBatch = endpoint({
  method: "POST",
  path: "/v1/track/batch",
  access: "secret",
  input: trackBatchInput,
  isBatch: true,
  doc: {
    id: "trackBatch",
    tag: "Metering",
    summary: "Count many events in one call",
    description:
      "Each event is a body of track, with an idempotencyKey of its own where it may be sent again: alone or " +
      "in another batch, it then gets its first result. Events are independent of each other; those of one " +
      "user are counted in the order in which they stand. Each takes one call of the rate limit.",
    answer: trackBatchAnswer,
    errors: [],
  },
  handle: async (request) => {
    const { events } = request.input;
    const results = await trackAll(request, events);
    // A first answer is kept as a value; otherwise the results' texts are the answer's text.
    if (request.idempotent !== null) return { ok: true, data: { results: JSON.parse(`[${results}]`) } };
    return { code: "ok", status: 200, body: `{"ok":true,"data":{"results":[${results}]}}` };
  },
});

export const BATCHES: readonly Endpoint<BatchWorld>[] = [trackBatch];

/**
 * Tracks events, each at its place. An event that needs nothing but the memory of its user is decided at once, and its
 * answer is kept as text alone: a promise and an object for each would cost more than the decision.
 *
 * @returns the results as JSON, with commas between them
 */
async function trackAll(request: Request, events: readonly unknown[]): Promise<string> {
  const texts: string[] = [];
  const awaited = new Set<Batch>();
  const later: LaterEvent[] = [];
  /** Users with an event that waits, by actor, or by id where nobody knows the actor yet. */
  const waiting = new Set<unknown>();
  for (const [place, event] of events.entries()) {
    try {
      const checked = checkedEvent(request, event);
      const now = trackNow(request, checked, waiting, awaited);
      if (now === null) later.push({ ...checked, place });
      texts.push(now ?? "");
    } catch (error) {
      texts.push(refusedWith(error).body);
    }
  }
  if (later.length > 0) {
    const bodies = await trackLater(request, later);
    for (const [index, { place }] of later.entries()) texts[place] = (bodies[index] as WrittenAnswer).body;
  }
  // One text outlives the wait, in place of one for each event.
  const text = texts.join(",");
  await allDurable(awaited);
  return text;
}

/** The answer to an event of a user that is in memory and that no other event waits for; null where it has to wait. */
function trackNow(
  { world, caller: { realm } }: Request,
  { input, idempotent }: Event,
  waiting: Set<unknown>,
  awaited: Set<Batch>,
): string | null {
  const actor = world.term.directory.inMemory(realm.realm, input.userId);
  const user = actor ?? input.userId;
  if (actor !== null && idempotent === null && !waiting.has(user)) {
    const outcome = actor.runNow({ realm, ...trackCommand(input) }, awaited);
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
  { input, idempotent }: Event,
  before: Promise<void> | undefined,
  begins: () => void,
): Promise<WrittenAnswer> {
  const first = async () => {
    await before;
    const handled = track.handle({ ...request, input, idempotent });
    begins();
    return writeHandled(await handled);
  };
  try {
    if (idempotent === null) return await first();
    const outcome = await request.world.term.idempotency.run(idempotent, first);
    if (outcome.kind !== "conflict") return { ...outcome.answer, code: "ok" };
    throw new Refused("idempotency_conflict", "The idempotencyKey was used for another event");
  } catch (error) {
    return refusedWith(error);
  } finally {
    begins();
  }
}

/** An event whose input fits; throws the refusal of any other. */
function checkedEvent({ world, caller }: Request, event: unknown): Event {
  countCall(world, caller);
  if (typeof event !== "object" || event === null || Array.isArray(event)) {
    throw invalidMember("", "The event is not a JSON object");
  }
  refuseForbiddenText(event as Members);
  const { members, key } = keyOf(event as Members);
  const input = checkInput(track, members) as Event["input"];
  return { input, idempotent: key === null ? null : keyedEvent(caller.realm.realm, key, members) };
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

function refusedWith(error: unknown): WrittenAnswer {
  return write({ ok: false, error: refusalOf("", error) });
}
