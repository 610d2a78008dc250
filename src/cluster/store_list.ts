// The databases of a service with several: opens each one, gives a new one its number, and checks that every name leads to
// the database that it led to before. Each is opened and checked apart, so that one that cannot be reached, or has another
// schema, keeps no other from serving.
//
// The database with number 0 keeps the numbers of all. A list in which none has a number begins with the one that has
// workspaces, else with the first name; then every database must be readable.

import { MIGRATIONS } from "../../sql/migrations.ts";
import { Unavailable } from "../../actors/port.ts";
import { inTurn } from "../process/in_turn.ts";
import { messageOf } from "../process/log.ts";
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
    const tell = ({ database }: ListedStore) => addStores(database, [...this.#known.values()]);
    // The others need not answer: they know it when they are opened again.
    for (const other of this.#checked.keys()) if (other !== store) tell(other).catch(() => {});
    await tell(store);
  }

  async #read(store: ListedStore): Promise<StoreFacts> {
    const { database } = store;
    if (!this.#migrated.has(store)) {
      await probe(database);
      await migrate(database, MIGRATIONS);
      this.#migrated.add(store);
    }
    return await readStoreFacts(database);
  }

  /** Gives a database its number. */
  async #number(store: ListedStore): Promise<StoreFacts> {
    const all = await Promise.all(this.stores.map(async (each) => ({
      store: each,
      facts: await this.#read(each).catch((error: unknown) => messageOf(error)),
    })));
    const readable = all.flatMap(({ store, facts }) => typeof facts === "string" ? [] : [{ store, facts }]);
    const { facts } = readable.find((each) => each.store === store) ?? {};
    if (facts === undefined) throw new Unavailable("The database could not answer");
    if (facts.own !== null) return facts;
    const numbered = readable.find(({ facts: { own } }) => own?.number === 0);
    const first = numbered ?? firstOf(readable, all.length, store);
    if (first.store !== store && facts.isUsed) {
      throw fault(`"${store.name}" has workspaces of its own; a database that is added must be new`);
    }
    // Number 0 is for the database that gives out all others.
    if (numbered === undefined) await give(first.store, first);
    return await give(first.store, { store, facts });
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
async function give(from: ListedStore, { store, facts }: Read): Promise<StoreFacts> {
  const { name, database } = store;
  const all = await giveNumber(from.database, { name, clusterId: facts.clusterId });
  if (all === null) {
    throw fault(`"${name}" is the name of another database, or a copy of one, of this service`);
  }
  return await takeNumber(database, all);
}

interface Read {
  readonly store: ListedStore;
  readonly facts: StoreFacts;
}

/** The database that gets number 0 where none has it. */
function firstOf(readable: readonly Read[], count: number, asks: ListedStore): Read {
  if (readable.length < count || readable.some(({ facts: { own } }) => own !== null)) {
    throw new Unavailable(`"${asks.name}" gets its number when the database with number 0 can be read`);
  }
  const [one, other] = readable.filter(({ facts: { isUsed } }) => isUsed);
  if (one !== undefined && other !== undefined) {
    const names = `"${one.store.name}" and "${other.store.name}"`;
    throw fault(`${names} both have workspaces from before; only one database of a list may`);
  }
  return one ?? readable.toSorted((a, b) => a.store.name < b.store.name ? -1 : 1)[0] as Read;
}

function fault(what: string): ConfigError {
  return new ConfigError(`Cannot start: HOLDFAST_DATABASES: ${what}`);
}
