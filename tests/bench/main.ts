// The benchmark's entry: starts every contestant as a process of its own, loads them one at a time on the same machine
// and the same PostgreSQL, and prints one table (or, with --json, one document) on stdout. Progress goes to stderr.
// Whatever it made is undone at the end, on failure and on Ctrl-C.
import { cpus } from "node:os";
import { type Contestant, type Running, Skipped } from "./contestant.ts";
import { echo } from "./contestants/echo.ts";
import { plpgsql } from "./contestants/function.ts";
import { holdfast } from "./contestants/holdfast.ts";
import { redis } from "./contestants/redis.ts";
import { transaction } from "./contestants/transaction.ts";
import { benchMembers, membersTable } from "./members.ts";
import { type Options, readOptions } from "./options.ts";
import { type Cleanup, messageOf, withCleanup } from "./processes.ts";
import { callsOf, COLD, type Machine, type Report, summarize, table } from "./report.ts";
import { measure, type Measured, roundOf } from "./schedule.ts";
import { makeScratch, type Scratch } from "./scratch.ts";

const CONTESTANTS: Contestant[] = [echo, transaction, plpgsql, redis, holdfast];

function progress(text: string): void {
  console.error(`bench: ${text}`);
}

function machineFacts(scratch: Scratch): Machine {
  return {
    cores: navigator.hardwareConcurrency,
    cpu: cpus()[0]?.model ?? Deno.build.arch,
    memoryGiB: Math.round(Deno.systemMemoryInfo().total / 2 ** 30),
    os: `${Deno.build.os} ${Deno.osRelease()}`,
    deno: Deno.version.deno,
    postgres: scratch.facts.version,
    synchronousCommit: scratch.facts.synchronousCommit,
    fsync: scratch.facts.fsync,
  };
}

/** Starts what can be started and notes why the rest can't. */
async function startAll(
  wanted: Contestant[],
  options: Options,
  databaseUrl: string,
  cleanup: Cleanup,
  absent: Report["absent"],
): Promise<Map<string, Running>> {
  const needsCold = options.calls?.includes(COLD) ?? true;
  const running = new Map<string, Running>();
  for (const contestant of wanted) {
    progress(`starting ${contestant.name}`);
    try {
      running.set(contestant.name, await contestant.start({ databaseUrl, needsCold, cleanup, progress }));
    } catch (error) {
      if (cleanup.begun) throw error;
      const outcome = error instanceof Skipped ? "skipped" : "failed";
      absent.push({ contestant: contestant.name, outcome, reason: messageOf(error) });
      progress(`${outcome}: ${contestant.name}: ${messageOf(error)}`);
    }
  }
  return running;
}

/** Runs all rounds; a contestant that fails under load is left out of what follows. */
async function runAll(
  options: Options,
  contestants: Contestant[],
  running: Map<string, Running>,
  scratch: Scratch,
  cleanup: Cleanup,
  absent: Report["absent"],
): Promise<Measured[]> {
  const runs: Measured[] = [];
  const scenarios = Array.from({ length: options.rounds }, () => roundOf(contestants)).flat()
    .filter((scenario) => options.calls?.includes(callsOf(scenario)) ?? true);
  for (const [index, scenario] of scenarios.entries()) {
    const server = running.get(scenario.contestant);
    if (server === undefined) continue;
    const name = `${scenario.contestant} ${callsOf(scenario)}, ${scenario.users}`;
    await scratch.checkpoint();
    try {
      const run = await measure(scenario, server, runs, { ...options, databaseUrl: scratch.url }, cleanup);
      runs.push(run);
      progress(
        `${index + 1}/${scenarios.length} ${name}: ${Math.round(run.load.all.requestsPerSecond)} requests/s`,
      );
      if (run.load.firstFailure !== null) progress(`  first failure: ${run.load.firstFailure}`);
    } catch (error) {
      if (cleanup.begun) throw error;
      running.delete(scenario.contestant);
      absent.push({
        contestant: scenario.contestant,
        outcome: "failed",
        reason: `${name}: ${messageOf(error)}`,
      });
      progress(`failed: ${name}: ${messageOf(error)}`);
    }
  }
  return runs;
}

async function bench(options: Options, cleanup: Cleanup): Promise<Report> {
  const scratch = await makeScratch(options.databaseUrl, cleanup);
  const wanted = CONTESTANTS.filter(({ name }) => options.only?.includes(name) ?? true);
  const absent: Report["absent"] = [];
  const running = await startAll(wanted, options, scratch.url, cleanup, absent);
  const started = wanted.filter(({ name }) => running.has(name));
  const runs = await runAll(options, started, running, scratch, cleanup, absent);
  const { seconds, rounds, connections } = options;
  return {
    machine: machineFacts(scratch),
    options: { seconds, rounds, connections },
    ...summarize(runs),
    absent,
  };
}

/** Runs the benchmark and returns the exit code: 1 when a contestant failed, 0 also when a target is missed. */
async function main(args: string[]): Promise<number> {
  const options = readOptions(args, CONTESTANTS.map(({ name }) => name));
  if (options === null) return 0;
  if (options.members === 2) {
    const runs = await withCleanup((cleanup) => benchMembers(options, cleanup, progress));
    console.log(options.json ? JSON.stringify(runs, null, 2) : membersTable(runs));
    return 0;
  }
  const report = await withCleanup((cleanup) => bench(options, cleanup));
  console.log(options.json ? JSON.stringify(report, null, 2) : table(report));
  return report.absent.some(({ outcome }) => outcome === "failed") ? 1 : 0;
}

if (import.meta.main) {
  try {
    Deno.exit(await main(Deno.args));
  } catch (error) {
    console.error(`bench: ${messageOf(error)}`);
    Deno.exit(2);
  }
}
