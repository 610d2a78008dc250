// Reads a request: its body up to its limits, and its query. The result is a plain object of JSON values that a schema can
// check. Who sends a body decides its limits, which hold before it is parsed: bytes, structure, rate and memory.

import type { Caller } from "../../src/tenant/registry.ts";
import { BODY_COUNTS } from "../../src/process/counts/sent_counts.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";
import { BODY_LIMITS } from "../../src/process/sent_limits.ts";
import type { CallDefinition } from "../contract/definition.ts";
import { ArrivingBody, inTime, KEYED_POT, KEYLESS_POT, type Pot } from "./arrival.ts";
import { invalidMember, Refused } from "./errors.ts";
import {
  decode,
  forbiddenText,
  type Members,
  membersOf,
  parse,
  refuseForbiddenText,
  refuseJson,
} from "./json_body.ts";
import { StructureCount } from "./structure_count.ts";

/** A request's members and their text. */
export interface RequestInput {
  readonly members: Members;
  readonly text: string;
}

/** The limits of a body. */
export interface BodyRules {
  readonly pot: Pot;
  /** The app of the key; null without a key. */
  readonly appId: string | null;
  readonly bytesMax: number;
  /** Brackets, braces and commas outside of strings; null for a body that is not JSON. */
  readonly structureMax: number | null;
  /** Refuses forbidden characters in the texts of members. */
  readonly checkTexts: (members: Members) => void;
  /** Keeps the memory of a large body until the call has its answer; null to give it back once the body is read. */
  readonly held?: HeldBody | null;
}

/** The memory of a large body that a call keeps. */
export interface HeldBody {
  give: () => void;
}

/**
 * Returns the limits of the body of a call.
 *
 * @param caller null without an API key
 */
export function rulesOf(
  { access, isBatch, elements, signedBody }: Pick<
    CallDefinition,
    "access" | "isBatch" | "elements" | "signedBody"
  >,
  caller: Caller | null,
  held: HeldBody | null = null,
): BodyRules {
  const bytesMax = caller?.key.class === "public"
    ? BODY_LIMITS.publicBytesMax
    : signedBody?.bytesMax ?? (isBatch === true ? REQUEST_LIMITS.batchBytesMax : REQUEST_LIMITS.bodyBytesMax);
  return {
    pot: access === "open" ? KEYLESS_POT : KEYED_POT,
    appId: caller?.app.record.appId ?? null,
    bytesMax,
    structureMax: BODY_LIMITS.structureMax,
    checkTexts: elements === undefined
      ? refuseForbiddenText
      : (members) => refuseForbiddenText({ ...members, [elements]: null }),
    held,
  };
}

/** Returns the limits of a form of the console. */
export function formRules(isSignedIn: boolean, bytesMax: number): BodyRules {
  const pot = isSignedIn ? KEYED_POT : KEYLESS_POT;
  return { pot, appId: null, bytesMax, structureMax: null, checkTexts: () => {} };
}

/** Reads and parses a JSON object body. A small body that has arrived is parsed by the runtime in one call. */
export function readMembers(request: Request, rules: BodyRules): Promise<Members> {
  return isSmall(request, rules)
    ? inTime(request.json().then((value) => allowedMembersOf(value, rules), refuseJson))
    : readBody(request, rules).then(({ members }) => members);
}

/** Reads and parses a JSON object body and keeps its text; the body of a DELETE may be empty. */
export async function readBody(request: Request, rules: BodyRules): Promise<RequestInput> {
  const text = await readText(request, rules);
  if (text === "" && request.method === "DELETE") return { members: {}, text };
  const members = membersOf(parse(text));
  // A forbidden character can reach a parsed value only through an escape.
  if (text.includes("\\u")) rules.checkTexts(members);
  return { members, text };
}

/** Reads a body as text. */
export async function readText(request: Request, rules: BodyRules): Promise<string> {
  if (isSmall(request, rules)) return decode(await inTime(request.bytes().catch(refuseBody)));
  const { bytes, give } = await readBytes(request, rules);
  if (rules.held && bytes.byteLength > BODY_LIMITS.readHereBytesMax) rules.held.give = give;
  else give();
  return decode(bytes);
}

/** A complete body, and the function that gives back the memory that it takes. */
export interface BodyBytes {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Its brackets, braces and commas outside of strings; 0 where they are not counted. */
  readonly structure: number;
  readonly give: () => void;
}

/** Reads a body piece by piece. Its memory stays taken until the caller gives it back. */
export async function readBytes(request: Request, rules: BodyRules): Promise<BodyBytes> {
  isSmall(request, rules);
  const stream = request.body as ReadableStream<Uint8Array> | null;
  if (stream === null) return { bytes: new Uint8Array(), structure: 0, give: () => {} };
  const reader = stream.getReader();
  const body = new ArrivingBody(rules.pot, rules.appId);
  const counted = rules.structureMax === null ? null : new StructureCount(rules.structureMax);
  body.onEnd(() => void reader.cancel().catch(() => {}));
  try {
    const bytes = await inTime(collect(reader, rules.bytesMax, body, counted), body);
    return { bytes, structure: counted?.count ?? 0, give: () => body.give() };
  } catch (error) {
    body.give();
    throw error;
  }
}

async function collect(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  bytesMax: number,
  body: ArrivingBody,
  counted: StructureCount | null,
): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  while (true) {
    const { done, value } = await reader.read().catch(refuseBody);
    if (done) {
      body.completes();
      return joined(chunks, body.bytes);
    }
    if (body.bytes + value.byteLength > bytesMax) refuseSize(bytesMax);
    body.arrives(value.byteLength);
    counted?.add(value);
    chunks.push(value);
  }
}

/** Returns pieces as one, in a buffer of its own, which may be moved to a thread. */
export function joined(pieces: readonly Uint8Array[], length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  let place = 0;
  for (const piece of pieces) {
    bytes.set(piece, place);
    place += piece.byteLength;
  }
  return bytes;
}

/** Whether a body takes no memory of a pot, by its declared length; refuses one that declares too long a length. */
function isSmall({ headers }: Request, { bytesMax, pot }: BodyRules): boolean {
  const declared = headers.get("content-length");
  if (declared === null) return false;
  const bytes = Number(declared);
  if (bytes > bytesMax) refuseSize(bytesMax);
  // Chunks are counted whatever length was declared beside them. So few bytes cannot have too much structure.
  return bytes <= pot.freeBytes() && headers.get("transfer-encoding") === null;
}

function allowedMembersOf(value: unknown, { checkTexts }: BodyRules): Members {
  const members = membersOf(value);
  checkTexts(members);
  return members;
}

/** Reads the query string; a repeated member counts by its first value. */
export function readQuery(request: Request): RequestInput {
  const start = request.url.indexOf("?");
  if (start < 0) return { members: {}, text: "" };
  const text = request.url.slice(start);
  if (text.includes("%")) refuseForeignPairs(text.slice(1));
  const members: Members = Object.create(null);
  for (const [name, value] of pairsOf(text)) members[name] ??= value;
  return { members, text };
}

/** The pairs of a query. Most have nothing to decode; splitting those here is quicker than calling the runtime. */
function pairsOf(query: string): Iterable<[string, string]> {
  if (!PLAIN_QUERY.test(query)) return new URLSearchParams(query);
  return query.slice(1).split("&").map((pair) => {
    const sign = pair.indexOf("=");
    return [pair.slice(0, sign), pair.slice(sign + 1)];
  });
}

/** Pairs of a name and a value without escapes. */
const PLAIN_QUERY = /^\?[\w.~:@/-]+=[\w.~:@/-]*(&[\w.~:@/-]+=[\w.~:@/-]*)*$/;

/** Refuses pairs of a query with invalid escapes, by their names. */
function refuseForeignPairs(query: string): void {
  for (const pair of query.split("&")) {
    const sign = pair.indexOf("=");
    const name = sign < 0 ? pair : pair.slice(0, sign);
    refuseForeignEscapes(name, "");
    refuseForeignEscapes(pair.slice(name.length), decodeURIComponent(name.replaceAll("+", " ")));
  }
}

/**
 * Refuses escapes in a part of an address that encode U+0000 or are not UTF-8, such as a lone surrogate.
 *
 * @param path the member in that part; "" for none
 */
export function refuseForeignEscapes(part: string, path: string): void {
  if (!part.includes("%")) return;
  let text: string;
  try {
    text = decodeURIComponent(part);
  } catch {
    throw invalidMember(path, "invalid percent-encoding");
  }
  if (text.includes("\0")) throw forbiddenText(path);
}

/** Members of a body with those of `options` beside them, and the members that the call does not have. */
interface Flat {
  readonly flat: Members;
  readonly unknown: ReadonlyMap<string, unknown>;
}

/**
 * Returns the members with those of a nested `options` object beside them. Refuses a member in both places. A member
 * that the body has and `options` does not is unknown there by the name `options.<name>`.
 *
 * @param isKnown whether the call has a member of this name
 * @param hasOptions whether the call takes `options`
 */
export function flattenOptions(
  members: Members,
  isKnown: (name: string) => boolean,
  hasOptions: boolean,
): Flat {
  const { options = null, ...flat } = members;
  const unknown = new Map(Object.entries(flat).filter(([name]) => !isKnown(name)));
  if (options === null) return { flat, unknown };
  if (!hasOptions) return { flat, unknown: unknown.set("options", options) };
  if (typeof options !== "object" || Array.isArray(options)) {
    throw invalidMember("options", "must be an object");
  }
  for (const [name, value] of Object.entries(options)) {
    if (value === null) continue;
    if (!isKnown(name)) {
      unknown.set(name, value);
      continue;
    }
    if (!OPTION_MEMBERS.has(name)) {
      unknown.set(`options.${name}`, value);
      continue;
    }
    if (flat[name] !== undefined && flat[name] !== null) {
      throw invalidMember(name, "is both in the body and in options");
    }
    flat[name] = value;
  }
  return { flat, unknown };
}

/** Members of a body that may also be in its `options`. */
export const OPTION_MEMBERS: ReadonlySet<string> = new Set([
  "prompt",
  "inputTokens",
  "inputCostCents",
  "maxOutputTokens",
  "fit",
  "count",
  "ttlSeconds",
  "runId",
  "extra",
  "actual",
  "costCents",
  "usage",
  "providerUsage",
  "response",
  "reason",
  "errorCode",
]);

function refuseBody(): never {
  throw invalidMember("", "The body could not be read");
}

function refuseSize(bytesMax: number): never {
  BODY_COUNTS.refused.large += 1;
  throw new Refused("payload_too_large", `The body is larger than ${bytesMax} bytes`);
}
