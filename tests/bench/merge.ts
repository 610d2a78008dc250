// What a merge of two large users costs, through the real service on PostgreSQL: first alone, then while other users
// reserve, who must not feel it. `deno task bench:merge` prints a table; whatever it made is undone at the end.
import postgres from "postgres";
import { parseArgs } from "node:util";
import { type CallReport, userId, USERS } from "./load_plan.ts";
import { Child, Cleanup, freePort, messageOf, ROOT, TEMP } from "./processes.ts";
import { measure, type Scenario } from "./schedule.ts";
import { makeScratch } from "./scratch.ts";

const USAGE = `deno task bench:merge [options]
  --merges N        merges alone, and as many under load (7)
  --events N        events of each user that is merged (100000)
  --seconds N       measured seconds of each load (10)
  --connections N   connections of other users, one reserve in flight on each (8)
  --database URL    default: DATABASE_URL, else postgres@127.0.0.1:5432`;

const READY_MS = 30_000;
const CALL_MS = 60_000;
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

/** A running service and how to call it. */
class Client {
  readonly base: string;
  readonly adminToken: string;
  key = "";

  constructor(base: string, adminToken: string) {
    this.base = base;
    this.adminToken = adminToken;
  }

  /** The `data` of an answer, or an error with what the service said. */
  // deno-lint-ignore no-explicit-any -- a benchmark looks at whatever came back
  async call(method: string, path: string, body?: object): Promise<any> {
    const token = path.startsWith("admin/") ? this.adminToken : this.key;
    const answer = await fetch(`${this.base}/api/${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(CALL_MS),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text.slice(0, 300)}`);
    return JSON.parse(text).data;
  }

  /** Milliseconds that a merge took; its history must be left to the background, or not. */
  async merge({ from, to }: Pair, isLarge: boolean): Promise<number> {
    const start = performance.now();
    const report = await this.call("POST", "v1/customers/alias", { from, to });
    const ms = performance.now() - start;
    if (report.alreadyMerged || report.historyPending !== isLarge) {
      throw new Error(`An unexpected report: ${JSON.stringify(report)}`);
    }
    return ms;
  }

  /** Subscribes users with a grant and an event each. */
  async populate(users: readonly string[]): Promise<void> {
    const queue = users.values();
    await Promise.all(Array.from({ length: SEED_CONNECTIONS }, async () => {
      for (const user of queue) {
        await this.call("POST", "v1/subscriptions", { userId: user, planId: PLAN_ID });
        await this.call("POST", "v1/credits/grant", { userId: user, packId: "cpk_bench", quantity: 100 });
        await this.call("POST", "v1/track", { userId: user, event: "other.x" });
      }
    }));
  }
}

async function startService(databaseUrl: string, cleanup: Cleanup): Promise<Client> {
  const folder = await Deno.makeTempDir({ dir: TEMP, prefix: "holdfast_bench_data_" });
  cleanup.add(`remove ${folder}`, () => Deno.remove(folder, { recursive: true }));
  const client = new Client(`http://127.0.0.1:${freePort()}`, crypto.randomUUID());
  const permissions = ["net=127.0.0.1,localhost", "env", "sys", "read", `write=${folder}`];
  const args = [
    "run",
    "--quiet",
    "--no-prompt",
    "--unstable-cron",
    ...permissions.map((name) => `--allow-${name}`),
  ];
  const child = Child.start(cleanup, "holdfast", "deno", [...args, new URL("src/main.ts", ROOT).pathname], {
    PORT: new URL(client.base).port,
    HOLDFAST_HOST: "127.0.0.1",
    DATABASE_URL: databaseUrl,
    HOLDFAST_ADMIN_TOKEN: client.adminToken,
    HOLDFAST_DATA_DIR: folder,
  });
  child.drainStdout();
  const deadline = Date.now() + READY_MS;
  while (!await isReady(client.base)) {
    if (child.ended || Date.now() > deadline) throw new Error(`The service did not start:\n${child.tail}`);
    await sleep(100);
  }
  const { workspaceId } = await client.call("POST", "admin/v1/workspaces", { name: "Bench" });
  const { appId, keys } = await client.call("POST", "admin/v1/apps", { name: "Bench", workspaceId });
  await client.call("PUT", `admin/v1/apps/${appId}/catalog`, CATALOG);
  client.key =
    keys.find((key: { class: string; mode: string }) => key.class === "secret" && key.mode === "live").key;
  return client;
}

async function isReady(base: string): Promise<boolean> {
  try {
    const answer = await fetch(`${base}/readyz`, { signal: AbortSignal.timeout(2000) });
    await answer.body?.cancel();
    return answer.ok;
  } catch {
    return false;
  }
}

/** Repeats the one event that each user has, as the service has written it; events of nothing are in no counter. */
async function repeatEvents(databaseUrl: string, users: readonly string[], events: number): Promise<void> {
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} });
  try {
    for (const user of users) {
      await sql.unsafe(
        `insert into events select 'evt_bench' || e.user_key || '_' || n, e.user_key, e.realm, e.type, e.quantity,
           e.cost_cents, e.match_status, e.created_at_ms - n, e.metadata, e.reservation_id, e.reason, e.error_code,
           e.lines, e.uncovered
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
  await client.populate(Array.from({ length: USERS }, (_, place) => userId(place)));
  await client.populate([...large, ...small.flatMap(({ from, to }) => [from, to])]);
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
      times.push(await client.merge(pair, isLarge));
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

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
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
  const cleanup = new Cleanup();
  const interrupted = async () => {
    progress("interrupted, cleaning up");
    await cleanup.run();
    Deno.exit(130);
  };
  Deno.addSignalListener("SIGINT", interrupted);
  Deno.addSignalListener("SIGTERM", interrupted);
  try {
    const rows = await bench(options, cleanup);
    const width = Math.max(...rows.map(({ name }) => name.length));
    for (const { name, cells } of rows) {
      console.log([name.padEnd(width), ...cells.map((cell) => cell.padEnd(16))].join("  ").trimEnd());
    }
    return 0;
  } finally {
    await cleanup.run();
  }
}

if (import.meta.main) {
  try {
    Deno.exit(await main(Deno.args));
  } catch (error) {
    console.error(`bench: ${messageOf(error)}`);
    Deno.exit(2);
  }
}
