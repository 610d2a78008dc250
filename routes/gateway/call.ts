// A call of the gateway: admission, a hold of the most that it may use, the request to the model server, its answer passed
// on, and the settlement with the actual usage.

import type { Context } from "hono";
import { Unavailable } from "../../actors/port.ts";
import { allowsModel, type Catalog } from "../../src/domain/catalog/catalog.ts";
import type { ModelServer } from "../../src/process/features.ts";
import { GATEWAY_LIMITS } from "../../src/process/limits.ts";
import { type Admission, admit, refuseInput } from "../http/admission.ts";
import { askOwner, countAtOwner } from "../http/ask_owner.ts";
import type { Source } from "../http/auth.ts";
import { Refused, refusedWith } from "../http/errors.ts";
import { requestId } from "../http/respond.ts";
import type { RouteMetrics } from "../http/request_metrics.ts";
import { QuotaRefused, refuseCall } from "./errors.ts";
import { EventReader } from "./event_reader.ts";
import { type HoldSource, reserveHold } from "./holds.ts";
import { bodyOf, MeteredBody, type PieceReader, readerOf } from "./metered_body.ts";
import { type CallKind, type ReadCall, readCall } from "./model_call.ts";
import { askServer, passedOn, refusesKey, serverFailed } from "./model_server.ts";
import type { OpenCall, OpenCalls, Progress } from "./open_calls.ts";
import { looseOf, parsed, reportIn, showsWork, textOfAnswer } from "../../src/client/openai_shapes.ts";
import { bytesOf, reportInTail, tailOf } from "./texts.ts";

/** What the gateway works on. */
export type GatewayWorld = ReturnType<HoldSource["world"]> & {
  readonly features: { readonly modelServer: ModelServer | null };
};

/** Where the gateway's calls run. */
export interface Gateway {
  readonly source: Source<GatewayWorld>;
  readonly calls: OpenCalls;
}

/** The header that names the hold of a call. */
const HOLD_HEADER = "x-holdfast-reservation";

/** Who may call: secret keys, and a user's key for its own user. */
const GATEWAY_CALL: Admission = { access: "secret", takesUserKey: true };

/** Answers a metered call. */
export async function answerCall(
  { req }: Context,
  kind: CallKind,
  gateway: Gateway,
  metrics: RouteMetrics,
): Promise<Response> {
  const request = req.raw;
  const startedAt = metrics.starts();
  try {
    const begun = await begin(request, kind, gateway);
    const answer = await forward(request, begun, gateway);
    return metrics.ended(startedAt, answer.ok ? "ok" : "generation_failed", answer);
  } catch (error) {
    if (error instanceof QuotaRefused) gateway.calls.counts.outcomes.refused += 1;
    return refuseCall(metrics, startedAt, request, error);
  }
}

/** Answers the list of models, which is not metered. */
export async function answerModels(
  { req }: Context,
  { source }: Gateway,
  metrics: RouteMetrics,
): Promise<Response> {
  const request = req.raw;
  const startedAt = metrics.starts();
  try {
    const { world, caller, isCounted } = await admit(request, source, GATEWAY_CALL);
    if (!isCounted) await countAtOwner(world, caller, request);
    const { modelServer } = world.features;
    if (modelServer === null) throw switchedOff();
    const answer = await askServer(modelServer, "/models", request, null, request.signal)
      .catch(() => Promise.reject(serverFailed("The model server did not answer")));
    if (refusesKey(answer)) throw keyRefused(answer);
    const body = answer.ok ? await allowedModels(answer, caller.realm.catalog) : answer.body;
    const response = passedOn(answer, body, requestId(request));
    return metrics.ended(startedAt, answer.ok ? "ok" : "generation_failed", response);
  } catch (error) {
    return refuseCall(metrics, startedAt, request, error);
  }
}

/**
 * Returns the list of models without those that the app may not call or has no price for: the account is shared, and its
 * list has the names of other apps' models.
 */
async function allowedModels(answer: Response, catalog: Catalog): Promise<string> {
  const text = await textUpTo(answer, GATEWAY_LIMITS.modelsBytesMax);
  const list = looseOf(parsed(text ?? ""));
  if (!Array.isArray(list.data)) throw serverFailed("The model server answered no list of models");
  const data = list.data.filter((model) => {
    const { id } = looseOf(model);
    return typeof id === "string" && catalog.models.get(id) !== undefined && allowsModel(catalog, id);
  });
  return JSON.stringify({ ...list, data });
}

/** Returns the text of an answer; null for one that is longer, or was cut off. */
async function textUpTo({ body }: Response, bytesMax: number): Promise<string | null> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const piece of body ?? []) {
      length += piece.byteLength;
      if (length > bytesMax) return null;
      pieces.push(piece);
    }
  } catch {
    return null;
  }
  return new TextDecoder().decode(joined(pieces, length));
}

/** A call that has its hold. */
interface Begun {
  readonly startedAt: number;
  readonly read: ReadCall;
  readonly call: OpenCall;
  readonly modelServer: ModelServer;
}

/** Takes the hold of a call, before the server is asked. */
async function begin(request: Request, kind: CallKind, { source, calls }: Gateway): Promise<Begun> {
  const startedAt = performance.now();
  const admitted = await admit(request, source, GATEWAY_CALL);
  const { world, caller } = admitted;
  const { modelServer } = world.features;
  if (modelServer === null) return await refuseInput(admitted, request, switchedOff());
  const { mode, catalog } = caller.realm;
  if (mode === "test" && !catalog.gateway.testMode) {
    throw new Refused(
      "forbidden",
      "Test keys may not call models: settings.gateway.testMode of the catalog is false",
    );
  }
  const read = await readCall(request, kind, admitted).catch((fault) =>
    refuseInput(admitted, request, fault)
  );
  try {
    if (!calls.hasRoom) throw new Unavailable("Too many calls of the model server are under way");
    const reserved = await askOwner(world, reserveHold, admitted, read.hold, request);
    if (!reserved.ok) throw refusedWith(reserved.error);
    const { hold, reasons, limit, account } = reserved.data;
    if (hold === null) throw new QuotaRefused(reasons[0] ?? "limit_reached", limit, account);
    const { app, realm } = caller;
    const held = { appId: app.record.appId, mode: realm.mode, reservationId: hold.reservationId };
    const { estimate, hasReasoningPrice } = read;
    const { readOnMs = GATEWAY_LIMITS.readOnMs } = modelServer;
    const call = calls.open(world, held, hold.ttlMs, { estimate, hasReasoningPrice, readOnMs });
    return { startedAt, read, call, modelServer };
  } catch (error) {
    read.give();
    throw error;
  }
}

/** Sends a call to the server, and makes the response from its answer. */
async function forward(request: Request, begun: Begun, { calls }: Gateway): Promise<Response> {
  const { startedAt, read, call, modelServer } = begun;
  const { kind } = read;
  const leave = () => call.leave();
  request.signal.addEventListener("abort", leave);
  if (request.signal.aborted) leave();
  let answer: Response;
  try {
    const bytes = read.bytes as Uint8Array<ArrayBuffer>;
    answer = await askServer(modelServer, kind.path, request, bytes, call.signal);
  } catch {
    await call.fail("The model server did not answer");
    throw serverFailed("The model server did not answer");
  } finally {
    read.give();
  }
  const headers = { [HOLD_HEADER]: call.reservationId };
  const id = requestId(request);
  if (!answer.ok) {
    await call.fail(`The model server answered ${answer.status}`);
    if (refusesKey(answer)) throw keyRefused(answer);
    return passedOn(answer, answer.body, id, headers);
  }
  const onFirst = () => calls.counts.firstByteSeconds.observe((performance.now() - startedAt) / 1000);
  if (isEventStream(answer)) {
    call.isStream = true;
    const events = new EventReader(kind.shape, read.dropsReport, read.isLogged);
    call.progress = events;
    return passedOn(
      answer,
      bodyOf(new MeteredBody(call, readerOf(answer, call.signal), events, onFirst)),
      id,
      headers,
    );
  }
  const body = await wholeAnswer(answer, read, call, onFirst);
  return passedOn(answer, body, id, headers);
}

function isEventStream({ headers }: Response): boolean {
  return headers.get("content-type")?.startsWith("text/event-stream") ?? false;
}

/** Returns the body of an answer without a stream. The call is settled first, or, for a long answer, before its last piece. */
async function wholeAnswer(
  answer: Response,
  { kind: { shape }, isLogged }: ReadCall,
  call: OpenCall,
  onFirst: () => void,
): Promise<Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>> {
  const reader = readerOf(answer, call.signal);
  const pieces: Uint8Array[] = [];
  let length = 0;
  while (length <= GATEWAY_LIMITS.answerBytesMax) {
    const { done, value } = await reader.read().catch(() => LOST);
    if (call.signal.aborted || done === null) {
      await call.fail("The model server ended the connection within its answer");
      throw serverFailed("The model server ended the connection within its answer");
    }
    call.receives(value?.byteLength ?? 0);
    if (done) {
      const bytes = joined(pieces, length);
      call.progress = progressOf(bytes, shape, isLogged);
      await call.finish();
      onFirst();
      return bytes;
    }
    pieces.push(value);
    length += value.byteLength;
  }
  const tail = new TailReader(joined(pieces, length), shape !== "none");
  call.progress = tail;
  return bodyOf(new MeteredBody(call, reader, tail, onFirst));
}

/** The result of a read when the connection is lost. */
const LOST = { done: null, value: undefined };

function joined(pieces: readonly Uint8Array[], length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  let place = 0;
  for (const piece of pieces) {
    bytes.set(piece, place);
    place += piece.byteLength;
  }
  return bytes;
}

function progressOf(bytes: Uint8Array, shape: CallKind["shape"], isLogged: boolean): Progress {
  const value = parsed(new TextDecoder().decode(bytes));
  const text = textOfAnswer(shape, value);
  return {
    report: reportIn(shape, value),
    hasWork: showsWork(shape, value),
    textBytes: bytesOf(text),
    text: isLogged ? text.slice(0, GATEWAY_LIMITS.loggedChars) : "",
  };
}

/** Passes a long answer on piece by piece. Its report is in its last bytes, and its text goes into no log. */
class TailReader implements PieceReader, Progress {
  readonly hasEnded = false;
  readonly text = "";
  readonly hasWork = true;
  textBytes = 0;
  report: unknown = undefined;
  readonly #isText: boolean;
  #begin: Uint8Array | null;
  #tail: Uint8Array;

  /**
   * @param begin the bytes that have arrived already
   * @param isText whether its bytes are text; an embedding has none
   */
  constructor(begin: Uint8Array, isText: boolean) {
    this.#isText = isText;
    this.#begin = begin;
    this.#tail = tailOf(begin, new Uint8Array(), GATEWAY_LIMITS.tailBytes);
    this.#count(begin);
  }

  take(piece: Uint8Array): readonly Uint8Array[] {
    this.#tail = tailOf(this.#tail, piece, GATEWAY_LIMITS.tailBytes);
    this.#count(piece);
    return [this.#taken(), piece];
  }

  rest(): Uint8Array {
    this.report = reportInTail(this.#tail);
    return this.#taken();
  }

  #count({ byteLength }: Uint8Array): void {
    if (this.#isText) this.textBytes += byteLength;
  }

  #taken(): Uint8Array {
    const begin = this.#begin ?? new Uint8Array();
    this.#begin = null;
    return begin;
  }
}

function keyRefused({ status, body }: Response): Refused {
  void body?.cancel().catch(() => {});
  return serverFailed(`The model server refused this service's key with ${status}`);
}

function switchedOff(): Refused {
  return new Refused(
    "not_implemented",
    "The gateway is off: set OPENAI_API_KEY to the key of a model server",
  );
}
