// The command line of the benchmark.
import { parseArgs } from "node:util";
import type { Spread } from "./load_plan.ts";
import type { Generator } from "./schedule.ts";
import type { Load, SustainedOptions } from "./sustained.ts";

/** What the user asked for. */
export interface Options {
  json: boolean;
  seconds: number;
  rounds: number;
  connections: number;
  only: string[] | null;
  /** Names of calls as the table has them; null for all. */
  calls: string[] | null;
  generator: Generator;
  databaseUrl: string;
  /** How many nodes serve: with 2, the table of nodes in place of the contestants. */
  members: 1 | 2;
  /** Whether the table of processes with several databases is made in place of the contestants. */
  databases: boolean;
  /** Whether the table of contestants is made. */
  table: boolean;
  /** Sustained runs; null for none. */
  sustained: SustainedOptions | null;
  /** Whether the service runs on the embedded store; no server is needed then. */
  isEmbedded: boolean;
  /** Users whose bytes of log are counted. */
  logUsers: Spread[];
}

const USAGE = `deno task bench [options]
  --json             one JSON document in place of the table
  --seconds N        measured seconds a scenario and round (10)
  --rounds N         repeat all scenarios, interleaved, and take medians (1)
  --connections N    kept-alive connections, one request in flight on each (64)
  --members 2        two members on one database: rates, and processor time by member and thread
  --databases        processes with 1, 2 and 4 databases: processor time and memory
  --sustained N      only sustained runs, of N seconds each (60 with everything else), beside --log-bytes if asked
  --users NAME       spread or hot: sustained runs and bytes of log of these alone
  --load NAME        full or half: sustained runs of this load alone
  --rate N           requests a second of half loads, in place of half of the full load
  --embedded         only sustained runs, of the service on the embedded store and of the echo
  --log-bytes        only the bytes of write-ahead log for each call
  --generator NAME   own (strict, the default) or autocannon
  --calls name,...   only these, as the table names them: reserve, "reserve + commit", can-use, usage, ...
  --only name,...    some of: `;

/** Reads the options, or throws an Error for the user; `null` when help was asked for and printed. */
export function readOptions(args: string[], names: string[]): Options | null {
  const values = parse(args);
  if (values.help === true) {
    console.log(
      USAGE + names.join(", ") + "\n  --database URL     default: DATABASE_URL, else postgres@127.0.0.1:5432",
    );
    return null;
  }
  const only = values.only?.split(",").map((name) => name.trim()) ?? null;
  const unknown = only?.find((name) => !names.includes(name));
  if (unknown !== undefined) throw new Error(`--only: ${unknown} is not one of ${names.join(", ")}`);
  const generator = values.generator ?? "own";
  if (generator !== "own" && generator !== "autocannon") throw new Error("--generator is own or autocannon");
  // Its library counts no seconds and does not know when a call was due.
  const isOwn = generator === "own";
  if (!isOwn && (values.sustained !== undefined || values.embedded)) {
    throw new Error("--sustained needs our own generator");
  }
  const isEmbedded = values.embedded === true;
  const isAll = values.sustained === undefined && values["log-bytes"] !== true && !isEmbedded;
  if (isEmbedded && values["log-bytes"] === true) throw new Error("the embedded store's log is not counted");
  const isWhole = isAll && values.calls === undefined && isOwn;
  const users = oneOf<Spread>("users", values.users, ["spread", "hot"]);
  const members = positive("members", values.members, 1, 2) as Options["members"];
  return {
    generator,
    members,
    databases: values.databases === true,
    table: isAll,
    isEmbedded,
    sustained: values.sustained === undefined && !isWhole && !isEmbedded ? null : {
      seconds: between("sustained", values.sustained, 60, 20, 3600),
      users,
      loads: oneOf<Load>("load", values.load, ["full", "half"]),
      rate: values.rate === undefined ? null : positive("rate", values.rate, 1, 1_000_000),
    },
    logUsers: values["log-bytes"] === true || isWhole ? users : [],
    json: values.json === true,
    seconds: positive("seconds", values.seconds, 10, 600),
    rounds: positive("rounds", values.rounds, 1, 20),
    connections: positive("connections", values.connections, 64, 1024),
    only,
    calls: values.calls?.split(",").map((name) => name.trim()) ?? null,
    databaseUrl: values.database ?? Deno.env.get("DATABASE_URL") ??
      "postgres://postgres@127.0.0.1:5432/postgres",
  };
}

function parse(args: string[]) {
  const { values } = parseArgs({
    args,
    options: {
      json: { type: "boolean" },
      help: { type: "boolean", short: "h" },
      seconds: { type: "string" },
      rounds: { type: "string" },
      connections: { type: "string" },
      only: { type: "string" },
      members: { type: "string" },
      databases: { type: "boolean" },
      sustained: { type: "string" },
      users: { type: "string" },
      load: { type: "string" },
      rate: { type: "string" },
      embedded: { type: "boolean" },
      "log-bytes": { type: "boolean" },
      calls: { type: "string" },
      generator: { type: "string" },
      database: { type: "string" },
    },
  });
  return values;
}

function positive(name: string, text: string | undefined, otherwise: number, max: number): number {
  return between(name, text, otherwise, 1, max);
}

function between(
  name: string,
  text: string | undefined,
  otherwise: number,
  min: number,
  max: number,
): number {
  if (text === undefined) return otherwise;
  const value = Number(text);
  if (!Number.isInteger(value) || value < min || value > max) {
    throw new Error(`--${name} is a whole number from ${min} to ${max}`);
  }
  return value;
}

/** The chosen one, or all. */
function oneOf<Name extends string>(option: string, text: string | undefined, names: Name[]): Name[] {
  if (text === undefined) return names;
  const name = names.find((each) => each === text);
  if (name === undefined) throw new Error(`--${option} is ${names.join(" or ")}`);
  return [name];
}
