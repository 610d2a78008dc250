// The tools of agents. Each is a call of the API: name, description and schemas come from the call's definition, and a
// call of the tool makes that call, so both always answer the same.

import { invalidField } from "../../src/domain/values/refusal.ts";
import { answered, refused, type Result } from "../../src/domain/state/result.ts";
import type { KeyedDefinition } from "../contract/definition.ts";
import { getEvent, listEvents } from "../contract/events.ts";
import { listFeatures } from "../contract/features.ts";
import { explain } from "../contract/metering.ts";
import { listRefusals } from "../contract/refused_calls.ts";
import { getUsage } from "../contract/usage.ts";
import { type JsonSchema, jsonSchemaOf } from "../reference/json_schema.ts";
import type { ObjectSchema, Tool, ToolOutcome } from "./tool_server.ts";

/** The calls that agents may make, by the names of their tools. */
const TOOL_CALLS: Readonly<Record<string, KeyedDefinition>> = {
  list_events: listEvents,
  get_event: getEvent,
  usage: getUsage,
  features: listFeatures,
  refusals: listRefusals,
  explain,
};

/** Every tool. */
export const TOOLS: readonly Tool[] = Object.entries(TOOL_CALLS).map(([name, call]) => {
  const { input, answer, summary, description } = call;
  return {
    name,
    title: summary,
    description: description === undefined ? `${summary}.` : `${summary}. ${description}`,
    inputSchema: jsonSchemaOf(input) as ObjectSchema,
    outputSchema: jsonSchemaOf(answer) as ObjectSchema,
  };
});

/** Members of a request: of path and query as texts, of a body as values. */
export type ToolMembers = Readonly<Record<string, unknown>>;

/**
 * Calls a tool.
 *
 * @param make makes a call of the API with the caller's key
 */
export async function callTool(
  make: (call: KeyedDefinition, members: ToolMembers) => Promise<ToolOutcome>,
  name: string,
  input: Readonly<Record<string, unknown>>,
): Promise<ToolOutcome> {
  const call = TOOL_CALLS[name] as KeyedDefinition;
  const { inputSchema } = TOOLS.find((tool) => tool.name === name) as Tool;
  if (call.method === "POST") return await make(call, input);
  const members = membersOf(call, inputSchema.properties as Record<string, JsonSchema>, input);
  return members.ok ? await make(call, members.answer) : { ok: false, error: members.refusal };
}

/** Reads the members of a tool's input; refuses those that a path or a query could not have. */
function membersOf(
  { path }: KeyedDefinition,
  schemas: Readonly<Record<string, JsonSchema>>,
  input: Readonly<Record<string, unknown>>,
): Result<Readonly<Record<string, string>>> {
  const found: Record<string, string> = {};
  for (const [member, { type }] of Object.entries(schemas)) {
    const value = input[member] ?? undefined;
    const isOfPath = path.includes(`:${member}`);
    if (value === undefined && !isOfPath) continue;
    const fault = isOfPath && (value ?? "") === "" ? "is required" : faultOf(value, type === "integer");
    if (fault !== null) return refused(invalidField(member, fault));
    found[member] = String(value);
  }
  return answered(found);
}

function faultOf(value: unknown, isNumber: boolean): string | null {
  if (isNumber) return typeof value === "number" ? null : "must be an integer";
  if (typeof value !== "string") return "must be a string";
  return value.isWellFormed() ? null : "must not contain U+0000 or a lone surrogate";
}

/** The path of a call under `/api`, with its query unless its members are a body. */
export function pathOf({ path, method }: KeyedDefinition, members: ToolMembers): string {
  if (method === "POST") return path;
  const query = new URLSearchParams();
  let filled = path;
  for (const [member, value] of Object.entries(members as Readonly<Record<string, string>>)) {
    if (path.includes(`:${member}`)) filled = filled.replace(`:${member}`, () => encodeURIComponent(value));
    else query.set(member, value);
  }
  return `${filled}?${query}`;
}
