// A whole service in this process, on a fresh store and a clock that tests set: routes are called without a port.

import { NO_STRIPE_KEYS } from "../../src/process/stripe_keys.ts";
import type { Database } from "../../src/storage/database.ts";
import type { Hono } from "hono";
import { Unavailable } from "../../actors/port.ts";
import { makeApp } from "../../routes/app.ts";
import catalog from "../../src/tenant/demo/catalog.json" with { type: "json" };
import type { Network } from "../../src/channel/network.ts";
import { tcpNetwork } from "../../src/channel/tcp.ts";
import type { IdSource } from "../../src/domain/values/ids.ts";
import type { Clock } from "../../src/process/clock.ts";
import type { Features } from "../../src/process/features.ts";
import { makeIdSource } from "../../src/process/id_source.ts";
import { PROCESS_LIMITS } from "../../src/process/limits.ts";
import { Service, type Serving } from "../../src/cluster/service.ts";
import type { Transport } from "../../src/webhooks/transport.ts";
import { assertDocumented } from "./documented.ts";
import { textOf } from "./event_stream.ts";
import { openTestStore, type TestStore } from "./test_store.ts";

export const ADMIN_TOKEN = "test-admin-token-0123456789";

// A restart makes the service pause before it takes the lease again; nothing in a test depends on how long.
(PROCESS_LIMITS as { reconnectMs: number }).reconnectMs = 1;

/** Everything on but the model server. */
export const TEST_FEATURES: Features = {
  privacySecret: "test-privacy-secret-0123456789",
  exportSecret: "test-export-secret-0123456789",
  publicUrl: null,
  modelServer: null,
  anthropicServer: null,
  upstreams: [],
  allowsPrivateWebhooks: false,
  stripe: NO_STRIPE_KEYS,
};

/** A clock that stands where a test put it. */
export class ManualClock implements Clock {
  #now: number;

  constructor(now = Date.UTC(2026, 0, 15, 12)) {
    this.#now = now;
  }

  now(): number {
    return this.#now;
  }

  set(now: number): void {
    this.#now = Math.max(this.#now, now);
  }

  advance(ms: number): void {
    this.#now += ms;
  }
}

/** An answer of the API. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // deno-lint-ignore no-explicit-any -- tests look at whatever came back
  readonly body: any;
}

/** An app under test with its keys. */
export interface TestApp {
  readonly appId: string;
  readonly workspaceId: string;
  readonly identitySecret: string;
  readonly secretLive: string;
  readonly secretTest: string;
  readonly publicLive: string;
  readonly publicTest: string;
  /** Calls `/api/v1` with the live secret key unless told otherwise. */
  call(method: string, path: string, body?: unknown, options?: CallOptions): Promise<Answer>;
}

export interface CallOptions {
  readonly key?: string;
  readonly headers?: Record<string, string>;
}

/** A service under test. */
export interface TestService {
  readonly store: TestStore;
  readonly clock: ManualClock;
  /** The process that answers HTTP. */
  readonly service: Service;
  readonly http: Hono;
  /** The parts of the process that decides: the same one, unless a front passes every call on. */
  serving(): Serving;
  /** What every statement outside of the appending session runs by; a test may replace it for a time. */
  readonly statements: Statements;
  admin(method: string, path: string, body?: unknown): Promise<Answer>;
  /** Makes a workspace (with these members) and an app with a catalog. */
  newApp(document?: unknown, workspace?: Record<string, unknown>): Promise<TestApp>;
  /** Lets sweeps pass over the apps made until now, which takes milliseconds off for each: their tests have ended. */
  retireApps(): void;
  /** Ends the term as a crash would, without drain, and waits until a new one serves. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

/** What statements of a service run by. */
export type Statements = { -readonly [Name in "query" | "transaction"]: Database[Name] };

/** A database whose statements and transactions, of every connection, go through functions that a test may replace. */
function tapped(database: Database): { readonly database: Database; readonly statements: Statements } {
  const { query, transaction } = database;
  const statements: Statements = { query, transaction };
  const through = (pool: Database): Database => ({
    ...pool,
    query: (text, params) =>
      statements.query === query ? pool.query(text, params) : statements.query(text, params),
    transaction: (work) =>
      statements.transaction === transaction ? pool.transaction(work) : statements.transaction(work),
    named: (name, options) => through(pool.named(name, options)),
  });
  return { database: through(database), statements };
}

/** Whether every request of a test goes through a front, which owns no cell and passes each call on. */
function isThroughFront(store: TestStore): boolean {
  return store.database.kind === "postgres" && (Deno.env.get("HOLDFAST_TEST_FRONT") ?? "") !== "";
}

/** Attempts that lead nowhere and are never answered: messages stay pending, and no test calls a customer's address. */
const NOWHERE: Transport = {
  attempt: (_attempt, signal) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => reject(new Unavailable("The attempt was ended")));
    }),
  close() {},
};

/**
 * Starts a service on a fresh store. Its webhooks reach no server, unless they may reach this machine: then real
 * attempts are made. With HOLDFAST_TEST_FRONT set, on a server, it is two processes: an owner of
 * every cell, and a front that takes the requests.
 */
export async function startTestService(
  clock = new ManualClock(),
  features: Partial<Features> = {},
  ids = makeIdSource(clock),
): Promise<TestService> {
  const store = await openTestStore();
  const { database, statements } = tapped(store.database);
  const transport = features.allowsPrivateWebhooks === true ? {} : { transport: NOWHERE };
  const parts = {
    store: { ...store, database },
    clock,
    ids,
    features: { ...TEST_FEATURES, ...features },
    ...transport,
  };
  const owner = await startProcess(parts);
  const front = isThroughFront(store) ? await startProcess({ ...parts, share: 0 }) : null;
  const { service, http } = front ?? owner;
  const serving = () => {
    if (owner.service.serving === null) throw new Error("The service does not serve");
    return owner.service.serving;
  };
  const realms = () => owner.service.serving?.registry.realms ?? new Map<number, unknown>();
  const retired = new Set<number>();
  const admin = (method: string, path: string, body?: unknown) => {
    // A restart has loaded them again.
    if (path === "/sweep") retired.forEach((realm) => realms().delete(realm));
    return send(http, method, `/api/admin/v1${path}`, body, { key: ADMIN_TOKEN });
  };
  return {
    store,
    clock,
    service,
    http,
    serving,
    statements,
    admin,
    retireApps: () => {
      for (const realm of realms().keys()) retired.add(realm);
    },
    newApp: (document = catalog, workspace = {}) => newApp(http, admin, document, workspace),
    restart: async () => {
      serving().term.fail(new Error("A test ended the term"));
      await owner.service.ready();
    },
    close: async () => {
      await front?.service.stop();
      await owner.service.stop();
      await store.close();
    },
  };
}

/** What a process of a test is made of. */
export interface ProcessParts {
  readonly store: TestStore;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly features: Features;
  /** 0 for a front. */
  readonly share?: number;
  /** How members reach each other; by default TCP on this machine, and nothing on the embedded store. */
  readonly network?: Network | null;
  /** What makes the attempts to deliver messages; by default a thread. */
  readonly transport?: Transport;
}

/** Starts one process on a store, and waits until it serves. */
export async function startProcess(
  { store, clock, ids, features, share = 1, network = networkOf(store), transport }: ProcessParts,
): Promise<{ readonly service: Service; readonly http: Hono }> {
  const service = new Service(store.database, ids, clock, features, {
    network,
    share,
    ...transport === undefined ? {} : { transport },
  });
  const http = makeApp(service, ADMIN_TOKEN);
  void service.start();
  await service.ready();
  return { service, http };
}

function networkOf({ database }: TestStore): Network | null {
  return database.kind === "postgres" ? tcpNetwork("127.0.0.1:0") : null;
}

/** Makes a workspace and an app with a catalog. */
export async function newApp(
  http: Hono,
  admin: TestService["admin"],
  document: unknown,
  workspace: Record<string, unknown>,
): Promise<TestApp> {
  const made = await admin("POST", "/workspaces", { name: "Test", testOperationCap: null, ...workspace });
  if (made.status !== 200) throw new Error(JSON.stringify(made.body));
  const { workspaceId } = made.body.data;
  const created = (await admin("POST", "/apps", { name: "Test", workspaceId })).body.data;
  const applied = await admin("PUT", `/apps/${created.appId}/catalog`, document);
  if (applied.status !== 200) throw new Error(JSON.stringify(applied.body));
  const key = (keyClass: string, mode: string): string =>
    created.keys.find((row: { class: string; mode: string }) => row.class === keyClass && row.mode === mode)
      .key;
  const secretLive = key("secret", "live");
  return {
    appId: created.appId,
    workspaceId,
    identitySecret: created.identitySecret,
    secretLive,
    secretTest: key("secret", "test"),
    publicLive: key("public", "live"),
    publicTest: key("public", "test"),
    call: (method, path, body, options = {}) =>
      send(http, method, `/api/v1${path}`, body, { key: secretLive, ...options }),
  };
}

/** Sends a request to an app in this process. */
export async function send(
  http: Hono,
  method: string,
  path: string,
  body: unknown,
  { key, headers = {} }: CallOptions,
): Promise<Answer> {
  const init: RequestInit = { method, headers: { ...headers } };
  if (key !== undefined) Object.assign(init.headers as object, { authorization: `Bearer ${key}` });
  if (body !== undefined) {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    init.body = text;
    Object.assign(init.headers as object, {
      "content-type": "application/json",
      "content-length": String(new TextEncoder().encode(text).byteLength),
    });
  }
  const response = await http.fetch(new Request(`http://service.test${path}`, init));
  const text = await textOf(response);
  const isJson = response.headers.get("content-type")?.startsWith("application/json") ?? false;
  const answer = {
    status: response.status,
    headers: response.headers,
    body: isJson ? JSON.parse(text) : text,
  };
  assertDocumented(method, path, answer.status, answer.body);
  return answer;
}
