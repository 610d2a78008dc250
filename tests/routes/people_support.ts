// What the tests of people share: calls, the rows behind them, a search through every table, and exports.

import assert from "node:assert/strict";
import { type Answer, send, type TestApp, type TestService } from "../support/test_service.ts";
import { dataOf } from "./support.ts";

/** An analytics event as its row has it. */
export interface EventRow {
  readonly id: string;
  readonly realm: number;
  readonly person_id: string | null;
  readonly pseudonym: string | null;
  readonly event: string;
  readonly properties: string;
  readonly at_ms: number;
}

/** Captures an event, which must be accepted. */
export async function captured(app: TestApp, body: Record<string, unknown>, key = app.publicLive) {
  const data = await dataOf(app.call("POST", "/capture", { event: "page", ...body }, { key }));
  assert.deepEqual(data, { accepted: true });
}

/** Identifies an id; answers the person's id. */
export async function identified(
  app: TestApp,
  body: Record<string, unknown>,
  key = app.publicLive,
): Promise<{ personId: string; merged: boolean }> {
  const data = await dataOf(app.call("POST", "/identify", body, { key }));
  assert.deepEqual(Object.keys(data).sort(), ["merged", "personId"]);
  assert.match(data.personId, /^pid_[0-9a-v]{20}$/);
  return data;
}

/** Links two ids; answers the person's id. */
export async function linked(
  app: TestApp,
  distinctId: string,
  alias: string,
  key = app.secretLive,
): Promise<string> {
  const body = { distinctId, alias, consentGiven: true };
  return (await dataOf(app.call("POST", "/alias", body, { key }))).personId;
}

/** Opts an id out of a scope, or back in. */
export async function consent(app: TestApp, path: "/opt-out" | "/opt-in", distinctId: string, scope = "all") {
  assert.deepEqual(await dataOf(app.call("POST", path, { distinctId, scope })), {});
}

/** Whether an id is opted out of a scope. */
export async function isOut(app: TestApp, distinctId: string, scope = "analytics"): Promise<boolean> {
  const id = encodeURIComponent(distinctId);
  return (await dataOf(app.call("GET", `/opted-out?distinctId=${id}&scope=${scope}`))).optedOut;
}

/** The realm of an app in live mode. */
export function realmOf(service: TestService, app: TestApp) {
  const realm = service.serving().registry.apps.get(app.appId)?.realms.live;
  assert.ok(realm !== undefined);
  return realm;
}

/** The captured events of an app in live mode, oldest first. */
export function eventsOf(service: TestService, app: TestApp): Promise<EventRow[]> {
  return service.store.database.query<EventRow>(
    "select * from analytics_events where realm = $1::int order by id",
    [realmOf(service, app).realm],
  );
}

/** How many rows of an app in live mode each table of people has. */
export async function countsOf(service: TestService, app: TestApp): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const table of ["people", "person_ids", "analytics_events", "pseudonyms"]) {
    const [row] = await service.store.database.query<{ count: number }>(
      `select count(*) as count from ${table} where realm = $1::int`,
      [realmOf(service, app).realm],
    );
    counts[table] = row?.count ?? -1;
  }
  return counts;
}

/** The tables in which some row contains a text. */
export async function tracesOf({ store }: TestService, text: string): Promise<string[]> {
  const tables = await store.database.query<{ name: string }>(
    `select table_name as name from information_schema.tables
     where table_schema = current_schema() and table_type = 'BASE TABLE' order by 1`,
  );
  assert.ok(tables.length > 15);
  const found: string[] = [];
  for (const { name } of tables) {
    const [row] = await store.database.query<{ count: number }>(
      `select count(*) as count from "${name}" as any_row where position($1 in any_row::text) > 0`,
      [text],
    );
    if ((row?.count ?? 0) > 0) found.push(name);
  }
  return found;
}

/** A link to the document of an id. */
export async function linkOf(app: TestApp, distinctId: string, key = app.secretLive): Promise<string> {
  return (await dataOf(app.call("POST", "/export-person", { distinctId }, { key }))).downloadUrl;
}

/** Opens a link without a key. */
export function open(service: TestService, url: string): Promise<Answer> {
  const { pathname, search } = new URL(url);
  return send(service.http, "GET", pathname + search, undefined, {});
}

/** The export document of an id. */
export async function exportOf(
  service: TestService,
  app: TestApp,
  distinctId: string,
  key = app.secretLive,
): Promise<Answer["body"]> {
  const answer = await open(service, await linkOf(app, distinctId, key));
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return answer.body;
}
