// What the gateway needs of a call's body: a few members, the most that the call may use, the prompt for the log, and the
// bytes for the server. Pure, so that large bodies are read in a thread of their own (body_thread.ts): the object that JSON
// becomes is never sent between threads, which would cost the answering thread more than parsing it.

import {
  ANSWER_LIMITS,
  type CallEstimate,
  estimateCall,
  estimateImages,
  estimateMessages,
} from "../../src/domain/pricing/model_call.ts";
import type { FieldFault } from "../../src/domain/values/refusal.ts";
import { GATEWAY_LIMITS } from "../../src/process/gateway_limits.ts";
import { decode, type Members, membersOf, parse, refuseForbiddenText } from "../http/json_body.ts";
import { membersOfForm, partsOf } from "./form_body.ts";
import {
  type Place,
  placesOf,
  refuseAmbiguous,
  refuseAmbiguousForm,
  serverToolFault,
  storedFault,
} from "./members.ts";
import type { AnswerShape } from "../../src/client/answer_shapes.ts";
import { looseOf } from "../../src/client/loose.ts";
import { joined } from "../http/body.ts";

/** A body that has been read. */
export interface CallBody {
  /** Some members by their names. An object or array is empty here: only that it was sent matters. */
  readonly call: Members;
  /** A fault names the member that is invalid. */
  readonly estimate: CallEstimate | FieldFault;
  /** A fault names what the app's settings forbid: stored objects, and tools of the server. */
  readonly forbidden: FieldFault | null;
  /** The prompt for the log; null where nothing is logged. */
  readonly prompt: string | null;
  /** The body that goes to the server. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Whether the event with the report is not passed on, since the caller did not ask for it. */
  readonly dropsReport: boolean;
  /** What fitting needs; null for a call that does not ask for it. */
  readonly fitting: Fitting | null;
}

/** What fitting a call needs of its body. */
export interface Fitting {
  /** The longest answer that the call allows, in tokens; null for a call that names no limit. */
  readonly limit: number | null;
  /** How many answers it asks for, each with this limit. */
  readonly answers: number;
  /** Where `CallBody.bytes` has the model and the limits. */
  readonly places: readonly Place[];
}

/** How a body is read. */
export interface CallReading {
  readonly shape: AnswerShape;
  readonly isLogged: boolean;
  /** The boundary of the parts of a form; null for JSON. */
  readonly boundary: string | null;
  /** Whether the app's settings allow what the server stores. */
  readonly storedObjects: boolean;
  /** Whether they allow tools that the server runs. */
  readonly serverTools: boolean;
  /** Whether the call asks to be fitted to what is left. */
  readonly fits: boolean;
}

/** The members that `CallBody.call` has. Anthropic's messages name no user. */
function membersRead(shape: AnswerShape): readonly string[] {
  return shape === "messages" ? ["model"] : ["model", "user", "background"];
}

/**
 * Reads the body of a call. The caller's bytes are passed on unchanged, except that a stream is asked for its usage, and a
 * response is not stored unless the app's settings allow it.
 *
 * @throws Refused for a body that two readers could read in two ways
 */
export function readCallBody(bytes: Uint8Array<ArrayBuffer>, reading: CallReading): CallBody {
  const { shape, isLogged, storedObjects, serverTools } = reading;
  const members = readMembers(bytes, reading);
  const stored = storedObjects ? null : storedFault(members, shape);
  const body = bodyFor(reading, bytes, members);
  return {
    call: Object.fromEntries(membersRead(shape).map((name) => [name, plainOf(members[name])])),
    estimate: estimateOf(members, shape),
    forbidden: stored ?? (serverTools || shape !== "messages" ? null : serverToolFault(members)),
    prompt: isLogged ? promptOf(members, shape) : null,
    fitting: reading.fits ? fittingOf(members, shape, body.bytes) : null,
    ...body,
  };
}

/** The members that limit an answer. */
function limitsOf(shape: AnswerShape): readonly string[] {
  if (shape === "messages") return ["max_tokens"];
  return shape === "chat" || shape === "responses" ? ANSWER_LIMITS : [];
}

function fittingOf(members: Members, shape: AnswerShape, bytes: Uint8Array): Fitting {
  // What is invalid is a fault of the estimate.
  const named = limitsOf(shape).filter((name) => (members[name] ?? null) !== null);
  if (named.length === 0) return { limit: null, answers: 1, places: [] };
  const limit = Math.max(...named.map((name) => members[name] as number));
  const answers = shape === "messages" ? 1 : (members.n ?? 1) as number;
  return { limit, answers, places: placesOf(bytes, ["model", ...named]) };
}

/** Returns the body with another model and without a limit above `limit`. All other bytes stay. */
export function fittedBytes(
  bytes: Uint8Array<ArrayBuffer>,
  places: readonly Place[],
  { model, limit }: { readonly model: string; readonly limit: number },
): Uint8Array<ArrayBuffer> {
  return withValues(
    bytes,
    places,
    (name, sent) => name === "model" ? model : Math.min(sent as number, limit),
  );
}

/** Returns a body with other values at some places, which are in the order of the body. All other bytes stay. */
function withValues(
  bytes: Uint8Array<ArrayBuffer>,
  places: readonly Place[],
  valueOf: (name: string, sent: unknown) => unknown,
): Uint8Array<ArrayBuffer> {
  const pieces: Uint8Array[] = [];
  let at = 0;
  let length = 0;
  const add = (piece: Uint8Array) => {
    pieces.push(piece);
    length += piece.byteLength;
  };
  for (const { name, from, to } of places) {
    const sent = JSON.parse(decode(bytes.subarray(from, to)));
    const value = valueOf(name, sent);
    if (value === sent) continue;
    add(bytes.subarray(at, from));
    add(encoder.encode(JSON.stringify(value)));
    at = to;
  }
  if (at === 0) return bytes;
  add(bytes.subarray(at));
  return joined(pieces, length);
}

function readMembers(bytes: Uint8Array<ArrayBuffer>, { shape, boundary }: CallReading): Members {
  if (boundary !== null) {
    const parts = partsOf(bytes, boundary);
    const members = membersOfForm(parts);
    refuseAmbiguousForm(parts, members, shape);
    return members;
  }
  const text = decode(bytes);
  const members = membersOf(parse(text));
  // A forbidden character can reach a parsed value only through an escape.
  if (text.includes("\\u")) refuseForbiddenText(members);
  refuseAmbiguous(bytes, members, shape);
  return members;
}

function estimateOf(members: Members, shape: AnswerShape): CallEstimate | FieldFault {
  if (shape === "messages") return estimateMessages(members);
  if (shape !== "images") return estimateCall(members, shape !== "none");
  if (members.stream === true) {
    return { path: "stream", message: "must not be true: images come in one answer" };
  }
  return estimateImages(members);
}

function plainOf(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  return Array.isArray(value) ? [] : {};
}

/** Returns the prompt, for the log, which cuts it. */
function promptOf({ messages, input, prompt }: Members, shape: AnswerShape): string | null {
  const asked = (shape === "images" ? prompt : messages ?? input) ?? null;
  if (asked === null) return null;
  const text = typeof asked === "string" ? asked : JSON.stringify(asked);
  return text.slice(0, GATEWAY_LIMITS.loggedChars).toWellFormed();
}

const BRACE = "{".charCodeAt(0);
const encoder = new TextEncoder();

/**
 * Returns the body for the server: a stream of a chat is asked to report its usage, and a response is not stored unless the
 * app's settings allow it. A new member is put before all others, so that the caller's bytes stay.
 */
function bodyFor(
  { shape, storedObjects }: CallReading,
  bytes: Uint8Array<ArrayBuffer>,
  members: Members,
): Pick<CallBody, "bytes" | "dropsReport"> {
  const more: Record<string, unknown> = {};
  const { stream, stream_options: options } = members;
  // Responses are stored unless the call says otherwise.
  if (shape === "responses" && !storedObjects && members.store !== false) more.store = false;
  const dropsReport = shape === "chat" && stream === true && looseOf(options).include_usage !== true;
  if (dropsReport) more.stream_options = { ...looseOf(options), include_usage: true };
  const names = Object.keys(more);
  if (names.length === 0) return { bytes, dropsReport };
  if (names.some((name) => Object.hasOwn(members, name))) {
    return { bytes: withValues(bytes, placesOf(bytes, names), (name) => more[name]), dropsReport };
  }
  const place = bytes.indexOf(BRACE) + 1;
  const asking = encoder.encode(`${JSON.stringify(more).slice(1, -1)},`);
  const longer = new Uint8Array(bytes.byteLength + asking.byteLength);
  longer.set(bytes.subarray(0, place));
  longer.set(asking, place);
  longer.set(bytes.subarray(place), place + asking.byteLength);
  return { bytes: longer, dropsReport };
}
