// The tools of agents: operations of the API by another door. A tool's description and schemas are those of its
// endpoint, and its call is a call of the endpoint, so both always answer the same. Section 11 of the decisions.

import type { z } from "zod";
import { type Refusal, refusal } from "../src/domain/refusal.ts";
import { EVENTS } from "./events.ts";
import type { Endpoint } from "./endpoint.ts";
import { type JsonSchema, jsonSchemaOf } from "./reference/json_schema.ts";
import type { ObjectSchema, Tool, ToolOutcome } from "../src/mcp/tool_server.ts";

/** A tool with the operation behind it. */
interface EndpointTool extends Tool {
  readonly path: string;
  readonly members: Readonly<Record<string, JsonSchema>>;
}

/** The operations that agents may call, by the names of their tools. */
const TOOL_NAMES: Readonly<Record<string, string>> = { listEvents: "list_events", getEvent: "get_event" };

/** Every tool. */
export const TOOLS: readonly EndpointTool[] = EVENTS.flatMap((operation) => {
  const name = TOOL_NAMES[operation.doc.id];
  return name === undefined ? [] : [toolOf(name, operation)];
});

function toolOf(name: string, { path, input, doc }: Endpoint<unknown>): EndpointTool {
  const inputSchema = jsonSchemaOf(input) as ObjectSchema;
  return {
    name,
    title: doc.summary,
    description: doc.description === undefined ? `${doc.summary}.` : `${doc.summary}. ${doc.description}`,
    inputSchema,
    outputSchema: jsonSchemaOf(doc.answer as z.ZodType) as ObjectSchema,
    path,
    members: inputSchema.properties as Record<string, JsonSchema>,
  };
}

/**
 * Calls a tool.
 *
 * @param send sends a GET to a path under `/api` with the caller's key and answers as the API does
 */
export async function callTool(
  send: (path: string) => Promise<Response>,
  name: string,
  input: Readonly<Record<string, unknown>>,
): Promise<ToolOutcome> {
  const tool = TOOLS.find((known) => known.name === name) as EndpointTool;
  const path = pathOf(tool, input);
  if (typeof path !== "string") return { ok: false, error: path };
  const { ok, data, error } = await (await send(path)).json();
  return ok === true ? { ok, data } : { ok: false, error };
}

/** The call's path with its query; a member of the wrong type, or the lack of one that is needed, is refused. */
function pathOf(tool: EndpointTool, input: Readonly<Record<string, unknown>>): string | Refusal {
  const query = new URLSearchParams();
  let path = tool.path;
  for (const [member, { type }] of Object.entries(tool.members)) {
    const value = input[member] ?? undefined;
    const isInPath = path.includes(`:${member}`);
    if (value === undefined && !isInPath) continue;
    const isText = typeof value === "string" && value !== "" && value.isWellFormed();
    if (type === "integer" ? typeof value !== "number" : !isText) {
      return refusal("invalid_request", `${member}: must be a ${type === "integer" ? "number" : "text"}`);
    }
    if (isInPath) path = path.replace(`:${member}`, encodeURIComponent(String(value)));
    else query.set(member, String(value));
  }
  return `${path}?${query}`;
}
