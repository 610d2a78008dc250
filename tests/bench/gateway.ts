// What the gateway adds to a call of a model, through the real service on PostgreSQL: streams of a server that answers at
// once, asked directly and through the gateway, and the memory of streams that stay open. `deno task bench:gateway` prints
// a table; whatever it made is undone at the end.
import { parseArgs } from "node:util";
import { startService } from "./contestants/holdfast.ts";
import { SILENT } from "./gateway_model.ts";
import { Histogram } from "./histogram.ts";
import { bytes, find } from "./http_reader.ts";
import { Child, type Cleanup, messageOf, withCleanup } from "./processes.ts";
import { makeScratch } from "./scratch.ts";
import { Client, makeApp, sleep } from "./service.ts";

const USAGE = `deno task bench:gateway [options]
  --connections A,B  counts of connections, one stream in flight on each (1,16,64)
  --seconds N        measured seconds of each load, after one of warm-up (8)
  --streams N        streams that stay open while memory is read (2000)
  --database URL     default: DATABASE_URL, else postgres@127.0.0.1:5432`;

const WARMUP_MS = 1_000;
const START_MS = 60_000;
/** Memory is read when the engine has had time to collect what went before. */
const REST_MS = 10_000;
/** Streams that are opened at a time. */
const OPENING = 50;
const PLAN_ID = "plan_bench";
const CATALOG = {
  models: ["mini", SILENT].map((id) => ({
    id,
    modality: "text",
    amountMode: "per_token",
    inputCentsPerMillionTokens: 15,
    outputCentsPerMillionTokens: 60,
  })),
  plans: [{
    id: PLAN_ID,
    name: "Bench",
    rank: 0,
    period: { type: "monthly", anchor: "calendar" },
    limits: ["tokens", "cents"].map((unit) => ({
      id: `lg_${unit}`,
      label: unit,
      unit,
      quota: 1e12,
      matches: [{ event: "openai.*" }],
    })),
  }],
};

interface Options {
  readonly connections: readonly number[];
  readonly seconds: number;
  readonly streams: number;
  readonly databaseUrl: string;
}

/** Who is asked: the model server itself, or the gateway in front of it. */
interface Asked {
  readonly port: number;
  readonly path: string;
  readonly key: string;
}

/** What a load came to. */
interface Load {
  readonly first: Histogram;
  readonly requestsPerSecond: number;
}

const HEAD_END = bytes("\r\n\r\n");
const DONE = bytes("data: [DONE]");
const STATUS_OK = bytes("HTTP/1.1 200");
const BODY_END = bytes("0\r\n\r\n");

function requestOf({ port, path, key }: Asked, model: string, user: string): Uint8Array<ArrayBuffer> {
  const body = JSON.stringify({
    model,
    stream: true,
    max_completion_tokens: 100,
    messages: [{ role: "user", content: "Say something short." }],
    user,
  });
  return bytes(
    `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nauthorization: Bearer ${key}\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
}

/** One kept connection that reads streams. */
class StreamReader {
  readonly #connection: Deno.TcpConn;
  readonly #buffer = new Uint8Array(64 * 1024);
  #filled = 0;
  #bodyFrom = 0;

  constructor(connection: Deno.TcpConn) {
    this.#connection = connection;
  }

  async ask(request: Uint8Array): Promise<void> {
    this.#filled = 0;
    for (let written = 0; written < request.length;) {
      written += await this.#connection.write(request.subarray(written));
    }
  }

  /** Reads until the first byte of the body is there. */
  async first(): Promise<void> {
    let end = -1;
    while (end < 0 || this.#filled <= end + HEAD_END.length) {
      await this.#more();
      end = find(this.#buffer, HEAD_END, 0, this.#filled);
    }
    if (find(this.#buffer, STATUS_OK, 0, STATUS_OK.length) !== 0) throw new Error(this.#text());
    this.#bodyFrom = end + HEAD_END.length;
  }

  /** Reads the rest of the answer, which must be whole. */
  async rest(): Promise<void> {
    const isEnd = () => find(this.#buffer, BODY_END, this.#filled - BODY_END.length, this.#filled) >= 0;
    while (!isEnd()) await this.#more();
    if (find(this.#buffer, DONE, this.#bodyFrom, this.#filled) < 0) throw new Error(this.#text());
  }

  async #more(): Promise<void> {
    const got = await this.#connection.read(this.#buffer.subarray(this.#filled));
    if (got === null) throw new Error(`The connection ended: ${this.#text()}`);
    this.#filled += got;
  }

  #text(): string {
    return new TextDecoder().decode(this.#buffer.subarray(0, this.#filled)).slice(0, 400);
  }
}

async function connect(port: number): Promise<Deno.TcpConn> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port });
  connection.setNoDelay(true);
  return connection;
}

/** Reads streams one after another on each connection. */
async function load(asked: Asked, connections: number, seconds: number): Promise<Load> {
  const first = new Histogram();
  let [isMeasured, isOver, streams] = [false, false, 0];
  const running = Promise.all(Array.from({ length: connections }, async (_, place) => {
    using connection = await connect(asked.port);
    const reader = new StreamReader(connection);
    const request = requestOf(asked, "mini", userOf(place));
    while (!isOver) {
      const start = performance.now();
      await reader.ask(request);
      await reader.first();
      const firstUs = (performance.now() - start) * 1000;
      await reader.rest();
      if (!isMeasured) continue;
      first.record(firstUs);
      streams += 1;
    }
  }));
  // A connection that fails ends the run with its error; the timer alone would hide it.
  await Promise.race([running, sleep(WARMUP_MS)]);
  isMeasured = true;
  const start = performance.now();
  await Promise.race([running, sleep(seconds * 1000)]);
  isMeasured = false;
  const requestsPerSecond = streams / ((performance.now() - start) / 1000);
  isOver = true;
  await running;
  return { first, requestsPerSecond };
}

/** KiB that the service takes for each stream that stays open. */
async function memoryOf(client: Client, asked: Asked, streams: number, users: number): Promise<number> {
  await sleep(REST_MS);
  const before = await residentKib(client);
  const open: Deno.TcpConn[] = [];
  try {
    let next = 0;
    await Promise.all(Array.from({ length: Math.min(OPENING, streams) }, async () => {
      while (next < streams) {
        const place = next++;
        const connection = await connect(asked.port);
        open.push(connection);
        const reader = new StreamReader(connection);
        await reader.ask(requestOf(asked, SILENT, userOf(place % users)));
        await reader.first();
      }
    }));
    await sleep(REST_MS);
    return (await residentKib(client) - before) / streams;
  } finally {
    for (const connection of open) connection.close();
  }
}

async function residentKib({ child }: Client): Promise<number> {
  const { stdout } = await new Deno.Command("ps", { args: ["-o", "rss=", "-p", String(child.pid)] }).output();
  return Number(new TextDecoder().decode(stdout));
}

function userOf(place: number): string {
  return `user-${place}`;
}

async function bench(options: Options, cleanup: Cleanup): Promise<string[]> {
  const { connections, seconds, streams } = options;
  const model = Child.start(cleanup, "the model server", "deno", [
    ...["run", "--quiet", "--no-prompt", "--lock=tests/deno.lock", "--allow-net=127.0.0.1", "--allow-env"],
    new URL("gateway_model.ts", import.meta.url).pathname,
  ]);
  const { port } = JSON.parse(await model.firstLine(START_MS));
  const scratch = await makeScratch(options.databaseUrl, cleanup);
  const adminToken = crypto.randomUUID();
  const { base, child } = await startService({ databaseUrl: scratch.url, cleanup }, adminToken, {
    OPENAI_API_KEY: "sk-bench",
    OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1`,
  });
  const client = new Client(base, adminToken, child);
  await makeApp(client, CATALOG);
  const users = Math.max(...connections);
  for (let place = 0; place < users; place++) {
    await client.call("POST", "v1/subscriptions", { userId: userOf(place), planId: PLAN_ID });
  }
  const direct = { port, path: "/v1/chat/completions", key: "sk-bench" };
  const gateway = { port: Number(new URL(base).port), path: "/openai/v1/chat/completions", key: client.key };
  // Before the loads, whose garbage would be taken for streams.
  console.error(`bench: ${streams} streams stay open`);
  const kib = await memoryOf(client, gateway, streams, users);
  await sleep(REST_MS);
  const lines = ["connections  asked    first byte p50 ms  p99 ms  streams/s"];
  for (const count of connections) {
    for (const [name, asked] of Object.entries({ direct, gateway })) {
      console.error(`bench: ${count} connections, ${name}`);
      const { first, requestsPerSecond } = await load(asked, count, seconds);
      lines.push([
        String(count).padStart(11),
        name.padEnd(7),
        first.percentileMs(0.5).toFixed(2).padStart(17),
        first.percentileMs(0.99).toFixed(2).padStart(6),
        Math.round(requestsPerSecond).toString().padStart(9),
      ].join("  "));
    }
  }
  lines.push(`${streams} open streams: ${Math.round(kib)} KiB of the service each`);
  return lines;
}

function readOptions(args: string[]): Options | null {
  const string = { type: "string" } as const;
  const { values } = parseArgs({
    args,
    options: {
      connections: string,
      seconds: string,
      streams: string,
      database: string,
      help: { type: "boolean" },
    },
  });
  if (values.help === true) return null;
  const number = (name: string, text: string, max: number): number => {
    const value = Number(text);
    if (Number.isInteger(value) && value >= 1 && value <= max) return value;
    throw new Error(`--${name} takes whole numbers from 1 to ${max}`);
  };
  return {
    connections: (values.connections ?? "1,16,64").split(",").map((text) => number("connections", text, 512)),
    seconds: number("seconds", values.seconds ?? "8", 600),
    streams: number("streams", values.streams ?? "2000", 9_000),
    databaseUrl: values.database ?? Deno.env.get("DATABASE_URL") ??
      "postgres://postgres@127.0.0.1:5432/postgres",
  };
}

if (import.meta.main) {
  try {
    const options = readOptions(Deno.args);
    const lines = options === null ? [USAGE] : await withCleanup((cleanup) => bench(options, cleanup));
    console.log(lines.join("\n"));
    Deno.exit(0);
  } catch (error) {
    console.error(`bench: ${messageOf(error)}`);
    Deno.exit(2);
  }
}
