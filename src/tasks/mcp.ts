// `deno task mcp`: the tool server over standard input and output, for agents on this machine. It speaks to a running
// service with a secret key. Exit status 0 the client ended, 2 wrong usage.

import { refusal } from "../domain/refusal.ts";
import { errorBody } from "../../routes/errors.ts";
import { callTool, TOOLS } from "../../routes/tools.ts";
import { serveStdio } from "../mcp/stdio.ts";
import { messageOf } from "../process/log.ts";
import {
  makeProgram,
  openShell,
  runProgram,
  secretKey,
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
    .option("--key <sk_...>", "a secret key of the app (default: HOLDFAST_KEY)")
    .option("--url <url>", "base URL of the service (default: from PORT and HOLDFAST_HOST)")
    .action(async (options: Options) => {
      const base = serviceUrl(options.url, shell);
      const key = secretKey(options.key, shell);
      await serveStdio(
        TOOLS,
        (name, input) => callTool((path) => get(`${base}/api${path}`, key), name, input),
      );
    });
  withExample(program, "HOLDFAST_KEY=sk_live_... deno task mcp");
  return runProgram(program, args, shell);
}

/** The service's answer, or one that says that there is none. */
async function get(url: string, key: string): Promise<Response> {
  const headers = { authorization: `Bearer ${key}` };
  try {
    const response = await fetch(url, { headers, signal: AbortSignal.timeout(CALL_TIMEOUT_MS) });
    const text = await response.text();
    JSON.parse(text);
    return new Response(text);
  } catch (error) {
    return new Response(errorBody(refusal("unavailable", `The service did not answer: ${messageOf(error)}`)));
  }
}

if (import.meta.main) Deno.exitCode = await runMcp(Deno.args, openShell(VARIABLES));
