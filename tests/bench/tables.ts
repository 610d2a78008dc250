// What reads and sweeps cost on large tables, through the real service on PostgreSQL: `deno task bench:tables` fills a
// scratch database twice, with a tenth of the rows and with all, and prints medians, ratios and memory; `--explain`
// prints the plans too. Whatever it made is undone at the end.
import postgres from "postgres";
import { parseArgs } from "node:util";
import { systemClock } from "../../src/process/clock.ts";
import { Registry } from "../../src/tenant/registry.ts";
import type { Serving } from "../../src/cluster/service.ts";
import type { Database } from "../../src/storage/database.ts";
import { openPostgres } from "../../src/storage/postgres_database.ts";
import { CELLS, Doors } from "../../actors/doors.ts";
import type { InCell } from "../../src/storage/nodes/cell_store.ts";
import { readRegistry } from "../../src/storage/stores/registry_store.ts";
import { openUserStore } from "../../src/storage/stores/user_store.ts";
import { Cleanup, messageOf, withCleanup } from "./processes.ts";
import { makeScratch } from "./scratch.ts";
import { type Client, makeApp, startService } from "./service.ts";
import { executionMs, explaining, pagesOf } from "./table_plans.ts";
import { CATALOG, fill, type Size, writeTemplate } from "./table_rows.ts";
import { queriesOf, readsOf, stepsOf } from "./table_steps.ts";

const USAGE = `deno task bench:tables [options]
  --users N         users with a subscription (1000000)
  --events N        events (10000000)
  --rounds N        calls of each read (200)
  --explain         print the plan of every statement
  --json            one JSON document in place of the table
  --database URL    default: DATABASE_URL, else postgres@127.0.0.1:5432`;

const ACTIVE_USERS = 10_000;
const CONNECTIONS = 32;
const STEPS = 5;

interface Options extends Size {
  readonly rounds: number;
  readonly explain: boolean;
  readonly json: boolean;
  readonly databaseUrl: string;
}

interface Times {
  readonly medianMs: number;
  readonly p99Ms: number;
}

interface Report {
  readonly size: Size;
  readonly reads: Record<string, Times>;
  readonly steps: Record<string, Times>;
  readonly memoryMb: number;
}

async function measure(options: Options, size: Size, cleanup: Cleanup): Promise<Report> {
  const scratch = await makeScratch(options.databaseUrl, cleanup);
  const setUp = new Cleanup();
  cleanup.add("stop the first service", () => setUp.run());
  let client = await startService(scratch.url, setUp);
  await makeApp(client, CATALOG);
  await writeTemplate(client);
  const { events: [{ id: event }] } = await client.call("GET", "v1/events?limit=1");
  const { key } = client;
  await setUp.run();
  const sql = postgres(scratch.url, { max: 1, onnotice: () => {} });
  await fill(sql, size, Date.now(), progress).finally(() => sql.end());
  const steps = await sweep(scratch.url, size, options.explain);
  client = await startService(scratch.url, cleanup);
  client.key = key;
  progress("reading");
  const reads: Record<string, Times> = {};
  for (const [name, path] of Object.entries(readsOf(size, event))) {
    reads[name] = await timesOf(options.rounds, (round) => client.call("GET", `v1/${path(round)}`));
  }
  await activate(client);
  return { size, reads, steps, memoryMb: await residentMb(client) };
}

/** One step of each sweep at a time, while no service runs: it would sweep by itself. */
async function sweep(url: string, size: Size, explain: boolean): Promise<Record<string, Times>> {
  progress("sweeping");
  const database = openPostgres(url, 2);
  try {
    const { serving, keys } = await partsOf(database);
    const steps: Record<string, Times> = {};
    for (const [name, step] of Object.entries(stepsOf(serving, size, keys))) {
      await step();
      steps[name] = await timesOf(STEPS, step);
    }
    if (explain) await explainAll(database, size);
    return steps;
  } finally {
    await database.close();
  }
}

/** What sweeps need of a service, beside a service that runs. */
async function partsOf(database: Database) {
  const clock = systemClock();
  const registry = new Registry(clock);
  registry.admit(await readRegistry(database, -1), 0);
  const doors = new Doors();
  doors.open(Array.from({ length: CELLS }, (_, cell) => cell));
  // No process serves, so no cell has an owner and no write needs a fence.
  const inCell: InCell = (_cells, work) => database.transaction(work);
  const parts: Partial<Serving> = {
    database,
    store: openUserStore(database),
    registry,
    clock,
    term: { doors } as Serving["term"],
    inCell,
  };
  const serving = parts as Serving;
  const users = await database.query<{ id: string; key: number }>(
    "select id, key from users where key between 1001 and 1004",
  );
  return { serving, keys: Object.fromEntries(users.map(({ id, key }) => [id, key])) };
}

async function explainAll(database: Database, size: Size): Promise<void> {
  let name = "";
  const explained = explaining(database, (plan) => {
    console.log(
      `-- ${name}: ${plan.mode}, ${executionMs(plan)} ms, ${pagesOf(plan)} pages\n-- ${plan.statement}`,
    );
    console.log(plan.lines.join("\n") + "\n");
  });
  const { serving, keys } = await partsOf(database);
  const realm = [...serving.registry.realms.keys()][0] as number;
  const work = {
    ...queriesOf(explained, realm, keys),
    ...stepsOf({ ...serving, database: explained, store: openUserStore(explained) }, size, keys),
  };
  for (const [next, run] of Object.entries<() => Promise<unknown>>(work)) {
    name = next;
    await run();
  }
}

async function activate(client: Client): Promise<void> {
  let next = 1_000;
  await Promise.all(Array.from({ length: CONNECTIONS }, async () => {
    while (next < 1_000 + ACTIVE_USERS) {
      await client.call("POST", "v1/reserve", { userId: `user-${next++}`, event: "image.render", count: 1 });
    }
  }));
}

/** The memory that the service's process has, as the system counts it. */
async function residentMb(client: Client): Promise<number> {
  const args = ["-o", "rss=", "-p", String(client.child.pid)];
  const { stdout } = await new Deno.Command("ps", { args }).output();
  return Number(new TextDecoder().decode(stdout)) / 1024;
}

async function timesOf(rounds: number, work: (round: number) => Promise<unknown>): Promise<Times> {
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const start = performance.now();
    await work(round);
    times.push(performance.now() - start);
  }
  times.sort((a, b) => a - b);
  const at = (share: number) => times[Math.min(times.length - 1, Math.floor(times.length * share))] as number;
  return { medianMs: at(0.5), p99Ms: at(0.99) };
}

function print([small, whole]: readonly [Report, Report]): void {
  const line = (name: string, ...cells: string[]) =>
    console.log([name.padEnd(34), ...cells.map((cell) => cell.padStart(12))].join(""));
  for (const part of ["reads", "steps"] as const) {
    line(part, "a tenth", "whole", "p99", "ratio");
    for (const [name, { medianMs, p99Ms }] of Object.entries(whole[part])) {
      const before = (small[part][name] as Times).medianMs;
      const ms = (value: number) => `${value.toFixed(2)} ms`;
      line(name, ms(before), ms(medianMs), ms(p99Ms), (medianMs / before).toFixed(2));
    }
  }
  line("memory, 10,000 active users", ...[small, whole].map(({ memoryMb }) => `${memoryMb.toFixed(0)} MB`));
}

function progress(text: string): void {
  console.error(`bench: ${text}`);
}

function readOptions(args: string[]): Options | null {
  const string = { type: "string" } as const;
  const boolean = { type: "boolean" } as const;
  const { values } = parseArgs({
    args,
    options: {
      users: string,
      events: string,
      rounds: string,
      database: string,
      explain: boolean,
      json: boolean,
      help: boolean,
    },
  });
  if (values.help === true) return null;
  const number = (name: string, text: string | undefined, otherwise: number, min: number): number => {
    const value = text === undefined ? otherwise : Number(text);
    if (!Number.isInteger(value) || value < min) throw new Error(`--${name} is a whole number from ${min}`);
    return value;
  };
  return {
    users: number("users", values.users, 1_000_000, 500_000),
    events: number("events", values.events, 10_000_000, 1_000_000),
    rounds: number("rounds", values.rounds, 200, 1),
    explain: values.explain === true,
    json: values.json === true,
    databaseUrl: values.database ?? Deno.env.get("DATABASE_URL") ??
      "postgres://postgres@127.0.0.1:5432/postgres",
  };
}

function run(options: Options, size: Size): Promise<Report> {
  progress(`${size.users} users, ${size.events} events`);
  return withCleanup((cleanup) => measure(options, size, cleanup));
}

if (import.meta.main) {
  try {
    const options = readOptions(Deno.args);
    if (options === null) console.log(USAGE);
    else {
      const { users, events } = options;
      const small = await run({ ...options, explain: false }, {
        users: Math.floor(users / 10),
        events: Math.floor(events / 10),
      });
      const whole = await run(options, { users, events });
      if (options.json) console.log(JSON.stringify([small, whole]));
      else print([small, whole]);
    }
    Deno.exit(0);
  } catch (error) {
    console.error(`bench: ${messageOf(error)}`);
    Deno.exit(2);
  }
}
