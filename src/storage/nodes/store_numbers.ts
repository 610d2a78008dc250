// The rows of stores: which databases a service has, and the number of each. Each store numbers its realms and users within
// a range of its own, so the number in an id always leads to the same store. The store with number 0 assigns the numbers of
// the others, each in one transaction; no transaction spans two stores.

import type { Database, Session } from "../database.ts";

type Reader = Pick<Session, "query">;

/** The most stores of a service. */
const STORES_MAX = 64;

/** How many realms and users a store can number. The largest realm is an int4, the largest user key a safe integer. */
export const REALMS_PER_STORE = 2 ** 25;
export const KEYS_PER_STORE = 2 ** 47;

/** A database of the service. */
export interface StoreRow {
  readonly number: number;
  readonly name: string;
  readonly clusterId: string;
  /** Whether it serves. A store made by a split is first planned, then released by the store that it is split from. */
  readonly state: "planned" | "released" | "open";
}

/** The rows of a database about itself and about the others of its service. */
export interface StoreFacts {
  readonly clusterId: string;
  /** Null for a database that was never one of several. */
  readonly own: StoreRow | null;
  readonly known: readonly StoreRow[];
  /** Whether it has workspaces or users. */
  readonly isUsed: boolean;
}

/** Reads the rows of a database about itself and the others. */
export async function readStoreFacts(reader: Reader): Promise<StoreFacts> {
  const known = await reader.query<StoreRow>(
    `select number, name, cluster_id as "clusterId", state from stores order by number`,
  );
  const [row] = await reader.query<{ clusterId: string; isUsed: boolean }>(
    `select cluster_id as "clusterId",
       exists (select 1 from workspaces) or exists (select 1 from users) as "isUsed" from registry`,
  );
  const { clusterId, isUsed } = row as { clusterId: string; isUsed: boolean };
  return { clusterId, isUsed, known, own: known.find((store) => store.clusterId === clusterId) ?? null };
}

/**
 * Assigns a number, in the database that has number 0. A database that has a number gets the same one again.
 *
 * @param known the rows of all databases of the list; this database may be an old backup and lack some
 * @returns every database with a number; null where the name belongs to another one, or all numbers are used
 */
export function giveNumber(
  database: Pick<Database, "transaction">,
  { name, clusterId, state }: Omit<StoreRow, "number">,
  known: readonly StoreRow[],
): Promise<readonly StoreRow[] | null> {
  return database.transaction(async (session) => {
    await session.query("lock table stores in share row exclusive mode");
    await addStores(session, known);
    const all = (await readStoreFacts(session)).known;
    const given = all.find((store) => store.clusterId === clusterId);
    if (given !== undefined) return given.name === name ? all : null;
    // A store that is split off has no identity before it has its number, so a repeat is known by the name.
    if (state === "planned" && all.some((store) => store.name === name && store.state !== "open")) return all;
    const number = Math.max(-1, ...all.map(({ number }) => number)) + 1;
    if (number >= STORES_MAX || all.some((store) => store.name === name)) return null;
    const own = { number, name, clusterId, state };
    await addStores(session, [own]);
    return [...all, own];
  });
}

/** Writes the numbers of all databases into a new one, once, and starts its user keys at the range of its own number. */
export async function takeNumber(
  database: Pick<Database, "transaction">,
  all: readonly StoreRow[],
): Promise<StoreFacts> {
  return await database.transaction(async (session) => {
    await session.query("lock table stores in share row exclusive mode");
    if ((await readStoreFacts(session)).own === null) {
      await addStores(session, all);
      const number = (await readStoreFacts(session)).own?.number ?? 0;
      // A database with users gets number 0, and continues its own keys.
      const first = number * KEYS_PER_STORE + 1;
      if (number > 0) await session.query("select setval('user_keys', $1::bigint, false)", [first]);
    }
    return await readStoreFacts(session);
  });
}

/** Adds the stores that a database lacks, and marks those that are open. */
export async function addStores(session: Reader, stores: readonly StoreRow[]): Promise<void> {
  for (const { number, name, clusterId, state } of stores) {
    await session.query(
      `insert into stores (number, name, cluster_id, state) values ($1::int, $2, $3, $4) on conflict do nothing`,
      [number, name, clusterId, state === "open" ? state : "planned"],
    );
    if (state !== "open") continue;
    await session.query(
      "update stores set state = 'open' where number = $1::int and cluster_id = $2 and state <> 'open'",
      [number, clusterId],
    );
  }
}

/**
 * Makes a released copy of another store a store of its own, with its own cluster id and range of numbers. Its journal and
 * its rows of nodes belong to the other store and are removed: changes of the cells that moved were drained into the tables
 * before the hand-over.
 */
export async function becomeStore(
  database: Pick<Database, "transaction">,
  { number, clusterId }: StoreRow,
): Promise<StoreFacts> {
  return await database.transaction(async (session) => {
    await session.query("lock table stores in share row exclusive mode");
    const before = await readStoreFacts(session);
    const isReleased = before.known.some((row) => row.number === number && row.state === "released");
    if (before.clusterId === clusterId || !isReleased) return before;
    await session.query("update registry set cluster_id = $1, version = version + 1", [clusterId]);
    await session.query("update stores set state = 'open' where number = $1::int", [number]);
    await session.query("delete from journal");
    await session.query("delete from members");
    await session.query("update cells set term = null where store <> $1::int", [number]);
    await session.query("select setval('user_keys', $1::bigint, false)", [number * KEYS_PER_STORE + 1]);
    return await readStoreFacts(session);
  });
}
