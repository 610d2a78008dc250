// The tool server over streamable HTTP, without sessions: each request has a server of its own and one JSON answer.

import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import { makeToolServer, type Tool, type ToolCaller } from "./tool_server.ts";

/** Answers a POST of an agent. */
export async function answerPost(
  request: Request,
  tools: readonly Tool[],
  call: ToolCaller,
): Promise<Response> {
  const server = makeToolServer(tools, call);
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  await server.connect(transport);
  try {
    return await transport.handleRequest(request);
  } finally {
    await server.close();
  }
}
