// The tool server over streamable HTTP, without sessions: one call, one server, one JSON answer.

import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import { makeToolServer, type Tool, type ToolCaller } from "./tool_server.ts";

/** Answers one POST of a client. */
export async function answerPost(
  request: Request,
  tools: readonly Tool[],
  call: ToolCaller,
  bodyBytesMax: number,
): Promise<Response> {
  const server = makeToolServer(tools, call);
  const transport = new WebStandardStreamableHTTPServerTransport({
    enableJsonResponse: true,
    maxRequestBodySize: bodyBytesMax,
  });
  // The SDK's own classes disagree under exactOptionalPropertyTypes.
  await server.connect(transport as Parameters<typeof server.connect>[0]);
  try {
    return await transport.handleRequest(request);
  } finally {
    await server.close();
  }
}
