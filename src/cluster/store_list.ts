// Opens the databases of a service with several, gives a new database its number, and checks that every name of the list
// leads to the same database as before. Each database is opened by itself: one that cannot be reached, or has another schema,
// does not keep the others from serving.
//
// The database with number 0 assigns all numbers. In a new list number 0 goes to the database that has workspaces, or else to
// the first name. To assign a number, every database must be readable: a database from an old backup does not know the
// newest numbers, and the others do.

import { MIGRATIONS } from "../../sql/migrations.ts";
import { Unavailable } from "../../actors/port.ts";
import { inTurn } from "../process/in_turn.ts";
import { messageOf } from "../process/log.ts";
import { rest, within } from "../process/rest.ts";
import { ConfigError } from "../process/settings.ts";
import type { Database, ExpectedDatabase } from "../storage/database.ts";
import { migrate } from "../storage/migrate.ts";
import {
  addStores,
  becomeStore,
  giveNumber,
  readStoreFacts,
  type StoreFacts,
  type StoreRow,
  takeNumber,
} from "../storage/nodes/store_numbers.ts";
import { hasReplayed, isInRecovery, promote, readPosition } from "../storage/nodes/standby.ts";
import { probeServer } from "../storage/server_probe.ts";
import { SplitRefused } from "../storage/stores/split_store.ts";

/** How long a database may take to return its number and its id. */
const OPEN_MS = 10_000;
/** How far a standby may be behind when a split begins. Calls of the workspaces that move get 503 for that long. */
const FOLLOW_MS = 5_000;
/** How long a standby may take to become a primary, in seconds; less than it may take to answer. */
const PROMOTE_S = 8;
/** The name of the sessions that open and check. */
const SESSION = "holdfast";

/** The database is still a standby of another one. A split makes it a store of its own. */
export class StillStandby extends Unavailable {}

/** A database of the list. */
export interface ListedStore {
  readonly name: string;
  readonly database: Database;
  /** What each new connection is held against; set when the database was checked. */
  readonly expected: ExpectedDatabase;
}

/** The databases of a service. */
export class StoreList {
  readonly stores: readonly ListedStore[];
  readonly #migrated = new Set<ListedStore>();
  /** The databases that were checked. */
  readonly #checked = new Map<ListedStore, StoreRow>();
  /** Every database that one of them knows, by number. */
  readonly #known = new Map<number, StoreRow>();

  readonly #prepare: (database: Database) => Promise<unknown>;

  /** @param prepare probes and migrates a database, once */
  constructor(stores: readonly ListedStore[], prepare = probeAndMigrate) {
    this.stores = stores;
    this.#prepare = prepare;
  }

  /** The names of all in alphabetical order. */
  get names(): string {
    return this.stores.map(({ name }) => name).toSorted().join(",");
  }

  /**
   * Opens a database before it is served: migrates it, gives it a number where it has none, and checks its identity.
   *
   * @throws ConfigError for a list with a fault, which it names
   * @throws Error if the database cannot be reached, or has the schema of another program
   */
  async open(store: ListedStore): Promise<void> {
    const read = await this.#adopted(store, await this.#read(store));
    const { own, known } = read.own !== null ? read : await inTurn(this, () => this.#number(store));
    if (own === null) throw new Error("The database has no number");
    this.#check(store, own, known);
    this.#checked.set(store, own);
    store.expected.clusterId = own.clusterId;
    for (const row of known) {
      if (row.state === "open" || !this.#known.has(row.number)) this.#known.set(row.number, row);
    }
    const inform = (each: ListedStore) =>
      onFresh(each, (database) => addStores(database, [...this.#known.values()]));
    // The others need not answer: they receive the rows when they are opened again.
    for (const other of this.#checked.keys()) if (other !== store) inform(other).catch(() => {});
    await inform(store);
  }

  async #read(store: ListedStore): Promise<OpenedFacts> {
    const isStandby = await onFresh(store, isInRecovery);
    if (!isStandby && !this.#migrated.has(store)) {
      await this.#prepare(store.database);
      this.#migrated.add(store);
    }
    return { ...await onFresh(store, readStoreFacts), isStandby };
  }

  /**
   * Plans the store that a split makes of a standby: assigns its number and the cluster id that it will have.
   *
   * @throws Unavailable if its database, or the one with number 0, cannot be read
   * @throws SplitRefused with the reason why the standby cannot become a store
   */
  async plan(from: string, to: string): Promise<StoreRow> {
    const source = this.stores.find(({ name }) => name === from) as ListedStore;
    const store = this.stores.find(({ name }) => name === to);
    if (store === undefined) throw new SplitRefused(`HOLDFAST_DATABASES lacks "${to}"`);
    const { known, isStandby, clusterId } = await this.#read(store);
    const begun = known.find(({ name, state }) => name === to && state !== "planned");
    if (begun !== undefined) return begun;
    if (!isStandby || clusterId !== source.expected.clusterId) {
      throw new SplitRefused(`"${to}" is not a standby of "${from}"`);
    }
    if (!await follows(store, source)) throw new SplitRefused(`"${to}" has not caught up with "${from}"`);
    const first = [...this.#checked].find(([, { number }]) => number === 0)?.[0];
    if (first === undefined) throw new Unavailable("The database with number 0 cannot be read");
    const asks = { name: to, clusterId: crypto.randomUUID(), state: "planned" } as const;
    const all = await onFresh(
      first,
      (database) => giveNumber(database, asks, [...this.#known.values()]),
    );
    const row = all?.find(({ name }) => name === to);
    if (row === undefined) throw new SplitRefused(`"${to}" is the name of another database of this service`);
    await onFresh(source, (database) => addStores(database, [row]));
    return row;
  }

  /** Makes a released copy a store of its own; returns the facts of the database after that. */
  async #adopted(store: ListedStore, facts: OpenedFacts): Promise<OpenedFacts> {
    const { name } = store;
    const { own, known, isStandby } = facts;
    const planned = known.find((row) => row.name === name && row.state !== "open");
    if (own !== null && own.name === name || planned === undefined && !isStandby) return facts;
    const from = own?.name ?? "another database";
    if (planned?.state !== "released") {
      if (isStandby) {
        throw new StillStandby(`"${name}" is a standby of "${from}", which a split can make a database`);
      }
      throw new StillStandby(
        `"${name}" was promoted before "${from}" had handed its cells over: make it anew as a standby of "${from}"`,
      );
    }
    if (!isStandby) {
      return { ...await onFresh(store, (database) => becomeStore(database, planned)), isStandby };
    }
    await onFresh(store, (database) => promote(database, PROMOTE_S))
      .catch(async (error) => {
        // Another process may have promoted it.
        if (!await onFresh(store, isInRecovery)) return;
        throw new StillStandby(
          `"${name}" has all of its cells: promote it (pg_promote: ${messageOf(error)})`,
        );
      });
    return await this.#adopted(store, await this.#read(store));
  }

  /** Gives a database its number. */
  async #number(store: ListedStore): Promise<OpenedFacts> {
    const read = await Promise.all(this.stores.map(async (each): Promise<Read> => {
      try {
        return { store: each, facts: await this.#read(each) };
      } catch (error) {
        const wait = `"${store.name}" gets its number when every database of the list can be read`;
        throw new Unavailable(`${wait}; "${each.name}" cannot: ${messageOf(error)}`);
      }
    }));
    // A standby is a copy of another database, so it has no number of its own.
    const all = read.filter(({ facts: { isStandby } }) => !isStandby);
    const { facts } = all.find((each) => each.store === store) as Read;
    if (facts.own !== null) return facts;
    const numbered = all.find(({ facts: { own } }) => own?.number === 0);
    const first = numbered ?? firstOf(all);
    if (first.store !== store && facts.isUsed) {
      throw fault(`"${store.name}" has workspaces of its own; a database that is added must be new`);
    }
    const known = all.flatMap(({ facts: { known } }) => known);
    // Number 0 is for the database that assigns all others.
    if (numbered === undefined) await give(first.store, first, known);
    return await give(first.store, { store, facts }, known);
  }

  #check(store: ListedStore, own: StoreRow, known: readonly StoreRow[]): void {
    const { name } = store;
    if (own.name !== name) throw fault(`the URL of "${name}" leads to the database "${own.name}"`);
    const before = store.expected.clusterId;
    if (before !== null && before !== own.clusterId) {
      throw fault(`the URL of "${name}" leads to another database than before`);
    }
    for (const other of known) {
      const listed = this.stores.find((each) => each.name === other.name);
      if (listed === undefined) throw fault(`the list lacks "${other.name}", a database of this service`);
      const checked = this.#checked.get(listed);
      if (checked !== undefined && checked.clusterId !== other.clusterId) {
        throw fault(`"${other.name}" is another database than "${name}" was served with`);
      }
    }
    const twin = [...this.#checked].find(([each, row]) =>
      each !== store && (row.clusterId === own.clusterId || row.number === own.number)
    );
    if (twin !== undefined) {
      throw fault(`"${twin[0].name}" and "${name}" are one database, or one is a copy of the other`);
    }
  }
}

/** Has no time limit: a migration may take long. */
async function probeAndMigrate(database: Database): Promise<unknown> {
  await probeServer(database);
  return await migrate(database, MIGRATIONS);
}

/**
 * Records a number in the database with number 0, then in the numbered database. After a crash between the two, a repeat gets
 * the same number.
 */
async function give(
  from: ListedStore,
  { store, facts }: Read,
  known: readonly StoreRow[],
): Promise<OpenedFacts> {
  const { name } = store;
  const asks = { name, clusterId: facts.clusterId, state: "open" } as const;
  const all = await onFresh(from, (database) => giveNumber(database, asks, known));
  if (all === null) {
    throw fault(`"${name}" is the name of another database, or a copy of one, of this service`);
  }
  return { ...await onFresh(store, (database) => takeNumber(database, all)), isStandby: false };
}

/**
 * Runs work on a new connection, for a bounded time: an old connection may be dead without a sign, and a frozen server must
 * not prevent further attempts.
 */
async function onFresh<T>(store: ListedStore, work: (database: Database) => Promise<T>): Promise<T> {
  const database = store.database.named(SESSION, { connections: 1 });
  try {
    const done = work(database);
    if (await within(OPEN_MS, done)) return await done;
    throw new Unavailable("The database did not answer in time");
  } finally {
    database.close().catch(() => {});
  }
}

/** The facts of a database that was opened. */
interface OpenedFacts extends StoreFacts {
  /** Whether it follows another server. */
  readonly isStandby: boolean;
}

interface Read {
  readonly store: ListedStore;
  readonly facts: OpenedFacts;
}

/** Waits until a standby has replayed all that its primary has now; false if that takes too long. */
async function follows(standby: ListedStore, primary: ListedStore): Promise<boolean> {
  const position = await onFresh(primary, readPosition);
  const until = performance.now() + FOLLOW_MS;
  while (performance.now() < until) {
    if (await onFresh(standby, (database) => hasReplayed(database, position))) return true;
    await rest(50);
  }
  return false;
}

/** Returns the database that gets number 0, in a list without numbers. */
function firstOf(all: readonly Read[]): Read {
  const [numbered] = all.flatMap(({ facts: { known } }) => known);
  if (numbered !== undefined) {
    throw fault(`the database with number 0 is missing, which "${numbered.name}" knew`);
  }
  const [one, other] = all.filter(({ facts: { isUsed } }) => isUsed);
  if (one !== undefined && other !== undefined) {
    const names = `"${one.store.name}" and "${other.store.name}"`;
    throw fault(`${names} both have workspaces from before; only one database of a list may`);
  }
  return one ?? all.toSorted((a, b) => a.store.name < b.store.name ? -1 : 1)[0] as Read;
}

function fault(what: string): ConfigError {
  return new ConfigError(`Cannot start: HOLDFAST_DATABASES: ${what}`);
}
