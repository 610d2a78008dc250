// What a merge of two large users costs, through the real service on PostgreSQL: first alone, then while other users
// reserve, who must not feel it. `deno task bench:merge` prints a table; whatever it made is undone at the end.
import postgres from "postgres";
import { parseArgs } from "node:util";
import { type CallReport, userId, USERS } from "./load_plan.ts";
import { type Cleanup, messageOf, withCleanup } from "./processes.ts";
import { measure, type Scenario } from "./schedule.ts";
import { makeScratch } from "./scratch.ts";
import { type Client, makeApp, sleep, startService } from "./service.ts";

const USAGE = `deno task bench:merge [options]
  --merges N        merges alone, and as many under load (7)
  --events N        events of each user that is merged (100000)
  --seconds N       measured seconds of each load (10)
  --connections N   connections of other users, one reserve in flight on each (8)
  --database URL    default: DATABASE_URL, else postgres@127.0.0.1:5432`;

const SEED_CONNECTIONS = 64;
const SMALL_MERGES = 20;
const GOAL_MS = 50;
/** Merges under load begin when the generator has warmed up. */
const WARMUP_MS = 2_500;

const PLAN_ID = "plan_bench";
const limit = {
  id: "lg_images",
  label: "Images",
  unit: "count",
  quota: 1e9,
  matches: [{ event: "image.*" }],
};
const CATALOG = {
  plans: [{
    id: PLAN_ID,
    name: "Bench",
    rank: 0,
    period: { type: "monthly", anchor: "calendar" },
    limits: [limit],
  }],
  packs: [{
    id: "cpk_bench",
    name: "Bench",
    kind: "generic",
    unit: "count",
    matches: [{ event: "video.*" }],
    items: [],
  }],
};

interface Options {
  readonly merges: number;
  readonly events: number;
  readonly seconds: number;
  readonly connections: number;
  readonly databaseUrl: string;
}

interface Pair {
  readonly from: string;
  readonly to: string;
}

interface Row {
  readonly name: string;
  readonly cells: readonly string[];
}

/** Milliseconds that a merge took; its history must be left to the background, or not. */
async function merge(client: Client, { from, to }: Pair, isLarge: boolean): Promise<number> {
  const start = performance.now();
  const report = await client.call("POST", "v1/customers/alias", { from, to });
  const ms = performance.now() - start;
  if (report.alreadyMerged || report.historyPending !== isLarge) {
    throw new Error(`An unexpected report: ${JSON.stringify(report)}`);
  }
  return ms;
}

/** Subscribes users with a grant and an event each. */
async function populate(client: Client, users: readonly string[]): Promise<void> {
  const queue = users.values();
  await Promise.all(Array.from({ length: SEED_CONNECTIONS }, async () => {
    for (const user of queue) {
      await client.call("POST", "v1/subscriptions", { userId: user, planId: PLAN_ID });
      await client.call("POST", "v1/credits/grant", { userId: user, packId: "cpk_bench", quantity: 100 });
      await client.call("POST", "v1/track", { userId: user, event: "other.x" });
    }
  }));
}

/** Repeats the one event that each user has, as the service has written it; events of nothing are in no counter. */
async function repeatEvents(databaseUrl: string, users: readonly string[], events: number): Promise<void> {
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} });
  try {
    for (const user of users) {
      await sql.unsafe(
        `insert into events select 'evt_bench' || e.user_key || '_' || n, e.user_key, e.realm, e.type, e.quantity,
           e.cost_cents, e.match_status, e.created_at_ms - n, e.metadata, e.reservation_id, e.reason, e.error_code,
           e.lines, e.uncovered, e.credits
         from events e join users u on u.key = e.user_key cross join generate_series(1, $2::int) n
         where u.id = $1`,
        [user, events - 1],
      );
    }
    await sql.unsafe("vacuum analyze events");
    await sql.unsafe("checkpoint").catch(() => {});
  } finally {
    await sql.end();
  }
}

async function bench(options: Options, cleanup: Cleanup): Promise<Row[]> {
  const { merges, events, seconds, connections } = options;
  const scratch = await makeScratch(options.databaseUrl, cleanup);
  const client = await startService(scratch.url, cleanup);
  await makeApp(client, CATALOG);
  const pairsOf = (name: string, count: number): Pair[] =>
    Array.from(
      { length: count },
      (_, place) => ({ from: `${name}-from-${place}`, to: `${name}-to-${place}` }),
    );
  const [small, quiet, loaded] = [
    pairsOf("small", SMALL_MERGES),
    pairsOf("quiet", merges),
    pairsOf("loaded", merges),
  ] as const;
  const large = [...quiet, ...loaded].flatMap(({ from, to }) => [from, to]);
  progress(`${USERS} other users`);
  await populate(client, Array.from({ length: USERS }, (_, place) => userId(place)));
  await populate(client, [...large, ...small.flatMap(({ from, to }) => [from, to])]);
  await client.call("GET", "v1/events?limit=1");
  progress(`${large.length} users with ${events} events each`);
  await repeatEvents(scratch.url, large, events);

  const rows: Row[] = [];
  const add = (name: string, ...cells: string[]) => {
    rows.push({ name, cells });
    progress(`${name}: ${cells.join(", ")}`);
  };
  const mergeAll = async (pairs: readonly Pair[], isLarge: boolean, pauseMs = 0) => {
    const times: number[] = [];
    for (const pair of pairs) {
      times.push(await merge(client, pair, isLarge));
      await sleep(pauseMs);
    }
    return times;
  };
  const running = { port: Number(new URL(client.base).port), authorization: `Bearer ${client.key}` };
  const scenario: Scenario = {
    contestant: "holdfast",
    calls: "reserve",
    users: "spread",
    paidBy: "plan",
    isHalf: false,
  };
  const load = async () => {
    const run = await measure(scenario, running, [], { connections, seconds, generator: "own" }, cleanup);
    if (run.load.firstFailure !== null) throw new Error(run.load.firstFailure);
    return run.load.first;
  };
  const moveHistory = async () => {
    const start = performance.now();
    const { historyRows } = await client.call("POST", "admin/v1/move-history", {});
    return `${historyRows} rows, ${Math.round(historyRows / (performance.now() - start) * 1000)} rows/s`;
  };

  add("merge, users with one event", ...timesOf(await mergeAll(small, false)));
  const alone = await mergeAll(quiet, true);
  const isMet = median(alone) < GOAL_MS;
  add(`merge, ${events} events each`, ...timesOf(alone), isMet ? "goal met" : `goal of ${GOAL_MS} ms missed`);
  await scratch.checkpoint();
  add("history move, alone", await moveHistory());
  await scratch.checkpoint();
  add("reserves of others, no merges", ...callsOf(await load()));
  const [calls, times] = await Promise.all([
    load(),
    sleep(WARMUP_MS).then(() => mergeAll(loaded, true, seconds * 1000 / merges / 2)),
  ]);
  add("reserves of others, during merges", ...callsOf(calls));
  add(`merge under load, ${events} events each`, ...timesOf(times));
  const [during, moved] = await Promise.all([load(), sleep(WARMUP_MS).then(moveHistory)]);
  add("reserves of others, during a history move", ...callsOf(during));
  add("history move under load", moved);
  return rows;
}

function median(times: readonly number[]): number {
  return [...times].sort((a, b) => a - b)[times.length >> 1] as number;
}

function timesOf(times: readonly number[]): string[] {
  const ms = (value: number) => `${value.toFixed(1)} ms`;
  return [
    `median ${ms(median(times))}`,
    `min ${ms(Math.min(...times))}`,
    `max ${ms(Math.max(...times))}`,
    `of ${times.length}`,
  ];
}

function callsOf({ requestsPerSecond, p50Ms, p99Ms, maxMs }: CallReport): string[] {
  return [
    `${Math.round(requestsPerSecond)}/s`,
    `p50 ${p50Ms.toFixed(2)} ms`,
    `p99 ${p99Ms.toFixed(2)} ms`,
    `max ${maxMs.toFixed(0)} ms`,
  ];
}

function progress(text: string): void {
  console.error(`bench: ${text}`);
}

function readOptions(args: string[]): Options | null {
  const string = { type: "string" } as const;
  const { values } = parseArgs({
    args,
    options: {
      merges: string,
      events: string,
      seconds: string,
      connections: string,
      database: string,
      help: { type: "boolean" },
    },
  });
  if (values.help === true) return null;
  const number = (name: string, text: string | undefined, otherwise: number, max: number): number => {
    const value = text === undefined ? otherwise : Number(text);
    if (!Number.isInteger(value) || value < 1 || value > max) {
      throw new Error(`--${name} is a whole number from 1 to ${max}`);
    }
    return value;
  };
  return {
    merges: number("merges", values.merges, 7, 100),
    events: Math.max(600, number("events", values.events, 100_000, 10_000_000)),
    seconds: number("seconds", values.seconds, 10, 600),
    connections: number("connections", values.connections, 8, 1024),
    databaseUrl: values.database ?? Deno.env.get("DATABASE_URL") ??
      "postgres://postgres@127.0.0.1:5432/postgres",
  };
}

async function main(args: string[]): Promise<number> {
  const options = readOptions(args);
  if (options === null) {
    console.log(USAGE);
    return 0;
  }
  const rows = await withCleanup((cleanup) => bench(options, cleanup));
  const width = Math.max(...rows.map(({ name }) => name.length));
  for (const { name, cells } of rows) {
    console.log([name.padEnd(width), ...cells.map((cell) => cell.padEnd(16))].join("  ").trimEnd());
  }
  return 0;
}

if (import.meta.main) {
  try {
    Deno.exit(await main(Deno.args));
  } catch (error) {
    console.error(`bench: ${messageOf(error)}`);
    Deno.exit(2);
  }
}
