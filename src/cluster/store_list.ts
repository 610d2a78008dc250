// The databases of a service with several: opens each one, gives a new one its number, and checks that every name leads to
// the database that it led to before. Each is opened and checked apart, so that one that cannot be reached, or has another
// schema, keeps no other from serving.
//
// The database with number 0 keeps the numbers of all. A list in which none has a number begins with the one that has
// workspaces, else with the first name. While a number is given out every database must be readable: what any of them
// knows counts, so that a database from an old backup gives no number out twice.

import { MIGRATIONS } from "../../sql/migrations.ts";
import { Unavailable } from "../../actors/port.ts";
import { inTurn } from "../process/in_turn.ts";
import { messageOf } from "../process/log.ts";
import { within } from "../process/rest.ts";
import { ConfigError } from "../process/settings.ts";
import { type Database, type ExpectedDatabase, probe } from "../storage/database.ts";
import { migrate } from "../storage/migrate.ts";
import {
  addStores,
  giveNumber,
  readStoreFacts,
  type StoreFacts,
  type StoreRow,
  takeNumber,
} from "../storage/nodes/store_numbers.ts";

/** How long a database may take to say who it is. */
const OPEN_MS = 10_000;
/** The name of sessions that ask. */
const SESSION = "holdfast";

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

  constructor(stores: readonly ListedStore[]) {
    this.stores = stores;
  }

  /** The names of all in alphabetical order. */
  get names(): string {
    return this.stores.map(({ name }) => name).toSorted().join(",");
  }

  /**
   * Opens a database before it is served: migrates it, gives it a number where it has none, and checks who it is.
   *
   * @throws ConfigError that names what is wrong with the list
   * @throws Error where the database cannot be reached, or has a schema of another program
   */
  async open(store: ListedStore): Promise<void> {
    const read = await this.#read(store);
    const { own, known } = read.own !== null ? read : await inTurn(this, () => this.#number(store));
    if (own === null) throw new Error("The database has no number");
    this.#check(store, own, known);
    this.#checked.set(store, own);
    store.expected.clusterId = own.clusterId;
    for (const row of known) this.#known.set(row.number, row);
    const tell = (each: ListedStore) =>
      onFresh(each, (database) => addStores(database, [...this.#known.values()]));
    // The others need not answer: they know it when they are opened again.
    for (const other of this.#checked.keys()) if (other !== store) tell(other).catch(() => {});
    await tell(store);
  }

  async #read(store: ListedStore): Promise<StoreFacts> {
    if (!this.#migrated.has(store)) {
      await probe(store.database);
      // It may take as long as it takes.
      await migrate(store.database, MIGRATIONS);
      this.#migrated.add(store);
    }
    return await onFresh(store, readStoreFacts);
  }

  /** Gives a database its number. */
  async #number(store: ListedStore): Promise<StoreFacts> {
    const all = await Promise.all(this.stores.map(async (each): Promise<Read> => {
      try {
        return { store: each, facts: await this.#read(each) };
      } catch (error) {
        const wait = `"${store.name}" gets its number when every database of the list can be read`;
        throw new Unavailable(`${wait}; "${each.name}" cannot: ${messageOf(error)}`);
      }
    }));
    const { facts } = all.find((each) => each.store === store) as Read;
    if (facts.own !== null) return facts;
    const numbered = all.find(({ facts: { own } }) => own?.number === 0);
    const first = numbered ?? firstOf(all);
    if (first.store !== store && facts.isUsed) {
      throw fault(`"${store.name}" has workspaces of its own; a database that is added must be new`);
    }
    const known = all.flatMap(({ facts: { known } }) => known);
    // Number 0 is for the database that gives out all others.
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

/** Gives a database its number, in the database with number 0 and then in its own. A crash between the two changes nothing. */
async function give(
  from: ListedStore,
  { store, facts }: Read,
  known: readonly StoreRow[],
): Promise<StoreFacts> {
  const { name } = store;
  const asks = { name, clusterId: facts.clusterId };
  const all = await onFresh(from, (database) => giveNumber(database, asks, known));
  if (all === null) {
    throw fault(`"${name}" is the name of another database, or a copy of one, of this service`);
  }
  return await onFresh(store, (database) => takeNumber(database, all));
}

/**
 * Runs work on a connection of its own, for a bounded time: a connection of before may be dead without a word, and a server
 * that froze must not keep this database from being tried again.
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

interface Read {
  readonly store: ListedStore;
  readonly facts: StoreFacts;
}

/** The database that gets number 0 where none has it. */
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
