// The stream of a user's usage: the answer of `GET /v1/usage`, and again after every change.
//
// The process that took the request holds the stream, and asks the owner of the user's cell for each state. If the cell
// moves or the owner dies, the next question goes to the new owner. No question stays inside a cell, so a stream never
// delays a hand-over.

import type { Context } from "hono";
import type { Directory } from "../../actors/directory.ts";
import { MayNotAnswer, Stopping, Unavailable } from "../../actors/port.ts";
import type { Term } from "../../actors/term.ts";
import type { Mark, Next, Reading, Watches } from "../../actors/watches.ts";
import type { RefusalCode } from "../../src/domain/values/refusal.ts";
import type { StreamEnd, StreamNext, Streams, StreamSource } from "../../src/process/streams.ts";
import { hashOf } from "../../src/process/secrets/hash.ts";
import type { Caller } from "../../src/tenant/registry.ts";
import type { WrittenAnswer } from "../http/answer.ts";
import { endOfToken, type EndUser, requireSameUser } from "../http/auth.ts";
import type { Members } from "../http/body.ts";
import { admit, endpointsOn, type Source } from "../http/endpoint.ts";
import type { Endpoint } from "../http/endpoint_types.ts";
import { EVENT_STREAM, nextUsage, streamUsage } from "../contract/usage_stream.ts";
import { invalidMember, Refused } from "../http/errors.ts";
import { checkInput, readInput } from "../http/input.ts";
import { countCall } from "../http/rate_limit.ts";
import { headersOf, requestId } from "../http/respond.ts";
import { countAnywhere, type KeyedWorld, runNamed } from "../http/run_anywhere.ts";
import type { RouteWatch } from "../http/request_metrics.ts";
import { showUsage } from "./shown_records.ts";

interface StreamWorld extends KeyedWorld {
  readonly term:
    & KeyedWorld["term"]
    & Pick<Term, "isServing" | "doors">
    & {
      readonly directory: Pick<Directory, "runById" | "isSameUser">;
      readonly watches: Pick<Watches, "next">;
    };
}

/** The process that holds the streams. */
interface StreamHolder extends Source<StreamWorld> {
  readonly serving: StreamWorld | null;
  readonly streams: Streams;
}

const endpoint = endpointsOn<StreamWorld>();

/** Reads the first state at the owner. The process that holds the stream reads the others with `nextState`. */
export const usageStream = endpoint(streamUsage, async ({ world, caller, input, endUser }) => {
  const userId = input.userId ?? endUser?.userId;
  if (userId === undefined) throw invalidMember("userId", "is required");
  await requireSameUser(world.term.directory, caller.realm, endUser, userId);
  const reading = await read(world, caller, userId, input.event ?? null, endUser === null);
  return writeState({ kind: "state", reading });
});

/** Waits at the owner for a state other than the last one sent. */
const nextState = endpoint(nextUsage, async ({ world, caller, input }) => {
  const { id, event, withDuplicates } = input;
  const next = await world.term.watches.next({
    realm: caller.realm,
    id,
    variant: `${withDuplicates} ${event ?? ""}`,
    read: () => read(world, caller, id, event, withDuplicates),
  }, input);
  return writeState(next);
});

export const USAGE_STREAM: readonly Endpoint<StreamWorld>[] = [usageStream];

/** Calls that processes make to each other for streams. */
export const BETWEEN_MEMBERS: readonly Endpoint<StreamWorld>[] = [nextState];

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
    digest: hashOf(text),
    text,
    changesAt: answer.changesAt,
  };
}

/** Writes the answer of an owner: one line of JSON, then the text of a state. */
function writeState(next: Next): WrittenAnswer<string> {
  if (next.kind !== "state") return { code: "ok", status: 200, body: JSON.stringify([next.kind]) };
  const { id, key, digest, text } = next.reading;
  return { code: "ok", status: 200, body: `${JSON.stringify(["state", id, key, digest])}\n${text}` };
}

type StateAnswer =
  | { readonly kind: "state"; readonly mark: Mark; readonly text: string }
  | { readonly kind: Exclude<Next["kind"], "state"> };

function readState({ body }: WrittenAnswer): StateAnswer {
  const at = body.indexOf("\n");
  if (at < 0) return { kind: JSON.parse(body)[0] };
  const [, id, key, digest] = JSON.parse(body.slice(0, at));
  return { kind: "state", mark: { id, key, digest }, text: body.slice(at + 1) };
}

/** Answers a request with a stream, or refuses it like any other call. */
export async function handleStream(
  context: Context,
  holder: StreamHolder,
  watch: RouteWatch,
): Promise<Response> {
  const request = context.req.raw;
  const startedAt = watch.starts();
  try {
    const { world, caller, endUser } = admit(request, usageStream, holder);
    const isCounted = world.term.doors.isOpen(caller.app.cell);
    if (isCounted) countCall(world, caller);
    let members: Members;
    let input: unknown;
    try {
      ({ members } = await readInput(context, streamUsage));
      input = checkInput(streamUsage, members);
    } catch (error) {
      if (!isCounted) await countAnywhere(world, caller);
      throw error;
    }
    const id = requestId(request);
    const { streams } = holder;
    if (streams.isEnding) throw new Stopping("The service is stopping");
    if (!streams.hasRoom) throw new Unavailable("Too many streams are open");
    const call = {
      endpoint: usageStream,
      caller,
      endUser,
      members,
      input,
      url: "",
      idempotent: null,
      isCounted,
    };
    const answer = await runNamed(world, call, id);
    if (answer.code !== "ok") return watch.answered(startedAt, request, answer);
    const { event } = input as { event?: string };
    const body = request.method === "HEAD"
      ? null
      : streamOf(holder, { caller, endUser, event: event ?? null, request, id, answer });
    // Compression and buffering proxies would delay a state.
    const headers = {
      ...headersOf(id, EVENT_STREAM),
      "cache-control": "no-store, no-transform",
      "x-accel-buffering": "no",
    };
    return watch.ended(startedAt, "ok", new Response(body, { headers }));
  } catch (error) {
    return watch.threw(startedAt, request, error);
  }
}

interface Opened {
  readonly caller: Caller;
  readonly endUser: EndUser | null;
  readonly event: string | null;
  readonly request: Request;
  readonly id: string;
  readonly answer: WrittenAnswer;
}

function streamOf(holder: StreamHolder, opened: Opened): ReadableStream<Uint8Array> {
  const { caller, endUser, event, request, id, answer } = opened;
  const first = readState(answer);
  if (first.kind !== "state") throw new MayNotAnswer();
  const token = endUser === null ? null : request.headers.get("x-end-user-token");
  const source = new UsageSource(holder, caller, { event, token, requestId: id, seen: first.mark });
  return holder.streams.open("usage", first.text, source);
}

/** Reads the states of a stream from the current owner of the user's cell. */
class UsageSource implements StreamSource {
  readonly #holder: StreamHolder;
  readonly #keyId: string;
  readonly #event: string | null;
  readonly #requestId: string;
  /** Null with a secret key. */
  readonly #token: string | null;
  /** The app's record at the time when the end of the token was read. */
  #record: unknown = null;
  #tokenEndsAt = 0;
  #seen: Mark;

  constructor(
    holder: StreamHolder,
    { key }: Caller,
    { event, token, requestId, seen }: {
      readonly event: string | null;
      readonly token: string | null;
      readonly requestId: string;
      readonly seen: Mark;
    },
  ) {
    this.#holder = holder;
    this.#keyId = key.keyId;
    this.#event = event;
    this.#token = token;
    this.#requestId = requestId;
    this.#seen = seen;
  }

  /** A refused key ends the stream. Any other refusal is a fault that may pass. */
  async next(): Promise<StreamNext> {
    const world = this.#holder.requireServing();
    const caller = world.registry.callerById(this.#keyId);
    if (caller === null) return { kind: "end", reason: "key_revoked" };
    const members = {
      ...this.#seen,
      event: this.#event,
      withDuplicates: this.#token === null,
    };
    const call = {
      endpoint: nextState,
      caller,
      endUser: null,
      members,
      input: members,
      url: "",
      idempotent: null,
      isCounted: true,
    };
    const answer = await runNamed(world, call, this.#requestId);
    if (answer.code === "invalid_key") return { kind: "end", reason: "key_revoked" };
    if (answer.code !== "ok") {
      throw new Unavailable(`The owner answered ${answer.code satisfies RefusalCode}`);
    }
    const next = readState(answer);
    if (next.kind === "same") return { kind: "same" };
    if (next.kind !== "state") return { kind: "end", reason: next.kind };
    this.#seen = next.mark;
    return { kind: "state", text: next.text };
  }

  endsNow(): StreamEnd | null {
    const { serving } = this.#holder;
    if (serving === null) return null;
    const caller = serving.registry.callerById(this.#keyId);
    if (caller === null) return "key_revoked";
    if (this.#token === null) return null;
    const now = serving.clock.now();
    // A rotated identity secret shortens the life of the tokens that it signed.
    if (this.#record !== caller.app.record) {
      this.#record = caller.app.record;
      this.#tokenEndsAt = endOfToken(this.#token, caller.app, now) ?? 0;
    }
    return now >= this.#tokenEndsAt ? "token_expired" : null;
  }
}
