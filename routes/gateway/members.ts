// Which members a call may have. The gateway holds and charges by the members that it reads, and the server works by the
// bytes that it gets. Other servers read JSON in other ways: some take the first of two members with one name, some match
// names without regard to case, some take 1 for true. So a call that two readers could read in two ways is refused.

import type { FieldFault } from "../../src/domain/values/refusal.ts";
import type { Members } from "../http/json_body.ts";
import { invalidMember } from "../http/errors.ts";
import type { AnswerShape } from "../../src/client/answer_shapes.ts";
import { isFilled, listOf, looseOf } from "../../src/client/loose.ts";
import type { FormPart } from "./form_body.ts";

/** The members that one dialect reads. */
interface Rules {
  /** Members that decide what a call costs, who pays, and what it can see, by their folded names. */
  readonly read: ReadonlyMap<string, string>;
  readonly booleans: readonly string[];
  /** Members that name an object which an earlier call stored. */
  readonly stored: readonly string[];
  /** Members that are data of the caller or of the model, and name nothing at the server. */
  readonly opaque: ReadonlySet<string>;
}

function foldedNames(names: readonly string[]): ReadonlyMap<string, string> {
  return new Map(names.map((name) => [fold(name), name]));
}

const OPENAI: Rules = {
  read: foldedNames([
    ...["model", "user", "stream", "stream_options", "n"],
    ...["max_tokens", "max_completion_tokens", "max_output_tokens"],
    ...["messages", "input", "instructions", "tools", "functions", "response_format", "text"],
    ...["reasoning", "reasoning_effort"],
    ...["store", "background", "previous_response_id", "conversation", "prompt"],
  ]),
  booleans: ["stream", "store", "background"],
  stored: ["previous_response_id", "conversation"],
  opaque: new Set(["parameters", "schema", "metadata"]),
};

const ANTHROPIC: Rules = {
  read: foldedNames([
    ...["model", "stream", "max_tokens", "messages", "system", "tools", "thinking", "cache_control"],
    ...["container", "thread", "mcp_servers", "fallbacks", "service_tier", "speed"],
  ]),
  booleans: ["stream"],
  stored: ["container", "thread"],
  opaque: new Set(["input_schema", "input", "metadata"]),
};

function rulesOf(shape: AnswerShape): Rules {
  return shape === "messages" ? ANTHROPIC : OPENAI;
}

/** The longest name that a fault shows. */
const SHOWN_CHARS = 100;

/** Refuses a call that another reader of JSON could read in another way. */
export function refuseAmbiguous(bytes: Uint8Array, members: Members, shape: AnswerShape): void {
  const rules = rulesOf(shape);
  const fault = nameFault(bytes, bytes.indexOf(BRACE), rules) ?? typeFault(members, rules);
  if (fault !== null) throw invalidMember(fault.path, fault.message);
}

/** Refuses the same in a form. There, other names may be repeated, such as the name of several files. */
export function refuseAmbiguousForm(parts: readonly FormPart[], members: Members, shape: AnswerShape): void {
  const rules = rulesOf(shape);
  const seen = new Set<string>();
  for (const { name, text } of parts) {
    // Some readers take "n[]" for a list that is named "n".
    const folded = fold(name.replace(/\[.*$/, ""));
    const read = rules.read.get(folded);
    if (read === undefined) continue;
    const path = name.slice(0, SHOWN_CHARS);
    if (read !== name) throw invalidMember(path, `must be written ${read}`);
    if (seen.has(folded)) throw invalidMember(path, "is in the body twice");
    if (text === null) throw invalidMember(path, "must be a text");
    seen.add(folded);
  }
  const fault = typeFault(members, rules);
  if (fault !== null) throw invalidMember(fault.path, fault.message);
}

function nameFault(bytes: Uint8Array, begin: number, { read: known }: Rules): FieldFault | null {
  const seen = new Set<string>();
  for (const { name, valueAt } of membersIn(bytes, begin)) {
    const path = name.length <= SHOWN_CHARS ? name : "";
    const folded = fold(name);
    if (seen.has(folded)) return { path, message: "is in the body twice" };
    seen.add(folded);
    const read = known.get(folded);
    if (read !== undefined && read !== name) return { path, message: `must be written ${read}` };
    if (name !== "stream_options" || bytes[valueAt] !== BRACE) continue;
    const options = new Set<string>();
    for (const option of membersIn(bytes, valueAt)) {
      const foldedOption = fold(option.name);
      if (options.has(foldedOption)) return { path, message: "has a member twice" };
      options.add(foldedOption);
      if (foldedOption !== INCLUDE_USAGE || option.name === INCLUDE_USAGE) continue;
      return { path, message: `must write ${INCLUDE_USAGE} so` };
    }
  }
  return null;
}

const INCLUDE_USAGE = "include_usage";

function typeFault(members: Members, { booleans, read }: Rules): FieldFault | null {
  for (const name of booleans) {
    const value = members[name] ?? false;
    if (typeof value !== "boolean") return { path: name, message: "must be a boolean" };
  }
  const options = read.has("stream_options") ? members.stream_options ?? {} : {};
  if (typeof options === "object" && !Array.isArray(options)) return null;
  return { path: "stream_options", message: "must be an object" };
}

/** Folds a name as readers do that match without regard to case, those that fold all of Unicode among them. */
function fold(name: string): string {
  return name.toUpperCase().toLowerCase();
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const BRACKET = 0x5b;
const BRACKET_END = 0x5d;
const BRACE = 0x7b;
const BRACE_END = 0x7d;
const SPACE = 0x20;
/** What follows a number: a comma, the end of the object, or white space. */
const ENDS: ReadonlySet<number> = new Set([COMMA, BRACE_END, SPACE, 0x09, 0x0a, 0x0d]);

const decoder = new TextDecoder();

/** Lists the members of an object in well-formed JSON, repeated ones too, each with the index of its value. */
function* membersIn(
  bytes: Uint8Array,
  begin: number,
): Iterable<{ readonly name: string; readonly valueAt: number }> {
  let depth = 0;
  let isName = true;
  for (let at = begin; at >= 0 && at < bytes.byteLength; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      const end = endOfText(bytes, at);
      if (depth === 1 && isName) {
        const name = JSON.parse(decoder.decode(bytes.subarray(at, end + 1)));
        let valueAt = bytes.indexOf(COLON, end) + 1;
        while ((bytes[valueAt] as number) <= SPACE) valueAt += 1;
        yield { name, valueAt };
        isName = false;
      }
      at = end;
    } else if (byte === BRACE || byte === BRACKET) depth += 1;
    else if (byte === BRACE_END || byte === BRACKET_END) {
      depth -= 1;
      if (depth === 0) return;
    } else if (byte === COMMA && depth === 1) isName = true;
  }
}

/** Where a body has the value of a member. */
export interface Place {
  readonly name: string;
  readonly from: number;
  readonly to: number;
}

/** Finds the values of some members, in the order of the body. */
export function placesOf(bytes: Uint8Array, names: readonly string[]): Place[] {
  const places: Place[] = [];
  for (const { name, valueAt: from } of membersIn(bytes, bytes.indexOf(BRACE))) {
    if (!names.includes(name)) continue;
    places.push({ name, from, to: endOfValue(bytes, from) });
  }
  return places;
}

/** Returns the index after the end of a value. */
function endOfValue(bytes: Uint8Array, begin: number): number {
  let depth = 0;
  for (let at = begin; at < bytes.byteLength; at++) {
    const byte = bytes[at] as number;
    if (byte === QUOTE) at = endOfText(bytes, at);
    else if (byte === BRACE || byte === BRACKET) depth += 1;
    else if (depth === 0 && ENDS.has(byte)) return at;
    else if (byte === BRACE_END || byte === BRACKET_END) depth -= 1;
  }
  return bytes.byteLength;
}

/** Returns the index of the quote that ends a text. */
function endOfText(bytes: Uint8Array, begin: number): number {
  let end = bytes.indexOf(QUOTE, begin + 1);
  while (end >= 0) {
    let first = end;
    while (bytes[first - 1] === BACKSLASH) first -= 1;
    if ((end - first) % 2 === 0) return end;
    end = bytes.indexOf(QUOTE, end + 1);
  }
  return bytes.byteLength;
}

/** Members that name a stored object at any depth, by the type of such a value; a schema has an object there. */
const STORED_WITHIN: Readonly<Record<string, (value: unknown) => boolean>> = {
  file_id: isText,
  file_ids: Array.isArray,
  vector_store_ids: Array.isArray,
  container: isText,
};
/** Finds what a call stores at the server, or names there; null for nothing. */
export function storedFault(members: Members, shape: AnswerShape): FieldFault | null {
  const { stored, opaque } = rulesOf(shape);
  const message = "is not allowed: every app shares the model server's account " +
    "(gateway.allowStoredObjects of the catalog)";
  if (members.store === true) return { path: "store", message };
  for (const name of shape === "responses" ? [...stored, "prompt"] : stored) {
    if (members[name] !== undefined && members[name] !== null) return { path: name, message };
  }
  const next: object[] = [members];
  for (let value = next.pop(); value !== undefined; value = next.pop()) {
    const { type, id } = looseOf(value);
    if (type === "item_reference" && isText(id)) return { path: "input", message };
    for (const [name, member] of Object.entries(value)) {
      if (opaque.has(name)) continue;
      if (Object.hasOwn(STORED_WITHIN, name) && STORED_WITHIN[name]?.(member)) return { path: name, message };
      if (typeof member === "object" && member !== null) next.push(member);
    }
  }
  return null;
}

/** Tools that the caller runs, by their types; a tool without a type is the caller's own. */
const OWN_TOOLS = /^(?:custom|(?:bash|text_editor|computer|computer_toolset|browser_toolset|memory)_[0-9]+)$/;

/**
 * Finds a tool that Anthropic runs, or another model that may answer; null for none. A type of tools that is unknown here may
 * be one.
 */
export function serverToolFault({ tools, mcp_servers: servers, fallbacks }: Members): FieldFault | null {
  const message = "asks for work of the model server that the model's price row does not cover " +
    "(gateway.allowServerTools of the catalog)";
  if (listOf(servers).length > 0) return { path: "mcp_servers", message };
  if (isFilled(fallbacks)) return { path: "fallbacks", message };
  const isOwn = (tool: unknown) => {
    const { type = "custom" } = looseOf(tool);
    return type === null || typeof type === "string" && OWN_TOOLS.test(type);
  };
  return listOf(tools).every(isOwn) ? null : { path: "tools", message };
}

function isText(value: unknown): boolean {
  return typeof value === "string";
}
