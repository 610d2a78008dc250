// `deno task replay`: replays a trace of real requests against a running service, a reserve and a commit each, and prints a
// summary. Exit status: 0 every call was answered (a refused reserve is an answer), 1 a call failed or the trace has
// faults, 2 wrong usage, 3 the service is unreachable, 130 stopped by Ctrl-C.

import { InvalidArgumentError, Option } from "commander";
import { NO_ANSWER, probe, STRANGE_ANSWER } from "./replay_client.ts";
import { showProgress, summarize, summaryText } from "./replay_report.ts";
import { replay, type ReplayPlan, subscribeUsers, Tally } from "./replay_run.ts";
import {
  EXIT,
  makeProgram,
  openShell,
  runProgram,
  secretKey,
  serviceUrl,
  type Shell,
  TaskError,
  wholeNumber,
  withExample,
} from "../../src/cli/shell.ts";
import { checkTrace, readTrace, TraceFault } from "./trace.ts";

const VARIABLES = ["PORT", "HOLDFAST_HOST", "HOLDFAST_KEY"] as const;
/** The speed of a replay that keeps no time. */
const MAX = "max";
const FAULTS_SHOWN_MAX = 20;
/** With pauses of a second this outlasts a restart of the service or of its database. */
const RETRIES_MAX = 30;

const NO_PLAN = "Users without a plan were refused: give --plan to subscribe them first " +
  "(`deno task admin catalog show` lists the plans)";

interface Options {
  readonly key?: string;
  readonly url?: string;
  readonly users: number;
  readonly event: string;
  readonly speed: number | typeof MAX;
  readonly connections: number;
  readonly plan?: string;
  readonly prefix: string;
  readonly json?: boolean;
}

/** Runs the command line to its exit status; the signal ends the replay with the summary so far. */
export async function runReplay(args: readonly string[], shell: Shell, stop: AbortSignal): Promise<number> {
  let exitCode: number = EXIT.ok;
  const program = makeProgram(
    shell,
    "deno task replay",
    "Replays a trace (TIMESTAMP,ContextTokens,GeneratedTokens) against a running service: a reserve with the\n" +
      "context's tokens and a commit with the generated ones. Request i belongs to user (i mod N).",
  )
    .argument("<file>", "the trace as CSV")
    .option("--key <sk_...>", "a secret key of the app (default: HOLDFAST_KEY)")
    .option("--url <url>", "base URL of the service (default: from PORT and HOLDFAST_HOST)")
    .option("--users <n>", "users to spread the requests over", wholeNumber(1, 1_000_000), 100)
    .option("--event <name>", "event name", "chat.code")
    .addOption(
      new Option("--speed <max|n>", "as fast as it goes, or a multiple of real time")
        .argParser(speed).default(MAX),
    )
    .option("--connections <n>", "requests in flight at most", wholeNumber(1, 1_000), 64)
    .option("--plan <id>", "subscribe the users to this plan first")
    .option("--prefix <text>", "what the users' ids start with", "user_")
    .option("--json", "print the summary as JSON")
    .action(async (file: string, options: Options) => {
      exitCode = await replayFile(file, options, shell, stop);
    })
    .addHelpText(
      "after",
      "\nExit status: 0 every call was answered, 1 a call failed or the trace has faults, 2 wrong usage," +
        "\n3 the service cannot be reached, 130 stopped by Ctrl-C.",
    );
  withExample(program, "deno task replay trace.csv --key sk_test_... --users 100 --plan plan_pro");
  const status = await runProgram(program, args, shell);
  return status === EXIT.ok ? exitCode : status;
}

async function replayFile(file: string, options: Options, shell: Shell, stop: AbortSignal): Promise<number> {
  const rows = await countRows(file);
  const tally = new Tally();
  const plan: ReplayPlan = {
    ...options,
    url: serviceUrl(options.url, shell),
    speed: options.speed === MAX ? null : options.speed,
    key: secretKey(options.key, shell),
    retriesMax: RETRIES_MAX,
    runId: `replay-${crypto.randomUUID()}`,
    stop,
    onRetry: () => tally.retried++,
  };
  await checkService(plan);
  if (options.plan !== undefined) await subscribe(plan, options.plan);
  const progress = showProgress(tally, rows);
  let isBroken = false;
  try {
    await replay(plan, readTrace(file), tally);
  } catch (error) {
    if (!(error instanceof TraceFault)) throw error;
    isBroken = true;
    shell.note(`${file} has changed since it was checked, ${error.message}`);
  } finally {
    progress.end();
  }
  const about = { file, users: plan.users, rows, isPaced: plan.speed !== null };
  const summary = summarize(tally, about);
  shell.print(options.json === true ? JSON.stringify(summary, null, 2) : summaryText(summary));
  if (options.plan === undefined && tally.refusedByReason.has("no_subscription")) shell.note(NO_PLAN);
  if (summary.failed > 0 || isBroken) return EXIT.refused;
  return summary.isComplete ? EXIT.ok : EXIT.interrupted;
}

/** The rows of a trace without a fault. */
async function countRows(file: string): Promise<number> {
  const { rows, faults } = await checkTrace(file, FAULTS_SHOWN_MAX).catch((error) => {
    throw new TaskError(`Cannot read "${file}": ${error.message}`, EXIT.usage);
  });
  if (faults.length === 0) return rows;
  const more = faults.length === FAULTS_SHOWN_MAX ? ["(only the first faults are shown)"] : [];
  throw new TaskError(
    [...faults.map(({ message }) => `${file}, ${message}`), ...more, "Nothing was sent"].join("\n"),
    EXIT.refused,
  );
}

/** Checks that the service answers and accepts the key. A service that is starting may answer `unavailable`. */
async function checkService(plan: ReplayPlan): Promise<void> {
  const outcome = await probe(plan.url, plan.key);
  if (outcome.ok || outcome.code === "unavailable") return;
  const isReached = outcome.code !== NO_ANSWER && outcome.code !== STRANGE_ANSWER;
  if (isReached) throw new TaskError(`Refused (${outcome.code}): ${outcome.message}`, EXIT.refused);
  throw new TaskError(`Cannot reach the service at ${plan.url}: ${outcome.message}`, EXIT.unreachable);
}

async function subscribe(plan: ReplayPlan, planId: string): Promise<void> {
  const refusal = await subscribeUsers(plan, planId);
  if (refusal === null) return;
  const { userId, code, message } = refusal;
  throw new TaskError(`Cannot subscribe ${userId} to ${planId} (${code}): ${message}`, EXIT.refused);
}

function speed(text: string): Options["speed"] {
  if (text === MAX) return text;
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : NaN;
  if (value > 0) return value;
  throw new InvalidArgumentError('Must be "max" or a number above 0.');
}

/** The first Ctrl-C ends in good order; the second one ends at once. */
function stopOnSignal(shell: Shell): AbortSignal {
  const controller = new AbortController();
  Deno.addSignalListener("SIGINT", () => {
    if (controller.signal.aborted) Deno.exit(EXIT.interrupted);
    controller.abort();
    shell.note("Stopping: waiting for the calls in flight (Ctrl-C again ends at once)");
  });
  return controller.signal;
}

if (import.meta.main) {
  const shell = openShell(VARIABLES);
  Deno.exit(await runReplay(Deno.args, shell, stopOnSignal(shell)));
}
