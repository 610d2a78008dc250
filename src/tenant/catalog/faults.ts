// What a schema finds wrong in a document, as faults in plain words. A path names the place, so a message needs no
// subject: "plans[0].rank" "must be a number".

import type { z } from "zod";
import { likelyName } from "../../process/nearest.ts";
import { pathText, valueAt } from "./loose.ts";
import { catalogSchema, envelopeMembers } from "./schema.ts";

/** A fault of a document: where it is and what is wrong. */
export interface CatalogFault {
  readonly path: string;
  readonly message: string;
}

/** The faults of one issue of the schema: one for each unknown member, else one. */
export function faultsOf(issue: z.core.$ZodIssue, document: unknown): CatalogFault[] {
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((name) => ({
      path: pathText([...issue.path, name]),
      message: unknownMember(name),
    }));
  }
  const isMissing = valueAt(document, issue.path) === undefined;
  return [{ path: pathText(issue.path), message: isMissing ? "is required" : messageOf(issue) }];
}

function unknownMember(name: string): string {
  if (memberNames().has(name)) {
    return "is not a known member here; it belongs to another object of the catalog";
  }
  const near = likelyName(name, memberNames());
  return near === null ? "is not a known member" : `is not a known member; did you mean "${near}"?`;
}

const TYPE_WORDS: Readonly<Record<string, string>> = {
  array: "an array",
  boolean: "a boolean",
  int: "an integer",
  number: "a number",
  object: "an object",
  record: "an object",
  string: "a string",
};

function messageOf(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return `must be ${TYPE_WORDS[issue.expected] ?? issue.expected}`;
    case "invalid_value":
      return oneOf(issue.values);
    case "invalid_union":
      return "options" in issue ? oneOf(issue.options as unknown[]) : issue.message;
    case "too_small":
      return bound(issue.origin, issue.minimum, issue.inclusive === false ? "greater than" : "at least");
    case "too_big":
      return bound(issue.origin, issue.maximum, issue.inclusive === false ? "less than" : "at most");
    default:
      return issue.message;
  }
}

function oneOf(values: readonly unknown[]): string {
  const texts = values.map((value) => JSON.stringify(value));
  return texts.length === 1 ? `must be ${texts[0]}` : `must be one of ${texts.join(", ")}`;
}

function bound(origin: string, limit: number | bigint, words: string): string {
  const counted: Readonly<Record<string, string>> = { array: "element", string: "character" };
  const what = counted[origin];
  if (what === undefined) return `must be ${words} ${limit}`;
  return `must have ${words} ${limit} ${what}${limit === 1 ? "" : "s"}`;
}

let names: ReadonlySet<string> | null = null;

/** The members of every object of the format. */
function memberNames(): ReadonlySet<string> {
  names ??= new Set([...Object.keys(envelopeMembers), ...namesIn(catalogSchema)]);
  return names;
}

/** The names in a schema, through lists, alternatives and what may be left out. */
function* namesIn(schema: z.core.$ZodType): Iterable<string> {
  const def = schema._zod.def as {
    readonly shape?: Readonly<Record<string, z.core.$ZodType>>;
    readonly element?: z.core.$ZodType;
    readonly innerType?: z.core.$ZodType;
    readonly options?: readonly z.core.$ZodType[];
  };
  for (const [name, member] of Object.entries(def.shape ?? {})) {
    yield name;
    yield* namesIn(member);
  }
  for (const inner of [def.element, def.innerType, ...def.options ?? []]) {
    if (inner !== undefined) yield* namesIn(inner);
  }
}
