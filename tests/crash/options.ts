// The command line of the crash campaign.

import { parseArgs } from "node:util";
import type { Need } from "./faults.ts";
import { FAULTS, FIRST_START, FIRST_START_TEXT, type StoreName } from "./campaign.ts";

/** What the user asked for. */
export interface Options {
  readonly stores: readonly StoreName[];
  readonly rounds: number;
  readonly minutes: number;
  readonly kinds: ReadonlySet<string>;
  readonly seed: number;
  readonly server: string | null;
  /** Undefined: as the campaign chooses. */
  readonly members: number | undefined;
  readonly databases: number;
  readonly isJson: boolean;
}

const STORES: readonly StoreName[] = ["embedded", "postgres"];
const ROUNDS = 20;
const SEED_MAX = 2 ** 32 - 1;

/** Where a kind can happen, after its text. */
const WHERE: Readonly<Record<Need, string>> = {
  nothing: "",
  embedded: " (embedded)",
  server: " (postgres)",
  cable: " (postgres)",
  nodes: " (postgres, several processes)",
  channel: " (postgres, several processes)",
  "own server": " (postgres, a server of our own)",
};

function usage(): string {
  const kinds = [
    [FIRST_START, FIRST_START_TEXT],
    ...FAULTS.map(({ kind, text, needs }) => [kind, text + WHERE[needs]]),
  ];
  return `deno task crash [options]

Kills the real processes, their database sessions and their server, again and again under load, and compares every answer
that a client got with what the service answers afterwards and with its tables. Exit status 0 when all of it agrees,
1 with the story when it does not, 2 when it could not be tried.

  --store NAME     embedded or postgres (default: one after the other)
  --rounds N       faults on each store (${ROUNDS})
  --minutes M      end earlier, after the round that passes this time
  --kinds a,b,...  only these kinds
  --members N      processes that serve at a time, on a server (default: 1 to 3, from store to store)
  --databases N    databases of the processes, on one server: a fault of one must leave the others alone (1)
  --seed N         the order of kinds and the moments; how processes interleave stays the machine's (default: random)
  --server URL     a PostgreSQL server for a scratch database (default: a server of our own in a temporary folder)
  --json           one JSON document in place of the summary

Kinds:
${kinds.map(([kind = "", text]) => `  ${kind.padEnd(12)} ${text}`).join("\n")}`;
}

/** Reads the options, or throws an Error for the user; null when help was asked for and printed. */
export function readOptions(args: string[]): Options | null {
  const { values } = parseArgs({
    args,
    options: {
      help: { type: "boolean", short: "h" },
      json: { type: "boolean" },
      store: { type: "string" },
      rounds: { type: "string" },
      minutes: { type: "string" },
      kinds: { type: "string" },
      seed: { type: "string" },
      members: { type: "string" },
      databases: { type: "string" },
      server: { type: "string" },
    },
  });
  if (values.help === true) {
    console.log(usage());
    return null;
  }
  const known = [...FAULTS.map(({ kind }) => kind), FIRST_START];
  const kinds = values.kinds?.split(",").map((kind) => kind.trim()) ?? known;
  const unknown = kinds.find((kind) => !known.includes(kind));
  if (unknown !== undefined) throw new Error(`--kinds: ${unknown} is not one of ${known.join(", ")}`);
  const databases = whole("databases", values.databases, 1, 1, 4);
  // The embedded store is always alone.
  const named = values.store ?? (databases > 1 ? "postgres" : undefined);
  const stores = named === undefined ? STORES : STORES.filter((name) => name === named);
  if (databases > 1 && named !== "postgres") throw new Error("--databases needs --store postgres");
  if (stores.length === 0) throw new Error(`--store is one of ${STORES.join(", ")}`);
  return {
    stores,
    rounds: whole("rounds", values.rounds, ROUNDS, 1, 1_000_000),
    minutes: whole("minutes", values.minutes, Infinity, 1, 100_000),
    kinds: new Set(kinds),
    seed: whole("seed", values.seed, Math.floor(Math.random() * SEED_MAX), 0, SEED_MAX),
    server: values.server ?? null,
    members: values.members === undefined ? undefined : whole("members", values.members, 1, 1, 8),
    databases,
    isJson: values.json === true,
  };
}

function whole(name: string, text: string | undefined, otherwise: number, min: number, max: number): number {
  if (text === undefined) return otherwise;
  const value = Number(text);
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw new Error(`--${name} is a whole number from ${min} to ${max}`);
}
