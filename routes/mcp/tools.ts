// The tools of agents: endpoints of the API by another door. A tool's description and schemas are those of its
// endpoint, and its call is a call of the endpoint, so both always answer the same. Section 11 of the decisions.

import { invalidField } from "../../src/domain/values/refusal.ts";
import { answered, refused, type Result } from "../../src/domain/state/result.ts";
import { EVENTS, type FeedWorld } from "../calls/events.ts";
import type { Endpoint } from "../http/endpoint_types.ts";
import { type JsonSchema, jsonSchemaOf } from "../reference/json_schema.ts";
import type { ObjectSchema, Tool, ToolOutcome } from "./tool_server.ts";

/** What is behind a tool. */
interface Behind {
  readonly endpoint: Endpoint<FeedWorld>;
  readonly members: Readonly<Record<string, JsonSchema>>;
}

/** The endpoints that agents may call, by the names of their tools. */
const TOOL_NAMES: Readonly<Record<string, string>> = { listEvents: "list_events", getEvent: "get_event" };

const behind = new Map<string, Behind>();

/** Every tool. */
export const TOOLS: readonly Tool[] = EVENTS.flatMap((endpoint) => {
  const name = TOOL_NAMES[endpoint.id];
  return name === undefined ? [] : [toolOf(name, endpoint)];
});

function toolOf(name: string, endpoint: Endpoint<FeedWorld>): Tool {
  const { input, answer, summary, description } = endpoint;
  const inputSchema = jsonSchemaOf(input) as ObjectSchema;
  behind.set(name, { endpoint, members: inputSchema.properties as Record<string, JsonSchema> });
  return {
    name,
    title: summary,
    description: description === undefined ? `${summary}.` : `${summary}. ${description}`,
    inputSchema,
    outputSchema: jsonSchemaOf(answer) as ObjectSchema,
  };
}

/** Members of path and query, as a request has them. */
export type ToolMembers = Readonly<Record<string, string>>;

/**
 * Calls a tool.
 *
 * @param call calls an endpoint with the caller's key
 */
export async function callTool(
  call: (endpoint: Endpoint<FeedWorld>, members: ToolMembers) => Promise<ToolOutcome>,
  name: string,
  input: Readonly<Record<string, unknown>>,
): Promise<ToolOutcome> {
  const tool = behind.get(name) as Behind;
  const members = membersOf(tool, input);
  return members.ok ? await call(tool.endpoint, members.answer) : { ok: false, error: members.refusal };
}

/** The members of a call; one of the wrong type, or the lack of one that is needed, is refused. */
function membersOf(
  { endpoint, members }: Behind,
  input: Readonly<Record<string, unknown>>,
): Result<ToolMembers> {
  const found: Record<string, string> = {};
  for (const [member, { type }] of Object.entries(members)) {
    const value = input[member] ?? undefined;
    if (value === undefined && !endpoint.path.includes(`:${member}`)) continue;
    const isText = typeof value === "string" && value !== "" && value.isWellFormed();
    if (type === "integer" ? typeof value !== "number" : !isText) {
      return refused(invalidField(member, `must be a ${type === "integer" ? "number" : "text"}`));
    }
    found[member] = String(value);
  }
  return answered(found);
}

/** The path of a call under `/api`, with its query. */
export function pathOf({ path }: Endpoint<FeedWorld>, members: ToolMembers): string {
  const query = new URLSearchParams();
  let filled = path;
  for (const [member, value] of Object.entries(members)) {
    if (path.includes(`:${member}`)) filled = filled.replace(`:${member}`, () => encodeURIComponent(value));
    else query.set(member, value);
  }
  return `${filled}?${query}`;
}
