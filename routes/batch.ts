// Batches of events: one body, many turns. Users are decided side by side, the events of one user in the order in which
// they stand. What becomes of an event, a refusal too, is its result, and never the status of the call. beyond.md, section
// 5.

import type { Actor } from "../actors/actor.ts";
import type { Directory } from "../actors/directory.ts";
import type { Idempotency, IdempotentCall } from "../actors/idempotency.ts";
import { REQUEST_LIMITS } from "../src/process/limits.ts";
import { write, writeHandled, type WrittenAnswer } from "./answer.ts";
import { type Members, refuseForbiddenText } from "./body.ts";
import { valueHash } from "./canonical.ts";
import { endpointsOn } from "./endpoint.ts";
import type { Endpoint, EndpointRequest } from "./endpoint_types.ts";
import { invalidMember, Refused } from "./errors.ts";
import { checkInput } from "./input.ts";
import { track } from "./metering.ts";
import { countCall, type CountingWorld } from "./rate_limit.ts";
import { refusalOf } from "./respond.ts";
import { trackBatchAnswer } from "./schemas/answers.ts";
import { trackBatchInput } from "./schemas/metering.ts";
import type { TurnWorld } from "./turn.ts";

/** What batches run on. */
export interface BatchWorld extends TurnWorld, CountingWorld {
  readonly term: TurnWorld["term"] & {
    readonly directory: Pick<Directory, "actorOf">;
    readonly idempotency: Pick<Idempotency, "run">;
  };
}

type Request = EndpointRequest<BatchWorld, unknown>;

/** An event that may be decided. */
interface Event {
  readonly input: { readonly userId: string };
  /** Null for an event without a key. */
  readonly idempotent: IdempotentCall | null;
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
    if (request.idempotent !== null) {
      return { ok: true, data: { results: results.map(({ body }) => JSON.parse(body)) } };
    }
    const bodies = results.map(({ body }) => body).join(",");
    return { code: "ok", status: 200, body: `{"ok":true,"data":{"results":[${bodies}]}}` };
  },
});

export const BATCHES: readonly Endpoint<BatchWorld>[] = [trackBatch];

async function trackAll(request: Request, events: readonly unknown[]): Promise<WrittenAnswer[]> {
  const checked = events.map((event) => checkedEvent(request, event));
  const userIds = new Set(checked.flatMap((event) => "input" in event ? [event.input.userId] : []));
  const userOf = await usersOf(request, userIds);
  /** The last event of each user that has begun its turn, or will. */
  const begun = new Map<unknown, Promise<void>>();
  return await Promise.all(checked.map((event) => {
    if (!("input" in event)) return event;
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

/** An event whose input fits, or the answer that refuses it. */
function checkedEvent({ world, caller }: Request, event: unknown): Event | WrittenAnswer {
  try {
    countCall(world, caller);
    if (typeof event !== "object" || event === null || Array.isArray(event)) {
      throw invalidMember("", "The event is not a JSON object");
    }
    const { idempotencyKey: key = null, ...members } = event as Members;
    refuseForbiddenText(event as Members);
    const input = checkInput(track, members) as Event["input"];
    return { input, idempotent: key === null ? null : keyedEvent(caller.realm.realm, key, members) };
  } catch (error) {
    return refusedWith(error);
  }
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
