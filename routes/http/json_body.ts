// Makes a JSON object of the bytes of a body, and checks the text rules that hold for every member.
//
// Bytes that are not UTF-8 are read as U+FFFD, as everywhere on the web. No id or name may contain that character
// (contract/fields.ts), so that two different ids can't become one.

import { invalidMember, type Refused } from "./errors.ts";

/** A JSON object as a caller sent it. */
export type Members = Record<string, unknown>;

const UTF_8 = new TextDecoder("utf-8", { ignoreBOM: true });

/** Up to this length a loop over plain ASCII is quicker than a call out of JavaScript. */
const SHORT_BYTES = 512;

/** Returns bytes as text. */
export function decode(bytes: Uint8Array): string {
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

/** Parses a text. */
export function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    refuseJson(error);
  }
}

/** Refuses a body that could not be parsed or read. */
export function refuseJson(error: unknown): never {
  if (error instanceof SyntaxError) throw invalidMember("", `The body is not JSON${placeOf(error)}`);
  throw invalidMember("", "The body could not be read");
}

/** Where a text stops being JSON, as far as the runtime says it: the rest of its message repeats the body, so it is left out. */
function placeOf({ message }: SyntaxError): string {
  const [, place] = /\((line \d+ column \d+)\)$/.exec(message) ?? [];
  if (place !== undefined) return `: see ${place}`;
  const [, token] = /^Unexpected token '([ -~])'/.exec(message) ?? [];
  if (token !== undefined) return `: unexpected ${token}`;
  return message.startsWith("Unexpected end") ? ": it is empty or incomplete" : "";
}

/** Returns a value that must be an object. @param what its name in the message */
export function membersOf(value: unknown, what = "body"): Members {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Members;
  throw invalidMember("", `The ${what} is not a JSON object`);
}

/** Returns an element of a list, which must be an object without forbidden characters. @param what its name in the message */
export function elementOf(value: unknown, what: string): Members {
  const members = membersOf(value, what);
  refuseForbiddenText(members);
  return members;
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

/** Returns the refusal of a forbidden character. */
export function forbiddenText(path: string): Refused {
  return invalidMember(path, "must not contain U+0000 or a lone surrogate");
}
