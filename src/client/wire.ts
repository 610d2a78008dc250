// Makes addresses and bodies from the input of a call. It refuses values that would silently be sent as others: a number
// that JSON does not have, a lone surrogate, an id that is not possible in a path.

import { invalidInput } from "./errors.ts";

/** The address of a path under `/api/v1` with its query, without members that are undefined or null. */
export function addressOf(baseUrl: string, path: string, query: object = {}): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null) continue;
    params.append(name, wellFormed(name, value instanceof Date ? timeOf(value) : String(value)));
  }
  const text = params.toString();
  return `${baseUrl}/api/v1${path}${text === "" ? "" : `?${text}`}`;
}

/** Encodes an id as a part of a path. */
export function pathMember(name: string, id: string): string {
  // Every URL parser drops these parts of a path, even when they are percent-encoded.
  if (id === "" || id === "." || id === "..") {
    throw invalidInput(`${name}: "${id}" is not possible in an address`);
  }
  return encodeURIComponent(wellFormed(name, id));
}

/** The JSON text of a body. */
export function bodyOf(members: object): string {
  try {
    return isPlain(members) ? JSON.stringify(members) : JSON.stringify(members, refuseSilentNull);
  } catch (cause) {
    throw invalidInput(
      cause instanceof Error ? cause.message : "The input cannot be serialized as JSON",
      cause,
    );
  }
}

/** Whether nothing in a body could become null: then its text is made in half the time. */
function isPlain(members: object): boolean {
  for (const value of Object.values(members)) {
    if (typeof value === "number" ? !Number.isFinite(value) : typeof value === "object") return false;
  }
  return true;
}

/** JSON has no NaN, no infinity and no invalid date. They would become null, which means a missing member. */
function refuseSilentNull(this: Readonly<Record<string, unknown>>, name: string, value: unknown): unknown {
  if (typeof value === "number" && !Number.isFinite(value)) throw new TypeError(`${name}: must be finite`);
  const written = this[name];
  if (written instanceof Date) return timeOf(written);
  return value;
}

/** In an address a lone surrogate turns into another character, and so into another id. */
function wellFormed(name: string, text: string): string {
  if (/\p{Surrogate}/u.test(text)) throw invalidInput(`${name}: must not contain a lone surrogate`);
  return text;
}

function timeOf(date: Date): string {
  if (Number.isNaN(date.getTime())) throw invalidInput("A date is invalid");
  return date.toISOString();
}
