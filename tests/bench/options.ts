// The command line of the benchmark.
import { parseArgs } from "node:util";
import type { Generator } from "./schedule.ts";

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
  /** How many members serve: with 2, the table of members in place of the contestants. */
  members: 1 | 2;
}

const USAGE = `deno task bench [options]
  --json             one JSON document in place of the table
  --seconds N        measured seconds a scenario and round (10)
  --rounds N         repeat all scenarios, interleaved, and take medians (1)
  --connections N    kept-alive connections, one request in flight on each (64)
  --members 2        two members on one database: rates, and processor time by member and thread
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
  if (unknown !== undefined) throw new Error(`--only: ${unknown} is none of ${names.join(", ")}`);
  const generator = values.generator ?? "own";
  if (generator !== "own" && generator !== "autocannon") throw new Error("--generator is own or autocannon");
  const members = positive("members", values.members, 1, 2) as Options["members"];
  return {
    generator,
    members,
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
      calls: { type: "string" },
      generator: { type: "string" },
      database: { type: "string" },
    },
  });
  return values;
}

function positive(name: string, text: string | undefined, otherwise: number, max: number): number {
  if (text === undefined) return otherwise;
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > max) {
    throw new Error(`--${name} is a whole number from 1 to ${max}`);
  }
  return value;
}
