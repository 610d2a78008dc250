// JSON values as texts that are equal exactly where the values are: the order of an object's members and white space do not
// count.

import { hashOf } from "../../src/process/secrets/hash.ts";
import { invalidMember } from "./errors.ts";

/** No call takes deeper values. */
const DEPTH_MAX = 1000;

/**
 * What the hash of an idempotent call ends with where the call may also come in a batch: a dot and a hash of its path and
 * of its body as a value.
 */
export function valueHash(path: string, body: unknown): string {
  return `.${hashOf(`POST ${path}\n${canonicalText(body, 0)}`)}`;
}

/** The text of a JSON value, with the members of objects in the order of their names. */
function canonicalText(value: unknown, depth: number): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (depth > DEPTH_MAX) throw invalidMember("", "The body is nested too deeply");
  if (Array.isArray(value)) return `[${value.map((each) => canonicalText(each, depth + 1)).join(",")}]`;
  let text = "";
  for (const name of Object.keys(value).sort()) {
    const member = canonicalText((value as Record<string, unknown>)[name], depth + 1);
    text += `${text === "" ? "" : ","}${JSON.stringify(name)}:${member}`;
  }
  return `{${text}}`;
}
