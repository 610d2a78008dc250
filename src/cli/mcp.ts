// `deno task mcp`: the tool server over standard input and output, for agents on this machine. It calls a running
// service with a secret key. Exit status: 0 the client ended, 2 wrong usage.

import { refusal } from "../domain/values/refusal.ts";
import { callTool, pathOf, TOOLS } from "../../routes/mcp/tools.ts";
import type { ToolOutcome } from "../../routes/mcp/tool_server.ts";
import { serveStdio } from "../../routes/mcp/stdio.ts";
import { messageOf } from "../process/log.ts";
import {
  makeProgram,
  openShell,
  readingKey,
  runProgram,
  serviceUrl,
  type Shell,
  withExample,
} from "./shell.ts";

const VARIABLES = ["PORT", "HOLDFAST_HOST", "HOLDFAST_KEY"] as const;
const CALL_TIMEOUT_MS = 30_000;

interface Options {
  readonly key?: string;
  readonly url?: string;
}

/** Runs the command line to its exit status. */
export function runMcp(args: readonly string[], shell: Shell): Promise<number> {
  const program = makeProgram(
    shell,
    "deno task mcp",
    `Serves the Model Context Protocol over standard input and output: ${
      TOOLS.map(({ name }) => name).join(", ")
    }.`,
  )
    .option("--key <sk_...>", "a secret or read-only key of the app (default: HOLDFAST_KEY)")
    .option("--url <url>", "base URL of the service (default: from PORT and HOLDFAST_HOST)")
    .action(async (options: Options) => {
      const base = serviceUrl(options.url, shell);
      const key = readingKey(options.key, shell);
      const call: Parameters<typeof callTool>[0] = (endpoint, members) =>
        ask(`${base}/api${pathOf(endpoint, members)}`, key, endpoint.method === "POST" ? members : null);
      await serveStdio(TOOLS, (name, input) => callTool(call, name, input));
    });
  withExample(program, "HOLDFAST_KEY=sk_live_... deno task mcp");
  return runProgram(program, args, shell);
}

/** The service's answer, or an error if there was none. */
async function ask(url: string, key: string, body: object | null): Promise<ToolOutcome> {
  const signal = AbortSignal.timeout(CALL_TIMEOUT_MS);
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const sent = body === null ? {} : { method: "POST", body: JSON.stringify(body) };
  try {
    const response = await fetch(url, { ...sent, headers, signal });
    return await response.json();
  } catch (error) {
    const message = `The service did not answer: ${messageOf(error)}`;
    return { ok: false, error: refusal("unavailable", message) };
  }
}

if (import.meta.main) Deno.exitCode = await runMcp(Deno.args, openShell(VARIABLES));
