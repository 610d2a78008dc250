// A call of the gateway: admission, a hold of the most that it may use, the request to the model server, its answer passed
// on, and the settlement with the actual usage.

import { reportIn, showsWork, textOfAnswer } from "../../src/client/answer_shapes.ts";
import { listOf, looseOf, parsed } from "../../src/client/loose.ts";
import type { Catalog } from "../../src/domain/catalog/catalog.ts";
import type { ModelServer } from "../../src/process/features.ts";
import { GATEWAY_LIMITS } from "../../src/process/gateway_limits.ts";
import { admit, type Admitted, refuseInput } from "../http/admission.ts";
import { askOwner } from "../http/ask_owner.ts";
import type { Source } from "../http/auth.ts";
import { Refused, refusedWith } from "../http/errors.ts";
import type { RouteMetrics } from "../http/request_metrics.ts";
import { requestId } from "../http/respond.ts";
import {
  type CallKind,
  type Dialect,
  type GatewayFeatures,
  isOff,
  serverFor,
  switchedOff,
} from "./dialects.ts";
import { QuotaRefused, recordServerError, refuseCall } from "./errors.ts";
import { EventReader } from "./event_reader.ts";
import { type HoldSource, reserveHold } from "./holds.ts";
import { bodyOf, CUT_OFF, MeteredBody, readerOf } from "./metered_body.ts";
import { fittedTo, type ReadCall, readCall, refuseModel } from "./model_call.ts";
import { askServer, keyRefused, passedOn, refusesKey, serverFailed, wholeInTime } from "./model_server.ts";
import type { OpenCall, OpenCalls, Progress } from "./open_calls.ts";
import { TailReader } from "./tail_reader.ts";
import { bytesOf } from "./texts.ts";
import { joined } from "../http/body.ts";

/** What the gateway works on. */
export type GatewayWorld = ReturnType<HoldSource["world"]> & { readonly features: GatewayFeatures };

/** Where the gateway's calls run. */
export interface Gateway {
  readonly dialect: Dialect;
  readonly source: Source<GatewayWorld>;
  readonly calls: OpenCalls;
}

/** The header that names the hold of a call. */
const HOLD_HEADER = "x-holdfast-reservation";

/** Admits a request: secret keys, and a user's key for its own user. */
export async function admitCall(
  request: Request,
  { dialect: { keyHeader }, source }: Gateway,
): Promise<Admitted<GatewayWorld>> {
  return await admit(request, source, { access: "secret", takesUserKey: true, keyHeader });
}

/** Refuses a call that may ask no model, before its body is read. */
export async function refuseUnread(
  admitted: Admitted<GatewayWorld>,
  request: Request,
  dialect: Dialect,
): Promise<void> {
  const { world, caller: { realm: { mode, catalog } } } = admitted;
  if (isOff(dialect, world.features)) await refuseInput(admitted, request, switchedOff(dialect));
  if (mode === "live" || catalog.gateway.allowTestMode) return;
  const message = "Test keys may not call models: gateway.allowTestMode of the catalog is not true";
  throw new Refused("forbidden", message);
}

/** Answers a metered call. */
export async function answerCall(
  request: Request,
  kind: CallKind,
  gateway: Gateway,
  metrics: RouteMetrics,
): Promise<Response> {
  const startedAt = metrics.starts();
  try {
    const begun = await begin(request, kind, gateway);
    const answer = await forward(request, begun, gateway);
    if (!answer.ok) recordServerError(gateway.dialect, metrics, request, answer);
    return metrics.ended(startedAt, answer.ok ? "ok" : "generation_failed", answer);
  } catch (error) {
    if (error instanceof QuotaRefused) gateway.calls.counts.outcomes.refused += 1;
    return refuseCall(gateway.dialect, metrics, startedAt, request, error);
  }
}

/** A call that has its hold. */
interface Begun {
  readonly startedAt: number;
  readonly read: ReadCall;
  readonly call: OpenCall;
  readonly modelServer: ModelServer;
  /** The headers of its answer: the hold, and what the call was fitted to. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Takes the hold of a call, before the server is asked. */
async function begin(request: Request, kind: CallKind, gateway: Gateway): Promise<Begun> {
  const startedAt = performance.now();
  const { dialect, calls } = gateway;
  const admitted = await admitCall(request, gateway);
  const { world, caller } = admitted;
  await refuseUnread(admitted, request, dialect);
  const asked = await readCall(request, kind, admitted).catch((fault) =>
    refuseInput(admitted, request, fault)
  );
  let givePlace = () => {};
  try {
    const { catalog } = caller.realm;
    const { appId } = caller.app.record;
    const [own, others] = serversFor(dialect, world.features, catalog, asked);
    givePlace = calls.takePlace(appId);
    const fit = asked.hold.fit === null ? null : { ...asked.hold.fit, models: [...others.keys()] };
    const reserved = await askOwner(world, reserveHold, admitted, { ...asked.hold, fit }, request);
    if (!reserved.ok) throw refusedWith(reserved.error);
    const { hold, fitted } = reserved.data;
    if (hold === null) throw new QuotaRefused(reserved.data);
    const held = { appId, mode: caller.realm.mode, reservationId: hold.reservationId };
    const [read, headers] = fitted === undefined ? [asked, {}] : fittedTo(asked, fitted, catalog);
    const modelServer = others.get(read.model) ?? own;
    const { estimate, hasReasoningPrice, holdsTokens } = read;
    const { readOnMs = GATEWAY_LIMITS.readOnMs } = modelServer;
    const traits = { estimate, hasReasoningPrice, holdsTokens, readOnMs };
    const call = calls.open(world, held, hold.ttlMs, traits, givePlace);
    return { startedAt, read, call, modelServer, headers: { [HOLD_HEADER]: call.reservationId, ...headers } };
  } catch (error) {
    givePlace();
    asked.give();
    throw error;
  }
}

/**
 * Returns the server of a call, and those of the other models that it may be fitted to. A model that no call of its own could
 * ask is passed over.
 */
function serversFor(
  dialect: Dialect,
  features: GatewayFeatures,
  catalog: Catalog,
  { model, hold: { fit } }: ReadCall,
): readonly [own: ModelServer, others: ReadonlyMap<string, ModelServer>] {
  const others = new Map<string, ModelServer>();
  for (const other of fit?.models ?? []) {
    try {
      refuseModel(other, catalog);
      others.set(other, serverFor(dialect, features, catalog, other));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
    }
  }
  return [serverFor(dialect, features, catalog, model), others];
}

/** Sends a call to the server, and makes the response from its answer. */
async function forward(request: Request, begun: Begun, { dialect, calls }: Gateway): Promise<Response> {
  const { startedAt, read, call, modelServer, headers } = begun;
  const { kind } = read;
  const leave = () => call.leave();
  request.signal.addEventListener("abort", leave);
  if (request.signal.aborted) leave();
  let answer: Response;
  try {
    const asked = { path: kind.path, body: read.bytes, type: read.type };
    answer = await askServer(dialect, modelServer, asked, request, call.signal);
  } catch (error) {
    await call.fail((error as Refused).message);
    throw error;
  } finally {
    read.give();
  }
  const id = requestId(request);
  if (!answer.ok) {
    await call.fail(`The model server answered ${answer.status}`);
    if (refusesKey(answer)) throw keyRefused(answer);
    const whole = await wholeInTime(call.signal, () => answer);
    return passedOn(dialect, whole, whole.body, id, headers);
  }
  const onFirst = () => calls.counts.firstByteSeconds.observe((performance.now() - startedAt) / 1000);
  if (isEventStream(answer)) {
    call.isStream = true;
    const events = new EventReader(kind.shape, read.dropsReport, read.isLogged);
    call.progress = events;
    return passedOn(
      dialect,
      answer,
      bodyOf(new MeteredBody(call, readerOf(answer, call.signal), events, onFirst)),
      id,
      headers,
    );
  }
  const body = await wholeAnswer(answer, read, call, onFirst);
  return passedOn(dialect, answer, body, id, headers);
}

function isEventStream({ headers }: Response): boolean {
  return /^text\/event-stream\b/i.test(headers.get("content-type") ?? "");
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
      await call.fail(CUT_OFF);
      throw serverFailed(CUT_OFF);
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
  const tail = new TailReader(joined(pieces, length), shape);
  call.progress = tail;
  return bodyOf(new MeteredBody(call, reader, tail, onFirst));
}

/** The result of a read when the connection is lost. */
const LOST = { done: null, value: undefined };

/** Reads a whole answer: one that is no JSON may be a stream that its server sent as another type. */
function progressOf(bytes: Uint8Array, shape: CallKind["shape"], isLogged: boolean): Progress {
  const value = parsed(new TextDecoder().decode(bytes));
  if (value === undefined) {
    const events = new EventReader(shape, false, isLogged);
    events.take(bytes);
    events.rest();
    return events;
  }
  const text = textOfAnswer(shape, value);
  return {
    report: reportIn(shape, value),
    images: listOf(looseOf(value).data).length,
    hasWork: showsWork(shape, value),
    textBytes: bytesOf(text),
    text: isLogged ? text.slice(0, GATEWAY_LIMITS.loggedChars) : "",
  };
}
