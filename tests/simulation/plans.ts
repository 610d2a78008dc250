// What a run is made of: how bad, and how large, its world is; and what became known of it.

import type { SimTables } from "./database/tables.ts";
import type { Call } from "./history.ts";
import type { Note } from "./story.ts";
import type { Troubles } from "./troubles.ts";
import type { Violation } from "./watch.ts";

/** How bad a world is: now and then a quiet one, in which only the order of things differs. */
export const PLANS = [
  { message: 0, slow: 0.01, network: 0.01, troubleMs: 4_000, paceMs: 30 },
  { message: 0.002, slow: 0.02, network: 0.02, troubleMs: 1_000, paceMs: 60 },
  { message: 0.002, slow: 0.02, network: 0.02, troubleMs: 4_000, paceMs: 300 },
  { message: 0.01, slow: 0.05, network: 0.05, troubleMs: 500, paceMs: 60 },
];

/** How many nodes a world has by default. */
export const MEMBERS = [3, 2, 3, 1, 3, 2] as const;

/** How many workspaces have traffic, in as many cells, and how many beside them show changes of the registry. */
const TENANTS = [[5, 3], [1, 0], [2, 1], [5, 3]] as const;

/** The time within which all that was begun must end, once faults have stopped. Most of it ends within 30 s. */
export const CALM_MS = 120_000;

/** What befalls a database whose trouble another one has. */
export const CALM = { message: 0, slow: 0, network: 0 };

/** The names of the databases of a world, as in HOLDFAST_DATABASES. */
export const NAMES = ["eu1", "eu2"] as const;

/** How many workspaces a world has: at least one of each kind for each database, where there are several. */
export function countsOf(seed: number, databases: number): readonly [number, number] {
  const [count, canaries] = TENANTS[seed % TENANTS.length] as readonly [number, number];
  return databases === 1 ? [count, canaries] : [Math.max(count, databases), Math.max(canaries, databases)];
}

/** In half of the worlds with several databases, the place of the one that all trouble is of; null for worlds without it. */
export function sickPlaceOf(seed: number, databases: number): number | null {
  return databases === 1 || seed % 2 === 1 ? null : seed / 2 % databases;
}

/** What a run is made of. */
export interface RunOptions {
  readonly seed: number;
  readonly steps: number;
  /** Processes; left out: the seed says. */
  readonly nodes?: number | undefined;
  /** What goes wrong more or less often than else. */
  readonly troubles?: Troubles | undefined;
  /** Whether some pay by Stripe; left out: they do. */
  readonly stripe?: boolean | undefined;
  /** Whether users have parents; left out: they do. */
  readonly trees?: boolean | undefined;
  /** Whether members of an organisation call at once; left out: in one of four worlds with trees. */
  readonly crew?: boolean | undefined;
  /** Whether users have keys of their own; left out: they do. */
  readonly userKeys?: boolean | undefined;
  /** Whether clients send batches of events. Default true. */
  readonly batches?: boolean | undefined;
  /** Whether users of one workspace buy automatically; left out: in one of four worlds. */
  readonly topUps?: boolean | undefined;
  /** The share of workspaces whose limit groups have periods of their own. Default 1 in 4. */
  readonly windows?: number | undefined;
  /** The share of workspaces with rates, overage or included packs. Default 1 in 4. */
  readonly money?: number | undefined;
  /** Whether groups sell past their quotas. Default false. */
  readonly overage?: boolean | undefined;
  /** Databases among which the workspaces are spread, at most two. Default 1. */
  readonly databases?: number | undefined;
  /** The time within which everything that was begun must end, once faults have stopped. Default `CALM_MS`. */
  readonly calmMs?: number | undefined;
}

/** What a run was. */
export interface Outcome {
  readonly calls: readonly Call[];
  readonly notes: readonly Note[];
  readonly faults: ReadonlyMap<string, number>;
  /** What nodes counted of cells that changed hands and of calls that they passed on. */
  readonly moves: readonly Readonly<Record<string, number>>[];
  /** Messages of Stripe by type, and what came of their sendings. */
  readonly stripe: ReadonlyMap<string, number>;
  readonly virtualMs: number;
  /** How far the calendar went. */
  readonly calendarMs: number;
  readonly events: number;
  /** A hash of everything that happened. */
  readonly trace: string;
  readonly violation: Violation | null;
  /** The tables and the calendar when faults stopped; null where something was found before. */
  readonly tables: { readonly rows: SimTables; readonly atMs: number } | null;
}

/** Adds up counts by name. */
export function sumOf(counts: readonly ReadonlyMap<string, number>[]): ReadonlyMap<string, number> {
  const sum = new Map<string, number>();
  for (const [name, times] of counts.flatMap((each) => [...each])) {
    sum.set(name, (sum.get(name) ?? 0) + times);
  }
  return sum;
}
