// For tests of the command-line tasks: a service on 127.0.0.1 and a free port, and tasks run as real programs with
// exactly the permissions of their lines in deno.json, or as functions with a shell of the test's own.

import type { Check } from "../../src/operations/doctor/checks.ts";
import type { Features } from "../../src/process/features.ts";
import { LOCK_LIMITS } from "../../src/storage/embedded/folder_lock.ts";
import type { Shell } from "../../src/cli/shell.ts";
import { CHILD_ENVIRONMENT } from "../crash/program.ts";
import { limitsOfFile } from "../support/limits.ts";
import { ADMIN_TOKEN, startTestService, type TestService } from "../support/test_service.ts";

/** The project's folder, from which tasks run. */
export const ROOT = new URL("../..", import.meta.url).pathname;
const PROGRAM_TIMEOUT_MS = 60_000;

/** A service that answers on a port. */
export interface ServedService extends TestService {
  readonly url: string;
}

/** Answers requests on a free port of 127.0.0.1. */
export function serve(handler: (request: Request) => Response | Promise<Response>) {
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, handler);
  return { url: `http://127.0.0.1:${server.addr.port}`, close: () => server.shutdown() };
}

/** Runs a test on a service that answers on a port. */
export async function withService(
  work: (service: ServedService) => Promise<void>,
  features: Partial<Features> = {},
): Promise<void> {
  const service = await startTestService(undefined, features);
  const { url, close } = serve((request) => service.http.fetch(request));
  try {
    await work({ ...service, url });
  } finally {
    await close();
    await service.close();
  }
}

/** What a program did. */
export interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** The variables of an operator at this service. */
export function operatorOf({ url }: { readonly url: string }): Record<string, string> {
  return { PORT: new URL(url).port, HOLDFAST_ADMIN_TOKEN: ADMIN_TOKEN };
}

/** Starts a task as a program, without a terminal; it is ended after a minute. */
export async function spawnTask(
  task: string,
  args: readonly string[],
  variables: Record<string, string> = {},
): Promise<{ process: Deno.ChildProcess; outcome: Promise<Outcome> }> {
  const process = new Deno.Command(Deno.execPath(), {
    args: [...await lineOf(task), ...args],
    cwd: ROOT,
    clearEnv: true,
    env: programVariables(variables),
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
    signal: AbortSignal.timeout(PROGRAM_TIMEOUT_MS),
  }).spawn();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  const outcome = process.output().then(({ code, stdout, stderr }) => ({
    code,
    out: text(stdout),
    err: text(stderr),
  }));
  return { process, outcome };
}

/** Runs a task as a program to its end. */
export async function runTask(
  task: string,
  args: readonly string[],
  variables: Record<string, string> = {},
): Promise<Outcome> {
  return await (await spawnTask(task, args, variables)).outcome;
}

/** The arguments of deno on a task's line, so that the program has the permissions that users give it. */
export async function lineOf(task: string): Promise<string[]> {
  const { tasks } = JSON.parse(await Deno.readTextFile(`${ROOT}deno.json`)) as {
    tasks: Record<string, string>;
  };
  const [deno, ...args] = (tasks[task] ?? "").replaceAll("'", "").split(" ");
  if (deno !== "deno") throw new Error(`deno.json has no task "${task}" that runs deno`);
  return args;
}

/** "verdict name" of what the doctor finds amiss; that a machine under load answers late is no finding of a test. */
export function troublesOf(checks: readonly Check[]): string[] {
  const isLate = ({ name, verdict, found }: Check) =>
    verdict === "warn" && (name === "clock" || name === "database" && found.includes("a round trip"));
  return checks.filter((check) => check.verdict !== "ok" && !isLate(check))
    .map(({ name, verdict }) => `${verdict} ${name}`);
}

/** Shortens waits for a folder's lock, for tests in which its owner keeps it. */
export function shortenLockWaits(): void {
  limitsOfFile(LOCK_LIMITS, { pauseMs: 1 });
}

/** The variables of a program: those that deno needs, and these. */
export function programVariables(variables: Record<string, string>): Record<string, string> {
  return { ...kept("PATH", "HOME", "DENO_DIR", "TMPDIR"), ...CHILD_ENVIRONMENT, ...variables };
}

function kept(...names: string[]): Record<string, string> {
  return Object.fromEntries(names.flatMap((name) => {
    const value = Deno.env.get(name);
    return value === undefined ? [] : [[name, value]];
  }));
}

/** A shell that keeps what is printed; with an answer there is a person to ask. */
export function testShell(variables: Record<string, string> = {}, answer: string | null = null) {
  const printed: string[] = [];
  const noted: string[] = [];
  const asked: string[] = [];
  const shell: Shell = {
    variables,
    isInteractive: answer !== null,
    print: (text) => void printed.push(text),
    note: (text) => void noted.push(text),
    ask: (question) => {
      asked.push(question);
      return answer ?? "";
    },
  };
  return { shell, asked, out: () => printed.join("\n"), err: () => noted.join("\n") };
}

/** Runs a test with a file of this text in a folder of its own. */
export async function withFile(name: string, text: string, work: (path: string) => Promise<void>) {
  const folder = await Deno.makeTempDir({ prefix: "holdfast_tasks_" });
  try {
    await Deno.writeTextFile(`${folder}/${name}`, text);
    await work(`${folder}/${name}`);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
