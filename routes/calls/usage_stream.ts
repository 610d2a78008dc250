// The stream of a user's usage: the answer of `GET /v1/usage`, and again after every change.
//
// The process that took the request holds the stream, and asks the owner of the user's cell for each state. So when a cell
// moves, or its owner dies, the next question goes to the new owner. No question stays inside a cell, so that a stream never
// delays a hand-over.

import type { Context } from "hono";
import type { Directory } from "../../actors/directory.ts";
import { Stopping, Unavailable } from "../../actors/port.ts";
import type { Mark, Next, Reading, Watches } from "../../actors/watches.ts";
import type { StreamEnd, StreamNext, Streams, StreamSource } from "../../src/process/streams.ts";
import type { Counter } from "../../src/domain/state/counter.ts";
import { NO_SLOTS, type UsageAnswer } from "../../src/domain/usage.ts";
import type { Millis } from "../../src/domain/values/period.ts";
import { hashOf } from "../../src/process/secrets/hash.ts";
import type { Caller } from "../../src/tenant/registry.ts";
import { admit, type Admitted, refuseInput } from "../http/admission.ts";
import { type Answer, failure, success, write } from "../http/answer.ts";
import { askOwner } from "../http/ask_owner.ts";
import { endOfToken, requireSameUser, type Source } from "../http/auth.ts";
import type { Endpoint, EndpointRequest } from "../http/endpoint_types.ts";
import type { DispatchWorld, InternalCall } from "../http/call.ts";
import { EVENT_STREAM, streamUsage } from "../contract/usage_stream.ts";
import type { CheckedOf } from "../contract/definition.ts";
import { invalidMember, Refused } from "../http/errors.ts";
import { checkUserKey } from "../http/user_keys.ts";
import { isHead } from "../http/head.ts";
import { checkInput, readInput } from "../http/input.ts";
import { headersOf, requestId } from "../http/respond.ts";
import type { RouteMetrics } from "../http/request_metrics.ts";
import { showUsage } from "./shown_records.ts";

interface StreamWorld extends DispatchWorld {
  readonly term: DispatchWorld["term"] & {
    readonly directory: Pick<Directory, "runById" | "runByKey" | "inMemoryByKey" | "isSameUser">;
    readonly watches: Pick<Watches, "next">;
  };
}

/** The process that holds the streams. */
interface StreamHolder extends Source<StreamWorld> {
  /** The running term of the database that has an app. @throws MayNotAnswer */
  requireServingOf(app: { readonly appId: string }): StreamWorld;
  /** Like `requireServingOf`, but returns null where that throws. */
  servingOf(app: { readonly appId: string }): StreamWorld | null;
  readonly streams: Streams;
}

type Shown = CheckedOf<typeof streamUsage>;

/** Reads the first state of a stream at the owner. The others come by `nextUsage`. */
const usageStream = {
  ...streamUsage,
  handle: async (
    { world, caller, input, endUser }: EndpointRequest<StreamWorld, Shown>,
  ): Promise<Answer<Reading>> => {
    const userId = input.userId ?? endUser?.userId;
    if (userId === undefined) throw invalidMember("userId", "is required");
    await requireSameUser(world.term.directory, caller.realm, endUser, userId);
    return success(await read(world, caller, userId, input.event ?? null, endUser === null));
  },
};

export const USAGE_STREAM = [usageStream as unknown as Endpoint<StreamWorld>];

/** Waits at the owner until the state differs from the one sent before. */
export const nextUsage: InternalCall<
  StreamWorld,
  Mark & { readonly event: string | null; readonly withDuplicates: boolean },
  Next
> = {
  id: "nextUsage",
  waitsOutside: true,
  handle: async ({ world, caller, input }) => {
    const { id, event, withDuplicates } = input;
    const watched = {
      realm: caller.realm,
      id,
      // Each key has a reading of its own, since each is checked with it.
      variant: `${withDuplicates} ${caller.ofUser?.id ?? ""} ${event ?? ""}`,
      read: async () => {
        if (caller.ofUser !== null) await checkUserKey(world, caller, caller.ofUser);
        return await read(world, caller, id, event, withDuplicates);
      },
    };
    return success(await world.term.watches.next(watched, input));
  },
};

/** Reads the answer of `GET /v1/usage` once it is durable. */
async function read(
  { term }: StreamWorld,
  { realm }: Caller,
  userId: string,
  event: string | null,
  withDuplicates: boolean,
): Promise<Reading> {
  const result = await term.directory.runById(userId, { realm, name: "usage", input: { event } });
  if (!result.ok) throw new Refused(result.refusal.code, result.refusal.message);
  const { answer } = result;
  const text = JSON.stringify(showUsage(answer, withDuplicates));
  return {
    id: answer.userId,
    key: answer.isRecorded ? answer.userKey : null,
    digest: answer.slots === NO_SLOTS ? hashOf(text) : hashOf(textWithoutRates(answer, withDuplicates)),
    passing: answer.slots === NO_SLOTS ? NO_PARTS : answer.slots.map(partOf),
    text,
    changesAt: answer.changesAt,
    dependsOn: answer.dependsOn,
  };
}

const NO_PARTS: readonly string[] = [];

/** What a state says beside the counts of rates, which pass with time. */
function textWithoutRates(answer: UsageAnswer, withDuplicates: boolean): string {
  const counters = answer.counters.map((reading) =>
    reading.window.kind === "rate" ? { ...reading, counter: { ...reading.counter, count: 0n } } : reading
  );
  return JSON.stringify(showUsage({ ...answer, counters }, withDuplicates));
}

/** A slot of a rate with its count, in few bytes. */
function partOf({ key, count }: Counter): string {
  return hashOf(`${key}\n${count}`).slice(0, 8);
}

/** Answers a request with a stream, or refuses it like any other call. */
export async function handleStream(
  context: Context,
  holder: StreamHolder,
  metrics: RouteMetrics,
): Promise<Response> {
  const request = context.req.raw;
  const startedAt = metrics.starts();
  try {
    const admitted = await admit(request, holder, streamUsage);
    const shown = await shownOf(context, admitted);
    const id = requestId(request);
    const { streams } = holder;
    if (streams.isEnding) throw new Stopping("The service is stopping");
    const { appId } = admitted.caller.app.record;
    requireRoom(streams, appId);
    const first = await askOwner(admitted.world, usageStream, admitted, shown, id);
    if (!first.ok) return metrics.answered(startedAt, request, { ...write(first), requestId: id });
    const { text, ...seen } = first.data;
    const { caller: { key: { keyId }, ofUser }, endUser } = admitted;
    const isToken = endUser !== null && ofUser === null;
    const token = isToken ? request.headers.get("x-end-user-token") : null;
    const opened = {
      appId,
      keyId,
      event: shown.event ?? null,
      requestId: id,
      token,
      isOwn: endUser !== null,
      keyEndsAt: endUser?.expiresAt ?? null,
    };
    const source = new UsageSource(holder, opened, seen);
    const user = `${admitted.caller.realm.realm}/${seen.id}`;
    const ofKey = ofUser === null ? "" : ofUser.id;
    const owner = {
      app: appId,
      user,
      token: ofUser === null ? token : keyId,
      variant: `${ofKey} ${opened.event ?? ""}`,
    };
    // Others may have been opened while the owner was asked.
    requireRoom(streams, appId, user);
    const body = isHead(request) ? null : streams.open("usage", text, source, owner);
    // Compression and buffering proxies would delay a state.
    const headers = {
      ...headersOf(id, EVENT_STREAM),
      "cache-control": "no-store, no-transform",
      "x-accel-buffering": "no",
    };
    return metrics.ended(startedAt, "ok", new Response(body, { headers }));
  } catch (error) {
    return metrics.threw(startedAt, request, error);
  }
}

/** Refuses another stream of the process, of an app, or of a user where it is known. */
function requireRoom(streams: Streams, appId: string, user?: string): void {
  if (!streams.hasRoom) throw new Unavailable("Too many streams are open");
  if (!streams.hasRoomFor(appId)) throw new Unavailable("Too many streams of this app are open");
  if (user !== undefined && !streams.hasRoomForUser(user)) {
    throw new Unavailable("Too many streams of this user have just ended");
  }
}

async function shownOf(context: Context, admitted: Admitted<StreamWorld>): Promise<Shown> {
  try {
    const { members } = await readInput(context, streamUsage, admitted.caller);
    return checkInput(streamUsage, members) as Shown;
  } catch (error) {
    return await refuseInput(admitted, context.req.raw, error);
  }
}

/** What a stream is opened with. */
interface Opened {
  readonly appId: string;
  /** Not the caller itself, which belongs to one term; a stream outlives terms. */
  readonly keyId: string;
  readonly event: string | null;
  readonly requestId: string;
  /** Null without an end-user token. */
  readonly token: string | null;
  /** Whether a user sees its own usage, with a token or with a key of its own. */
  readonly isOwn: boolean;
  /** When the user's key expires; null for never and for any other key. */
  readonly keyEndsAt: Millis | null;
}

/** The refusal that the owner threw, where it is this process; another one answers it. */
function refusalIn(fault: unknown): Answer<never> {
  if (fault instanceof Refused) return failure(fault.refusal);
  throw fault;
}

/** Reads the states of a stream from the current owner of the user's cell. */
class UsageSource implements StreamSource {
  readonly #holder: StreamHolder;
  readonly #opened: Opened;
  #seen: Mark;
  /** The app's record at the time when the end of the token was read. */
  #record: unknown = null;
  #tokenEndsAt = 0;

  constructor(holder: StreamHolder, opened: Opened, seen: Mark) {
    this.#holder = holder;
    this.#opened = opened;
    this.#seen = seen;
  }

  /** A refused key ends the stream. Any other refusal is a fault that may pass. */
  async next(): Promise<StreamNext> {
    const world = this.#holder.requireServingOf(this.#opened);
    const caller = this.#callerIn(world);
    if (caller === null) return { kind: "end", reason: "key_revoked" };
    const { event, isOwn, requestId } = this.#opened;
    const { id, key, digest, passing } = this.#seen;
    const input = { id, key, digest, passing, event, withDuplicates: !isOwn };
    const answer = await askOwner(world, nextUsage, { caller }, input, requestId).catch(refusalIn);
    if (!answer.ok) {
      const { code } = answer.error;
      if (code === "invalid_key") return { kind: "end", reason: "key_revoked" };
      throw new Unavailable(`The owner answered ${code}`);
    }
    const next = answer.data;
    if (next.kind === "same") return { kind: "same" };
    if (next.kind !== "state") return { kind: "end", reason: next.kind };
    const { text, ...seen } = next.reading;
    this.#seen = seen;
    return { kind: "state", text };
  }

  endsNow(): StreamEnd | null {
    const serving = this.#holder.servingOf(this.#opened);
    if (serving === null) return null;
    const caller = this.#callerIn(serving);
    if (caller === null) return "key_revoked";
    const { token, keyEndsAt } = this.#opened;
    if (token === null && keyEndsAt === null) return null;
    const now = serving.clock.now();
    if (token === null) return keyEndsAt !== null && now >= keyEndsAt ? "key_revoked" : null;
    // A rotated identity secret shortens the life of the tokens that it signed.
    if (this.#record !== caller.app.record) {
      this.#record = caller.app.record;
      this.#tokenEndsAt = endOfToken(token, caller.app, now) ?? 0;
    }
    return now >= this.#tokenEndsAt ? "token_expired" : null;
  }

  #callerIn({ registry }: StreamWorld): Caller | null {
    return registry.callerById(this.#opened.keyId);
  }
}
