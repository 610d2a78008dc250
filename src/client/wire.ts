// From a call's input to what is sent: addresses and bodies. What could not arrive as it was meant (a number that JSON
// lacks, half of a character, an id that an address cannot carry) is refused here, since it would be sent as something
// else in silence.

import { invalidInput } from "./errors.ts";

/** The address of a path under `/api/v1` with its query; members that are undefined or null are left out. */
export function addressOf(baseUrl: string, path: string, query: object = {}): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null) continue;
    params.append(name, wellFormed(name, value instanceof Date ? timeOf(value) : String(value)));
  }
  const text = params.toString();
  return `${baseUrl}/api/v1${path}${text === "" ? "" : `?${text}`}`;
}

/** An id as a member of a path. */
export function pathMember(name: string, id: string): string {
  // A URL loses these members on its way, however they are written.
  if (id === "" || id === "." || id === "..") {
    throw invalidInput(`${name}: "${id}" cannot stand in an address`);
  }
  return encodeURIComponent(wellFormed(name, id));
}

/** The text of a body. */
export function bodyOf(members: object): string {
  try {
    return JSON.stringify(members, refuseSilentNull);
  } catch (cause) {
    throw invalidInput(cause instanceof Error ? cause.message : "The input cannot be written as JSON", cause);
  }
}

/** JSON has no NaN, no infinity and no invalid date: they would become null, which stands for a member left out. */
function refuseSilentNull(this: Readonly<Record<string, unknown>>, name: string, value: unknown): unknown {
  if (typeof value === "number" && !Number.isFinite(value)) throw new TypeError(`${name}: must be finite`);
  const written = this[name];
  if (written instanceof Date) return timeOf(written);
  return value;
}

/** In an address a lone surrogate would become another character, so another id. */
function wellFormed(name: string, text: string): string {
  if (/\p{Surrogate}/u.test(text)) throw invalidInput(`${name}: must not contain a lone surrogate`);
  return text;
}

function timeOf(date: Date): string {
  if (Number.isNaN(date.getTime())) throw invalidInput("A date is invalid");
  return date.toISOString();
}
