// Services on several databases in this process, as one program has them. A test takes a database away, gives it back, and
// changes what its list says.

import type { Hono } from "hono";
import { Unavailable } from "../../actors/port.ts";
import { makeApp } from "../../routes/app.ts";
import { tcpNetwork } from "../../src/channel/tcp.ts";
import { Service } from "../../src/cluster/service.ts";
import { StoreList } from "../../src/cluster/store_list.ts";
import { Stores } from "../../src/cluster/stores.ts";
import { makeIdSource } from "../../src/process/id_source.ts";
import type { Features } from "../../src/process/features.ts";
import type { Database, ExpectedDatabase } from "../../src/storage/database.ts";
import {
  ADMIN_TOKEN,
  ManualClock,
  newApp,
  send,
  TEST_FEATURES,
  type TestApp,
} from "../support/test_service.ts";
import { OPERATORS } from "../routes/console_support.ts";
import { openTestStore, type TestStore } from "../support/test_store.ts";

const AWAY = "The database is away";

/** A database of a test, which can be taken away. */
export interface SwitchedDatabase {
  readonly store: TestStore;
  readonly database: Database;
  isAway: boolean;
}

/** A fresh database with an identity of its own: those of tests are copies of one. */
export async function openSwitched(): Promise<SwitchedDatabase> {
  const store = await openTestStore();
  await store.database.query("update registry set cluster_id = gen_random_uuid()::text");
  const switched: { isAway: boolean } = { isAway: false };
  const guard = <T>(work: () => Promise<T>): Promise<T> =>
    switched.isAway ? Promise.reject(new Unavailable(AWAY)) : work();
  const through = (database: Database): Database => ({
    ...database,
    query: (text, params) => guard(() => database.query(text, params)),
    transaction: (work) => guard(() => database.transaction(work)),
    pin: (onClose) => guard(() => database.pin(onClose)),
    named: (name, options) => through(database.named(name, options)),
  });
  return Object.assign(switched, { store, database: through(store.database) });
}

/** The list of some databases. */
export function listOf(databases: Readonly<Record<string, SwitchedDatabase>>): StoreList {
  return new StoreList(
    Object.entries(databases).map(([name, { database }]) => {
      const expected: ExpectedDatabase = { clusterId: null };
      return { name, database, expected };
    }),
  );
}

/** What of a process a test chooses. */
interface ProcessOptions {
  readonly features?: Partial<Features>;
  /** Databases that are there; by default fresh ones. */
  readonly databases?: Readonly<Record<string, SwitchedDatabase>>;
  /** Whether databases that are there are closed with the process; by default another one closes them. */
  readonly ownsDatabases?: true;
  /** 0 for a front. */
  readonly share?: number;
  /** False: the start does not wait until the process is ready. */
  readonly isReady?: false;
}

/** A process on several databases. */
export class StoresProcess implements AsyncDisposable {
  readonly databases: Readonly<Record<string, SwitchedDatabase>>;
  readonly clock = new ManualClock();
  readonly stores: Stores;
  readonly http: Hono;
  /** Whether its databases are closed with it: those of another process are not. */
  readonly #ownsDatabases: boolean;

  private constructor(
    databases: Readonly<Record<string, SwitchedDatabase>>,
    { features = {}, share = 1, databases: others, ownsDatabases }: ProcessOptions,
  ) {
    this.databases = databases;
    this.#ownsDatabases = others === undefined || ownsDatabases === true;
    const list = listOf(databases);
    const services: Service[] = [];
    for (const store of list.stores) {
      services.push(
        new Service(store.database, makeIdSource(this.clock), this.clock, { ...TEST_FEATURES, ...features }, {
          share,
          network: store.database.kind === "postgres" ? tcpNetwork("127.0.0.1:0") : null,
          adminToken: ADMIN_TOKEN,
          store: {
            name: store.name,
            names: list.names,
            beside: services[0] ?? null,
            open: () => list.open(store),
            plan: (to) => list.plan(store.name, to),
            endsProcess: () => false,
          },
        }),
      );
    }
    this.stores = new Stores(services);
    this.http = makeApp(this.stores, ADMIN_TOKEN, {
      operators: OPERATORS,
      isSecure: false,
      supportSeesPrompts: true,
      agentGrants: 100,
    });
  }

  /** Starts a process on databases with these names. */
  static start(...names: string[]): Promise<StoresProcess> {
    return StoresProcess.startWith({}, ...names);
  }

  /** Starts a process on databases that are there, and closes them with it. */
  static on(databases: Readonly<Record<string, SwitchedDatabase>>): Promise<StoresProcess> {
    return StoresProcess.startWith({ databases, ownsDatabases: true });
  }

  /** Starts a process with some options. */
  static async startWith(options: ProcessOptions, ...names: string[]): Promise<StoresProcess> {
    const fresh = names.map(async (name) => [name, await openSwitched()] as const);
    const databases = options.databases ?? Object.fromEntries(await Promise.all(fresh));
    const process = new StoresProcess(databases, options);
    void process.stores.start();
    if (options.isReady !== false) await process.stores.ready();
    return process;
  }

  admin(method: string, path: string, body?: unknown) {
    return send(this.http, method, `/api/admin/v1${path}`, body, { key: ADMIN_TOKEN });
  }

  /** Makes an app in a workspace of its own, on a database. */
  app(store: string, catalog: unknown): Promise<TestApp> {
    return newApp(this.http, (...call) => this.admin(...call), catalog, { store });
  }

  /** The service of a database. */
  of(name: string): Service {
    return this.stores.services.find(({ storeName }) => storeName === name) as Service;
  }

  /** Takes a database away, as when its server is gone: its term ends, and no other begins. */
  takeAway(name: string): void {
    (this.databases[name] as SwitchedDatabase).isAway = true;
    this.endTerm(name);
  }

  /** Ends the term of a database; another one begins if it can. */
  endTerm(name: string): void {
    this.of(name).serving?.term.fail(new Unavailable(AWAY));
  }

  async giveBack(name: string): Promise<void> {
    (this.databases[name] as SwitchedDatabase).isAway = false;
    await this.of(name).ready();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stores.stop();
    if (!this.#ownsDatabases) return;
    await Promise.all(Object.values(this.databases).map(({ store }) => store.close()));
  }
}
