// The benchmark's entry: starts every contestant as a process of its own, loads them one at a time on the same machine
// and the same PostgreSQL, and prints one table (or, with --json, one document) on stdout. Progress goes to stderr.
// Whatever it made is undone at the end, on failure and on Ctrl-C.
import { cpus } from "node:os";
import { type Bench, type Contestant, type Needs, type Running, Skipped } from "./contestant.ts";
import { echo } from "./contestants/echo.ts";
import { plpgsql } from "./contestants/function.ts";
import { embedded, holdfast } from "./contestants/holdfast.ts";
import { redis } from "./contestants/redis.ts";
import { transaction } from "./contestants/transaction.ts";
import { benchNodes, nodesTable } from "./nodes.ts";
import { benchStores } from "./stores.ts";
import { type Options, readOptions } from "./options.ts";
import { Cleanup, messageOf, withCleanup } from "./processes.ts";
import { AT_DEPTH, callsOf, COLD, type Machine, type Report, summarize, table } from "./report.ts";
import { measureLog } from "./log_bytes.ts";
import {
  measure,
  type Measured,
  type MeasuredWithCost,
  measureWithCost,
  roundOf,
  type Scenario,
} from "./schedule.ts";
import { makeScratch, NO_SCRATCH, type Scratch, type ServerFacts } from "./scratch.ts";
import { COMPARED, sustainedPlans, sustainedRate } from "./sustained.ts";

const NO_NEEDS: Needs = { cold: false, members: false };
const CONTESTANTS: Contestant[] = [echo, transaction, plpgsql, redis, holdfast];

function progress(text: string): void {
  console.error(`bench: ${text}`);
}

function machineFacts(facts: ServerFacts | null): Machine {
  return {
    cores: navigator.hardwareConcurrency,
    cpu: cpus()[0]?.model ?? Deno.build.arch,
    memoryGiB: Math.round(Deno.systemMemoryInfo().total / 2 ** 30),
    os: `${Deno.build.os} ${Deno.osRelease()}`,
    deno: Deno.version.deno,
    postgres: facts?.version ?? "n/a",
    synchronousCommit: facts?.synchronousCommit ?? "n/a",
    fsync: facts?.fsync ?? "n/a",
  };
}

/** Starts what can be started and notes why the rest can't. */
async function startAll(
  wanted: readonly Contestant[],
  bench: Bench,
  absent: Report["absent"],
): Promise<Map<string, Running>> {
  const running = new Map<string, Running>();
  for (const contestant of wanted) {
    progress(`starting ${contestant.name}`);
    try {
      running.set(contestant.name, await contestant.start(bench));
    } catch (error) {
      if (bench.cleanup.begun) throw error;
      const outcome = error instanceof Skipped ? "skipped" : "failed";
      if (absent.some((other) => other.contestant === contestant.name)) continue;
      absent.push({ contestant: contestant.name, outcome, reason: messageOf(error) });
      progress(`${outcome}: ${contestant.name}: ${messageOf(error)}`);
    }
  }
  return running;
}

/** What all parts share. */
interface Shared {
  readonly options: Options;
  readonly cleanup: Cleanup;
  readonly absent: Report["absent"];
  /** What the server says of itself, once a part has asked. */
  facts: ServerFacts | null;
}

/** What the runs of a part share. */
interface Stage {
  readonly options: Options;
  readonly started: readonly Contestant[];
  readonly running: Map<string, Running>;
  readonly scratch: Scratch;
  readonly cleanup: Cleanup;
  readonly absent: Report["absent"];
}

/** Runs all rounds of the table; a contestant that fails under load is left out of what follows. */
async function runTable(stage: Stage): Promise<MeasuredWithCost[]> {
  const { options, started, scratch, cleanup } = stage;
  const wanted = { ...options, databaseUrl: scratch.url };
  const runs: MeasuredWithCost[] = [];
  const scenarios = Array.from({ length: options.rounds }, () => roundOf([...started])).flat()
    .filter((scenario) => options.calls?.includes(callsOf(scenario)) ?? true);
  for (const [index, scenario] of scenarios.entries()) {
    const name = `${scenario.contestant} ${callsOf(scenario)}, ${scenario.users}`;
    await runOne(stage, scenario, name, async (server) => {
      const run = await measureWithCost(scenario, server, runs, wanted, cleanup);
      runs.push(run);
      return `${index + 1}/${scenarios.length} ${name}: ${rateText(run)}`;
    });
  }
  return runs;
}

/** Runs the sustained loads. */
async function runSustained(stage: Stage): Promise<Measured[]> {
  const { options: { connections, sustained }, started, cleanup } = stage;
  if (sustained === null) return [];
  const runs: Measured[] = [];
  for (const plan of sustainedPlans(started.map(({ name }) => name), sustained)) {
    const { scenario, seconds } = plan;
    const name = `sustained: ${scenario.contestant} ${callsOf(scenario)}, ${scenario.users}`;
    await runOne(stage, scenario, name, async (server) => {
      const rate = sustainedRate(plan, runs, sustained);
      const run = await measure(
        scenario,
        server,
        [],
        { connections, seconds, rate, generator: "own" },
        cleanup,
      );
      runs.push(run);
      return `${name}: ${rateText(run)}`;
    });
  }
  return runs;
}

/** Makes one run, unless its contestant has failed before; says what came of it. */
async function runOne(
  { running, scratch, cleanup, absent }: Stage,
  { contestant }: Scenario,
  name: string,
  run: (server: Running) => Promise<string>,
): Promise<void> {
  const server = running.get(contestant);
  if (server === undefined) return;
  await scratch.checkpoint();
  try {
    progress(await run(server));
  } catch (error) {
    if (cleanup.begun) throw error;
    running.delete(contestant);
    const reason = `${name}: ${messageOf(error)}`;
    absent.push({ contestant, outcome: "failed", reason });
    progress(`failed: ${reason}`);
  }
}

function rateText({ load }: Measured): string {
  const failure = load.firstFailure === null ? "" : `; first failure: ${load.firstFailure}`;
  return `${Math.round(load.all.requestsPerSecond)} requests/s${failure}`;
}

/**
 * One part of the benchmark: contestants that start anew on a database of their own, so that what one part leaves behind
 * (open holds, a million users) is not felt in the next.
 */
async function part<Made>(
  shared: Shared,
  wanted: readonly Contestant[],
  needs: Needs,
  work: (stage: Stage) => Promise<Made>,
): Promise<Made> {
  const { options, absent } = shared;
  const cleanup = new Cleanup();
  shared.cleanup.add("end a part", () => cleanup.run());
  const scratch = options.isEmbedded ? NO_SCRATCH : await makeScratch(options.databaseUrl, cleanup);
  shared.facts ??= scratch.facts;
  try {
    const bench = { databaseUrl: scratch.url, needs, cleanup, progress };
    const running = await startAll(wanted, bench, absent);
    const started = wanted.filter(({ name }) => running.has(name));
    return await work({ options, started, running, scratch, cleanup, absent });
  } finally {
    await cleanup.run();
  }
}

async function bench(options: Options, cleanup: Cleanup): Promise<Report> {
  const { seconds, rounds, connections, logUsers: users } = options;
  const shared: Shared = { options, cleanup, absent: [], facts: null };
  const contestants = options.isEmbedded ? [echo, embedded] : CONTESTANTS;
  const wanted = contestants.filter(({ name }) => options.only?.includes(name) ?? true);
  const needs = {
    cold: options.calls?.includes(COLD) ?? true,
    members: options.calls?.includes(AT_DEPTH) ?? true,
  };
  const runs = options.table ? await part(shared, wanted, needs, runTable) : [];
  const compared = wanted.filter(({ name }) => COMPARED.includes(name));
  const sustained = options.sustained === null ? [] : await part(shared, compared, NO_NEEDS, runSustained);
  const services = users.length === 0 ? [] : wanted.filter(({ isService }) => isService);
  const logBytes = services.length === 0 ? [] : await part(shared, services, NO_NEEDS, async (stage) => {
    const running = stage.running.get("holdfast");
    return running === undefined
      ? []
      : await measureLog({ ...stage, running, connections, seconds, users, progress });
  });
  return {
    machine: machineFacts(shared.facts),
    options: { seconds, rounds, connections },
    ...summarize(runs, sustained),
    logBytes,
    absent: shared.absent,
  };
}

/** Runs the benchmark and returns the exit code: 1 when a contestant failed, 0 also when a target is missed. */
async function main(args: string[]): Promise<number> {
  const options = readOptions(args, [...CONTESTANTS, embedded].map(({ name }) => name));
  if (options === null) return 0;
  if (options.members === 2) {
    const runs = await withCleanup((cleanup) => benchNodes(options, cleanup, progress));
    console.log(options.json ? JSON.stringify(runs, null, 2) : nodesTable(runs));
    return 0;
  }
  if (options.databases) {
    console.log(await withCleanup((cleanup) => benchStores(options, cleanup, progress)));
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
