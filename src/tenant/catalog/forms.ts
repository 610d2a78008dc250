// Forms of values that no schema of its own expresses: each is a question about one value of a catalog.

import { REQUEST_LIMITS } from "../../process/limits.ts";

/** Levels of an output schema; no model server takes as many. */
export const SCHEMA_DEPTH_MAX = 100;

/** Whether a text is short enough for an id, name or label, and has no control characters. */
export function isLabel(text: string): boolean {
  return /^[^\p{Cc}]+$/u.test(text) && [...text].length <= REQUEST_LIMITS.idLengthMax;
}

/** Whether each number is larger than the one before. */
export function isAscending(numbers: readonly number[]): boolean {
  return numbers.every((number, place) => place === 0 || number > (numbers[place - 1] as number));
}

/** Scheme, host and port in the form in which browsers send them: it is compared as text. */
export function isOrigin(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, origin } = new URL(text);
  if (protocol === "http:" || protocol === "https:") return origin === text;
  // Of apps in a shell of their own, such as capacitor://localhost.
  return /^[a-z][a-z0-9+.-]*:\/\/[a-z0-9._-]+$/.test(text);
}

/** A record schema drops this member, which would make a rule match more than it says. */
export function hasNoPrototype(value: unknown): boolean {
  return typeof value !== "object" || value === null || !Object.hasOwn(value, "__proto__");
}

/** Looks level by level, without recursion. */
export function isShallow(root: unknown): boolean {
  let level = [root];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > SCHEMA_DEPTH_MAX) return false;
    level = level.flatMap((value) => typeof value === "object" && value !== null ? Object.values(value) : []);
  }
  return true;
}

/** Whether a text can be the key of a feature. */
export function isFeatureKey(text: string): boolean {
  return isLabel(text) && !/[*\uFFFD]/.test(text);
}

/** An event name, or a prefix with one final star. */
export function isPattern(text: string): boolean {
  return isLabel(text) && !text.slice(0, -1).includes("*");
}
