// The input of an endpoint: members of path, query and body as one object, checked by the endpoint's schema. The
// refusal of invalid input names each invalid member.

import type { Context } from "hono";
import type { z } from "zod";
import type { Caller } from "../../src/tenant/registry.ts";
import {
  flattenOptions,
  type HeldBody,
  readBody,
  readQuery,
  readText,
  refuseForeignEscapes,
  type RequestInput,
  rulesOf,
} from "./body.ts";
import type { Members } from "./json_body.ts";
import { invalidMember, Refused } from "./errors.ts";
import type { CallDefinition } from "../contract/definition.ts";
import { checkUnknown } from "./unknown_members.ts";

const FAULTS_SHOWN_MAX = 20;

/**
 * Reads the members of a request, and the text that the hash of an idempotent call is made from.
 *
 * @param caller null without an API key
 */
export async function readInput(
  context: Context,
  definition: CallDefinition,
  caller: Caller | null,
  held: HeldBody | null = null,
): Promise<RequestInput> {
  const request = context.req.raw;
  const { method, path, wholeBody, inQuery, hasNoBody } = definition;
  if (method === "GET" && !path.includes(":")) return readQuery(request);
  const query = method === "GET" || method === "DELETE" || inQuery !== undefined ? readQuery(request) : NONE;
  const body = method === "GET" || hasNoBody === true
    ? NONE
    : await bodyOf(request, definition, caller, held);
  if (method === "DELETE") refuseTwice(query.members, body.members);
  const asked = inQuery === undefined
    ? query.members
    : Object.fromEntries(inQuery.map((name) => [name, query.members[name]]));
  const sent = wholeBody === undefined ? body.members : { [wholeBody.member]: body.members };
  const text = method === "DELETE"
    ? `${query.text}\n${body.text}`
    : method === "GET"
    ? query.text
    : body.text;
  if (!path.includes(":")) return { members: { ...asked, ...sent }, text };
  refuseForeignPath(request.url, path);
  const named = context.req.param();
  // The same body at another path is another call.
  return { members: { ...asked, ...sent, ...named }, text: `${JSON.stringify(named)}\n${text}` };
}

async function bodyOf(
  request: Request,
  definition: CallDefinition,
  caller: Caller | null,
  held: HeldBody | null,
): Promise<RequestInput> {
  const { signedBody } = definition;
  const rules = rulesOf(definition, caller, held);
  if (signedBody === undefined) return await readBody(request, rules);
  const text = await readText(request, rules);
  const signature = request.headers.get(signedBody.header) ?? "";
  return { members: { [signedBody.text]: text, [signedBody.signature]: signature }, text };
}

const NONE: RequestInput = { members: {}, text: "" };

function refuseTwice(query: Members, body: Members): void {
  for (const name of Object.keys(query)) {
    if (Object.hasOwn(body, name)) throw invalidMember(name, "is both in the body and in the query");
  }
}

/** Refuses a path with an invalid escape, by the member's name. */
function refuseForeignPath(url: string, path: string): void {
  if (!url.includes("%")) return;
  const names = `/api${path}`.split("/");
  const { pathname } = new URL(url);
  for (const [index, part] of pathname.split("/").entries()) {
    const name = names[index] ?? "";
    refuseForeignEscapes(part, name.startsWith(":") ? name.slice(1) : "");
  }
}

/** Returns the input of an endpoint; refuses members that do not match its schema. */
export function checkInput(
  { input, plain, slips, repeats, hasOptions, wholeBody }: CallDefinition,
  members: Members,
): unknown {
  const read = plain?.(members) ?? null;
  if (read !== null) return read;
  if (slips === undefined) return checkMembers(input as z.ZodType, members, wholeBody?.member);
  const schema = input as z.ZodObject;
  const isKnown = (name: string) => Object.hasOwn(schema.shape, name) || repeats?.includes(name) === true;
  const { flat, unknown } = flattenOptions(members, isKnown, hasOptions === true);
  return checkUnknown(slips, unknown, () => checkMembers(schema, flat));
}

/** Returns members as their schema reads them; refuses members that do not match it. */
export function checkMembers<Schema extends z.ZodType>(
  schema: Schema,
  members: Members,
  wholeBody?: string,
): z.output<Schema> {
  const parsed = schema.safeParse(members);
  if (!parsed.success) throw misfitOf(schema, members, wholeBody);
  return parsed.data;
}

/**
 * Returns the refusal of invalid members: the first fault is the message, all of them are details. The schema runs a second
 * time for it, with plain messages, so that valid calls don't pay for them.
 */
function misfitOf(schema: z.ZodType, members: Members, wholeBody: string | undefined): Refused {
  const issues = schema.safeParse(members, { error: messageOf }).error?.issues ?? [];
  const details = issues.filter(isOwnBound).flatMap(eachUnknown).slice(0, FAULTS_SHOWN_MAX)
    .map(({ path, message }) => ({
      path: (path[0] === wholeBody ? path.slice(1) : path).join("."),
      message,
    }));
  const [first = { path: "", message: "The request is invalid" }] = details;
  const refused = invalidMember(first.path, first.message);
  return new Refused("invalid_request", refused.message, details);
}

/** Whether no narrower bound follows: before the bound of its schema, an integer has that of the integers that are exact. */
function isOwnBound(
  { code, path }: z.core.$ZodIssue,
  place: number,
  issues: readonly z.core.$ZodIssue[],
): boolean {
  const next = issues[place + 1];
  const isBound = code === "too_big" || code === "too_small";
  return !isBound || next?.code !== code || next.path.join() !== path.join();
}

/** Returns a fault about several unknown members as one fault for each, at its own path. */
function eachUnknown(issue: z.core.$ZodIssue): readonly Pick<z.core.$ZodIssue, "path" | "message">[] {
  if (issue.code !== "unrecognized_keys") return [issue];
  return issue.keys.map((key) => ({ path: [...issue.path, key], message: issue.message }));
}

/** Returns the message of a fault, where the schema has none of its own. */
function messageOf(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.input === undefined) return "is required";
  switch (issue.code) {
    case "invalid_type":
      return `must be ${TYPES[issue.expected] ?? `of type ${issue.expected}`}`;
    case "invalid_value":
      return `must be one of ${issue.values.map((value) => JSON.stringify(value)).join(", ")}`;
    case "too_big":
      return boundOf(issue.inclusive === false ? "below" : "at most", issue.maximum, issue.origin);
    case "too_small":
      return boundOf(issue.inclusive === false ? "above" : "at least", issue.minimum, issue.origin);
    default:
      return undefined;
  }
}

const TYPES: Readonly<Record<string, string>> = {
  string: "a string",
  number: "a number",
  int: "an integer",
  boolean: "a boolean",
  object: "an object",
  record: "an object",
  array: "an array",
};

function boundOf(which: string, bound: number | bigint, origin: string): string {
  if (origin === "array") {
    return `must have ${which} ${bound} ${Number(bound) === 1 ? "element" : "elements"}`;
  }
  return `must be ${which} ${bound}${origin === "string" ? " characters long" : ""}`;
}
