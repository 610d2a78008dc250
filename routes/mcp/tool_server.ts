// The tool server, independent of the transport. Tools have JSON Schemas; the registration of the SDK would require the
// schemas again in another form, so the handlers are set directly.

import { type CallToolResult, ProtocolError, ProtocolErrorCode, Server } from "@modelcontextprotocol/server";

/** A JSON Schema of an object. */
export type ObjectSchema = { readonly type: "object"; readonly [member: string]: unknown };

/** A tool as agents see it. Every tool only reads. */
export interface Tool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly inputSchema: ObjectSchema;
  readonly outputSchema: ObjectSchema;
}

/** The result of a tool call: the data or the error of the API. */
export type ToolOutcome =
  | { readonly ok: true; readonly data: Record<string, unknown> }
  | { readonly ok: false; readonly error: unknown };

/** Calls a tool by its name. */
export type ToolCaller = (name: string, input: Readonly<Record<string, unknown>>) => Promise<ToolOutcome>;

/** Makes a server of tools, for one connection or one HTTP request. */
export function makeToolServer(tools: readonly Tool[], call: ToolCaller): Server {
  const server = new Server({ name: "holdfast", version: "1" }, { capabilities: { tools: {} } });
  server.setRequestHandler("tools/list", () => ({
    tools: tools.map((tool) => ({ ...tool, annotations: { readOnlyHint: true, openWorldHint: false } })),
  }));
  server.setRequestHandler("tools/call", async ({ params }) => {
    const { name, arguments: input = {} } = params;
    if (!tools.some((tool) => tool.name === name)) {
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown tool: ${name}`);
    }
    return resultOf(await call(name, input));
  });
  return server;
}

/** Returns data twice: as JSON text for every agent, and as structured content for programs. */
function resultOf(outcome: ToolOutcome): CallToolResult {
  if (!outcome.ok) return { isError: true, content: [{ type: "text", text: JSON.stringify(outcome.error) }] };
  const { data } = outcome;
  return { content: [{ type: "text", text: JSON.stringify(data) }], structuredContent: data };
}
