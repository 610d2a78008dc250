// Reads a request: its body up to the limit, its query, and the text rules that hold for every member. The result is a
// plain object of JSON values that a schema can check.
//
// Bytes that are not UTF-8 are read as U+FFFD, as everywhere on the web. No id or name may contain that character
// (contract/fields.ts), so that two different ids can't become one.

import { Buffer } from "node:buffer";
import { giveBytes, inTime, takeBytes } from "./arrival.ts";
import type { CallDefinition } from "../contract/definition.ts";
import { invalidMember, Refused } from "./errors.ts";
import { BODY_LIMITS, REQUEST_LIMITS } from "../../src/process/limits.ts";

/** A JSON object as a caller sent it. */
export type Members = Record<string, unknown>;

/** A request's members and their text. */
export interface RequestInput {
  readonly members: Members;
  readonly text: string;
}

/** The part of a definition that decides how a body is read. */
type BodyKind = Pick<CallDefinition, "isBatch">;

function bytesMaxOf({ isBatch }: BodyKind): number {
  return isBatch === true ? REQUEST_LIMITS.batchBytesMax : REQUEST_LIMITS.bodyBytesMax;
}

/** Reads and parses a JSON object body. A small body that has arrived is parsed by the runtime in one call. */
export function readMembers(request: Request, kind: BodyKind = {}): Promise<Members> {
  return isSmall(request, bytesMaxOf(kind))
    ? inTime(request.json().then((value) => allowedMembersOf(value, kind), refuseJson))
    : readBody(request, kind).then(({ members }) => members);
}

/** Reads and parses a JSON object body and keeps its text; the body of a DELETE may be empty. */
export async function readBody(request: Request, kind: BodyKind = {}): Promise<RequestInput> {
  const text = await readText(request, bytesMaxOf(kind));
  if (text === "" && request.method === "DELETE") return { members: {}, text };
  const members = membersOf(parse(text));
  // A forbidden character can reach a parsed value only through an escape.
  if (kind.isBatch !== true && text.includes("\\u")) refuseForbiddenText(members);
  return { members, text };
}

/** Reads a body as text. */
export async function readText(request: Request, bytesMax = bytesMaxOf({})): Promise<string> {
  return isSmall(request, bytesMax)
    ? decode(await inTime(request.bytes().catch(refuseBody)))
    : await readChunks(request.body, bytesMax);
}

/** Whether a body declares a short length; refuses a body that declares too long a length. */
function isSmall({ headers }: Request, bytesMax: number): boolean {
  const declared = headers.get("content-length");
  if (declared === null) return false;
  const bytes = Number(declared);
  if (bytes > bytesMax) refuseSize(bytesMax);
  // Chunks are counted whatever length was declared beside them.
  return bytes <= BODY_LIMITS.smallBytesMax && headers.get("transfer-encoding") === null;
}

function allowedMembersOf(value: unknown, { isBatch }: BodyKind): Members {
  const members = membersOf(value);
  if (isBatch !== true) refuseForbiddenText(members);
  return members;
}

function membersOf(value: unknown): Members {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Members;
  throw invalidMember("", "The body is not a JSON object");
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
  "count",
  "ttlSeconds",
  "extra",
  "actual",
  "costCents",
  "usage",
  "providerUsage",
  "response",
  "reason",
  "errorCode",
]);

const UTF_8 = new TextDecoder("utf-8", { ignoreBOM: true });

/** Up to this length a loop over plain ASCII is quicker than a call out of JavaScript. */
const SHORT_BYTES = 512;

function decode(bytes: Uint8Array): string {
  if (bytes.length <= SHORT_BYTES && isAscii(bytes)) {
    return String.fromCharCode.apply(null, bytes as unknown as number[]);
  }
  return UTF_8.decode(bytes);
}

function isAscii(bytes: Uint8Array): boolean {
  for (let index = 0; index < bytes.length; index++) {
    if ((bytes[index] as number) > 0x7f) return false;
  }
  return true;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    refuseJson(error);
  }
}

function refuseBody(): never {
  throw invalidMember("", "The body could not be read");
}

function refuseJson(error: unknown): never {
  if (error instanceof SyntaxError) throw invalidMember("", "The body is not JSON");
  refuseBody();
}

/** Reads a large body, or a body of unknown length, piece by piece up to the limit. */
async function readChunks(body: ReadableStream<Uint8Array> | null, bytesMax: number): Promise<string> {
  if (body === null) return "";
  const { bytes, give } = await collectInTime(body, bytesMax);
  give();
  return decode(bytes);
}

/** A complete body, and the function that gives back the memory that it takes. */
interface Collected {
  readonly bytes: Uint8Array;
  readonly give: () => void;
}

/** A JSON object body as bytes and as members. */
export interface LargeBody extends Collected {
  readonly members: Members;
}

/** Reads a JSON object body that may be larger than others, and keeps its bytes. */
export async function readLarge(request: Request, bytesMax: number): Promise<LargeBody> {
  isSmall(request, bytesMax);
  if (request.body === null) refuseJson(new SyntaxError());
  const { bytes, give } = await collectInTime(request.body as ReadableStream<Uint8Array>, bytesMax);
  try {
    const text = decode(bytes);
    const members = membersOf(parse(text));
    if (text.includes("\\u")) refuseForbiddenText(members);
    return { bytes, members, give };
  } catch (error) {
    give();
    throw error;
  }
}

async function collectInTime(body: ReadableStream<Uint8Array>, bytesMax: number): Promise<Collected> {
  const reader = body.getReader();
  const collected = collect(reader, bytesMax);
  try {
    return await inTime(collected, () => void reader.cancel().catch(() => {}));
  } catch (error) {
    collected.then(({ give }) => give(), () => {});
    throw error;
  }
}

async function collect(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  bytesMax: number,
): Promise<Collected> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  let taken = 0;
  try {
    while (true) {
      const { done, value } = await reader.read().catch(refuseBody);
      if (done) {
        const all = taken;
        taken = 0;
        return { bytes: Buffer.concat(chunks), give: () => giveBytes(all) };
      }
      bytes += value.byteLength;
      if (bytes > bytesMax) refuseSize(bytesMax);
      if (bytes > BODY_LIMITS.smallBytesMax) {
        takeBytes(bytes - taken);
        taken = bytes;
      }
      chunks.push(value);
    }
  } finally {
    giveBytes(taken);
  }
}

/** Refuses U+0000 and lone surrogates in any text and name at any depth, without recursion. */
export function refuseForbiddenText(root: Members): void {
  let next: object[] | null = null;
  for (let value: object | undefined = root; value !== undefined; value = next?.pop()) {
    for (const name in value) {
      const member = (value as Members)[name];
      if (isForbidden(name) || typeof member === "string" && isForbidden(member)) {
        throw forbiddenText(pathOfForbidden(root));
      }
      if (typeof member === "object" && member !== null) (next ??= []).push(member);
    }
  }
}

function isForbidden(text: string): boolean {
  return text.includes("\0") || !text.isWellFormed();
}

/** The path of the first forbidden text; a forbidden name has the path of its object. */
function pathOfForbidden(root: Members): string {
  const next: { readonly value: object; readonly path: string }[] = [{ value: root, path: "" }];
  for (const { value, path } of next) {
    for (const [name, member] of Object.entries(value)) {
      if (isForbidden(name)) return path;
      const place = path === "" ? name : `${path}.${name}`;
      if (typeof member === "string" && isForbidden(member)) return place;
      if (typeof member === "object" && member !== null) next.push({ value: member, path: place });
    }
  }
  return "";
}

function forbiddenText(path: string): Refused {
  return invalidMember(path, "must not contain U+0000 or a lone surrogate");
}

function refuseSize(bytesMax: number): never {
  throw new Refused("payload_too_large", `The body is larger than ${bytesMax} bytes`);
}
