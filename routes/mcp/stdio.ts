// The tool server over the standard streams of this process. Each message is one line of standard output, so no other code
// may write there.

import process from "node:process";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { makeToolServer, type Tool, type ToolCaller } from "./tool_server.ts";

/** Serves until the agent closes standard input. */
export async function serveStdio(tools: readonly Tool[], call: ToolCaller): Promise<void> {
  const server = makeToolServer(tools, call);
  const ended = new Promise<void>((resolve) => process.stdin.once("end", resolve));
  await server.connect(new StdioServerTransport());
  await ended;
  await server.close();
}
