// What the tests of privacy share: an app that logs prompts, looks into the tables, and a stop on the way of a
// statement to the store, at which a test can look around.

import assert from "node:assert/strict";
import type { Param, Session } from "../../src/storage/database.ts";
import type { Answer, TestApp, TestService } from "../support/test_service.ts";
import { CREDIT_CATALOG, Customer } from "./credits_support.ts";
import { dataOf, serviceOfFile } from "./support.ts";

/** Plans and packs of the credit tests in an app that logs prompts, with other settings as told. */
export function catalogWith(settings: Record<string, unknown> = {}): object {
  return { ...CREDIT_CATALOG, settings: { ...CREDIT_CATALOG.settings, promptLogging: true, ...settings } };
}

/** A customer "u" on the plan, of a new app with such a catalog. */
export async function newLogged(
  service: TestService,
  { mode = "live", settings = {} }: { mode?: "live" | "test"; settings?: Record<string, unknown> } = {},
): Promise<Customer> {
  const app = await service.newApp(catalogWith(settings));
  const customer = new Customer(app, "u", mode === "live" ? app.secretLive : app.secretTest);
  await customer.post("/subscriptions", { planId: "plan_pro" });
  return customer;
}

/** Another user of the same app and mode, on the plan. */
export async function another(customer: Customer, userId: string): Promise<Customer> {
  const other = new Customer(customer.app, userId, customer.key);
  await other.post("/subscriptions", { planId: "plan_pro" });
  return other;
}

/** A call with the key of a customer and a distinct id in place of its user. */
export function askOf(customer: Customer, path: string, body: object): Promise<Answer> {
  return customer.app.call("POST", path, body, { key: customer.key });
}

/** Opts a distinct id out; a scope of undefined is left to the service. */
export async function optOut(customer: Customer, distinctId: string, scope?: string | null): Promise<void> {
  assert.deepEqual(await dataOf(askOf(customer, "/opt-out", { distinctId, scope })), {});
}

/** Opts a distinct id back in. */
export async function optIn(customer: Customer, distinctId: string, scope?: string | null): Promise<void> {
  assert.deepEqual(await dataOf(askOf(customer, "/opt-in", { distinctId, scope })), {});
}

/** The scopes that a distinct id has opted out of, by the API. */
export async function optedOutOf({ app, key }: Customer, distinctId: string): Promise<string[]> {
  const scopes = ["analytics", "ai_personalization", "prompt_logging"];
  const id = encodeURIComponent(distinctId);
  const answers = await Promise.all(scopes.map(async (scope) => {
    const path = `/opted-out?distinctId=${id}&scope=${scope}`;
    const { optedOut } = await dataOf(app.call("GET", path, undefined, { key }));
    assert.equal(typeof optedOut, "boolean");
    return optedOut as boolean;
  }));
  return scopes.filter((_, index) => answers[index]);
}

/** Asks for an erasure; answers the job. */
export async function deletePerson(customer: Customer, distinctId: string): Promise<string> {
  const { jobId, ...rest } = await dataOf(askOf(customer, "/delete-person", { distinctId }));
  assert.match(jobId, /^job_/);
  assert.deepEqual(rest, {});
  return jobId;
}

/** The status of a job. */
export function statusOf({ app, key }: Customer, jobId: string) {
  return dataOf(app.call("GET", `/deletion-status?jobId=${jobId}`, undefined, { key }));
}

/** Runs every sweep to its end; answers the counts. */
export function sweep(service: TestService) {
  return dataOf(service.admin("POST", "/sweep"));
}

/** Erases a person to the end. */
export async function erase(service: TestService, customer: Customer, distinctId: string): Promise<void> {
  const jobId = await deletePerson(customer, distinctId);
  await sweep(service);
  assert.equal((await statusOf(customer, jobId)).status, "completed");
}

/** The feed of a customer's app and mode. */
export async function feedOf({ app, key }: Customer, query = "") {
  const { events } = await dataOf(app.call("GET", `/events?limit=100${query}`, undefined, { key }));
  // deno-lint-ignore no-explicit-any -- tests look at whatever came back
  return events as any[];
}

/** Rows of the tables, when everything decided is in them. */
export async function rowsOf<Row = Record<string, unknown>>(
  service: TestService,
  sql: string,
  params: readonly Param[] = [],
): Promise<Row[]> {
  await service.serving().term.flush();
  return [...await service.store.database.query<Row>(sql, params)];
}

/** The realm of a customer. */
export async function realmOf(service: TestService, { app, key }: Customer): Promise<number> {
  const mode = key === app.secretLive ? "live" : "test";
  const rows = await service.store.database.query<{ realm: number }>(
    "select realm from realms where app_id = $1 and mode = $2",
    [app.appId, mode],
  );
  return rows[0]?.realm as number;
}

/** The consent entries of a customer's app and mode, oldest first: the id named, action and scope. */
export async function entriesOf(service: TestService, customer: Customer) {
  const rows = await rowsOf<{ distinct_id: string | null; action: string; scope: string }>(
    service,
    "select * from consents where realm = $1::int order by id",
    [await realmOf(service, customer)],
  );
  return rows.map(({ distinct_id: id, action, scope }) => [id, action, scope]);
}

interface Table {
  readonly name: string;
  /** Whether it has a page, or partitions. One without has no rows: a statement on it is planned for nothing. */
  readonly isFilled: boolean;
}

async function tablesOf({ store }: TestService): Promise<Table[]> {
  const tables = await store.database.query<Table>(
    `select relname as name, relkind = 'p' or pg_relation_size(oid) > 0 as "isFilled" from pg_class
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') order by name`,
  );
  assert.ok(tables.length > 20, "there are tables");
  return tables;
}

/** Every row of every table as text, sorted, without tables that are named. */
export async function dumpOf(
  service: TestService,
  without: readonly string[] = [],
): Promise<Record<string, string[]>> {
  const tables = (await tablesOf(service)).filter(({ name }) => !without.includes(name));
  const parts = tables.filter(({ isFilled }) => isFilled)
    .map(({ name }) => `select '${name}' as name, t::text as row from "${name}" t`);
  const rows = await service.store.database.query<{ name: string; row: string }>(
    `${parts.join(" union all ")} order by name, row`,
  );
  const dump: Record<string, string[]> = Object.fromEntries(tables.map(({ name }) => [name, []]));
  for (const { name, row } of rows) dump[name]?.push(row);
  return dump;
}

/** The tables whose rows hold a text anywhere, with how many do; nothing is flushed first. */
export async function tracesOf(service: TestService, text: string): Promise<Record<string, number>> {
  const found: Record<string, number> = {};
  for (const [table, rows] of Object.entries(await dumpOf(service))) {
    const count = rows.filter((row) => row.includes(text)).length;
    if (count > 0) found[table] = count;
  }
  return found;
}

/** A place on the way to the store at which statements wait. */
interface Stop {
  /** Resolves when the first statement has come here. */
  readonly reached: Promise<void>;
  /** Lets it pass. */
  go(): void;
}

/** Ends a transaction that holds the statement at which a test stops. */
class Stopped extends Error {}

/**
 * Stops a statement of a form before it reaches the store: the first one after some that pass. A transaction waits before it
 * begins, since the embedded store runs one at a time.
 */
export function stopAt(service: TestService, pattern: RegExp, passing = 0): Stop {
  const database = service.statements;
  const { query, transaction } = database;
  const reached = Promise.withResolvers<void>();
  const going = Promise.withResolvers<void>();
  const isHere = (text: string) => pattern.test(text) && passing-- === 0;
  const stop = () => {
    Object.assign(database, { query, transaction });
    reached.resolve();
    return going.promise;
  };
  const change = {
    query: async <Row>(text: string, params: readonly Param[] = []) => {
      if (isHere(text)) await stop();
      return await query<Row>(text, params);
    },
    transaction: async <T>(work: (session: Session) => Promise<T>) => {
      try {
        return await transaction((session) =>
          work({
            ...session,
            query: (text, params) =>
              isHere(text) ? Promise.reject(new Stopped()) : session.query(text, params),
          })
        );
      } catch (error) {
        if (!(error instanceof Stopped)) throw error;
        await stop();
        return await transaction(work);
      }
    },
  };
  Object.assign(database, change);
  return { reached: reached.promise, go: () => going.resolve() };
}

/** Stops the next erasure before its job begins: its call looks for open jobs first, and then the runner does. */
export function stopQueued(service: TestService): Stop {
  return stopAt(service, /from erasure_jobs where status in/, 1);
}

/** A new app with the catalog above, and a webhook in each mode for every message. */
export async function newApp(service: TestService): Promise<TestApp> {
  const app = await service.newApp(catalogWith());
  for (const mode of ["live", "test"]) {
    const webhook = { url: "https://webhook.test/", mode, events: ["*"] };
    await dataOf(service.admin("POST", `/apps/${app.appId}/webhooks`, webhook));
  }
  return app;
}

/** A part of every id, note and text of the user that is erased: nothing else says it. */
export const MARK = "zebra-7f3a";

/** What a user who did everything holds: ids that name parts of it, and the answers of its idempotent calls. */
export interface Zebra {
  readonly customer: Customer;
  /** An open, a committed, a released and an expired hold. */
  readonly reservationIds: readonly string[];
  readonly eventId: string;
  readonly balanceId: string;
  /** Idempotent calls that were made: path, body and key. */
  readonly calls: readonly (readonly [path: string, body: object, key: string])[];
}

/**
 * A user of the app's test mode with rows in every table: usage, credits, logs, a subscription, aliases in metering
 * and people, captured events, opt-outs, messages of webhooks. MARK is the canonical id; `-old`, `-older` and `-batch` are aliases of it,
 * `-device` is another id of its person with usage of its own.
 */
export async function makeZebra(app: TestApp): Promise<Zebra> {
  const customer = new Customer(app, MARK, app.secretTest);
  const calls: [string, object, string][] = [];
  const once = (path: string, body: object) => {
    calls.push([path, body, `once-${calls.length}`]);
    const headers = { "idempotency-key": `once-${calls.length - 1}` };
    return dataOf(app.call("POST", path, body, { key: customer.key, headers }));
  };
  const note = `a note of ${MARK}`;
  const properties = { name: MARK };
  await customer.post("/subscriptions", { planId: "plan_pro", provider: MARK, externalId: MARK });
  await customer.ask("DELETE", "/subscriptions", { reason: note });
  await once("/subscriptions", { userId: MARK, planId: "plan_pro" });
  const metadata = { who: MARK, deep: [{ [MARK]: 1 }] };
  const expired = await customer.hold("image.x", { prompt: note, metadata, ttlSeconds: 10 });
  await customer.pass(60);
  const balanceId = await customer.fund("cpk_wallet", 50, { notes: note, externalRef: MARK });
  const revoked = await customer.fund("cpk_first", 5, { notes: note });
  await customer.post("/credits/revoke", { balanceId: revoked, reason: note });
  const open = await customer.hold("image.x", { prompt: note, metadata, ttlSeconds: 86_400 });
  const committed = (await once("/reserve", { userId: MARK, event: "image.x", prompt: note })).reservationId;
  const { eventId } = await once("/commit", { reservationId: committed, response: note });
  const released = await customer.hold("other", { prompt: note });
  await customer.post("/release", { reservationId: released, reason: note, errorCode: MARK, response: note });
  await once("/track", { userId: MARK, event: `image.${MARK}`, prompt: note, response: note, metadata });
  await customer.ask("POST", "/track", { event: "image.premium", count: 99, prompt: note });
  for (const alias of ["old", "older", "batch", "device"]) {
    const userId = `${MARK}-${alias}`;
    await customer.post("/subscriptions", { userId, planId: "plan_pro" });
    await customer.post("/track", { userId, event: "image.x", prompt: note });
    await customer.post("/reserve", { userId, event: "image.x", prompt: note, ttlSeconds: 86_400 });
    await customer.fund("cpk_wallet", 5, { userId, externalRef: MARK });
    await customer.post("/reserve", { userId, event: `${MARK} refused` });
  }
  for (const distinctId of [MARK, `${MARK}-device`, `${MARK}-old`]) {
    await dataOf(askOf(customer, "/capture", { distinctId, event: "seen", properties }));
  }
  await dataOf(askOf(customer, "/capture", { event: "anonymous", properties: { page: 1 } }));
  await dataOf(askOf(customer, "/identify", { distinctId: MARK, properties, propertiesOnce: { [MARK]: 1 } }));
  await dataOf(askOf(customer, "/alias", { distinctId: MARK, alias: `${MARK}-device` }));
  await once("/customers/alias", { from: `${MARK}-older`, to: `${MARK}-old` });
  await once("/customers/alias", { from: `${MARK}-old`, to: MARK });
  await once("/customers/alias/batch", {
    pairs: [{ from: `${MARK}-batch`, to: MARK }, { from: 1, to: MARK }],
  });
  for (const userId of [MARK, `${MARK}-device`]) {
    await dataOf(app.call("POST", `/users/${userId}/keys`, { name: note }, { key: customer.key }));
  }
  await optOut(customer, MARK, "all");
  await optOut(customer, `${MARK}-device`, "prompt_logging");
  await dataOf(askOf(customer, "/capture", { distinctId: MARK, event: "silenced" }));
  return { customer, reservationIds: [open, committed, released, expired], eventId, balanceId, calls };
}

/** Every id of that user. */
export const ZEBRA_IDS = ["", "-old", "-older", "-batch", "-device"].map((end) => MARK + end);

/** Tables of apps and of the process: what is left of them when a test begins. */
const KEPT_TABLES = [
  "apps",
  // It cannot be emptied; its values of users are erased with them.
  "audit",
  "catalogs",
  "cells",
  "keys",
  "lease",
  "members",
  "migrations",
  "realms",
  "registry",
  "schema_migrations",
  "stripe_connections",
  "webhooks",
  "workspaces",
];

/**
 * A service of the file for tests that look at whole tables: each begins with none of the rows that others made of
 * users. To be called once, at the top of the file.
 */
export function emptiedServiceOfFile(): (work: (service: TestService) => Promise<void>) => Promise<void> {
  const service = serviceOfFile();
  return async (work) => {
    await service.serving().term.flush();
    // What the test before left in memory would otherwise come into the tables at any moment.
    await service.service.requestLog.write();
    const tables = (await tablesOf(service))
      .filter(({ name, isFilled }) => isFilled && !KEPT_TABLES.includes(name));
    // Quicker than truncation, which makes new files for every table and index.
    const deletes = tables.map(({ name }) => `delete from "${name}";`);
    await service.store.database.script(
      `begin; set local session_replication_role = replica; ${deletes.join(" ")} commit;`,
    );
    await service.restart();
    await work(service);
  };
}
