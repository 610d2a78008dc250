// Several databases: rows of a workspace are on one of them alone, lists over all are whole, and where all trouble is of one
// database, the others answer as if there were none.

import { KEYS_PER_STORE, REALMS_PER_STORE } from "../../../src/storage/nodes/store_numbers.ts";
import { NOBODY } from "../everywhere.ts";
import { type Attempt, type Call, isFinal } from "../history.ts";
import type { SimProcess } from "../process.ts";
import type { Site } from "../sites.ts";

/** After this time every process serves what has no trouble. */
const STARTED_MS = 3_000;
/** What a call may take where nothing is wrong: it may wait for a cell that changes hands. */
const ANSWERED_MS = 2_000;

/** A world with several databases at its end. */
interface Databases {
  readonly sites: readonly Site[];
  /** The database that all trouble is of; null for all of them. */
  readonly sick: Site | null;
  readonly calls: readonly Call[];
  readonly processes: readonly SimProcess[];
}

/** @throws Error that says what is wrong */
export function checkDatabases({ sites, sick, calls, processes }: Databases): void {
  for (const site of sites) checkRows(site);
  checkIds(sites);
  const spanning = calls.filter(({ tenant }) => tenant === NOBODY);
  checkLists(sites, spanning.filter(({ request: { op } }) => op !== "listStores"));
  for (const call of spanning) if (call.request.op === "listStores") checkStores(sites, sick, call);
  if (sick === null) return;
  for (const call of calls) {
    if (call.tenant === NOBODY || call.tenant.store === sick.place) continue;
    for (const attempt of call.attempts) checkUndisturbed(call, attempt, sick);
  }
  for (const { name, parts } of processes) {
    for (const { site, service: { counts } } of parts) {
      if (site === sick || counts.termsLost === 0) continue;
      throw new Error(`${name} lost a term at ${site.name} while all trouble was of ${sick.name}`);
    }
  }
}

function checkUndisturbed({ no }: Call, { arrivedMs, tookMs, reply }: Attempt, sick: Site): void {
  if (arrivedMs < STARTED_MS) return;
  const only = `while all trouble was of ${sick.name}`;
  if (reply === null || !isFinal(reply)) throw new Error(`call ${no} was answered ${reply?.status} ${only}`);
  if (tookMs > ANSWERED_MS) throw new Error(`call ${no} took ${tookMs.toFixed(0)} ms ${only}`);
}

/** Realms and users have numbers of their database's range. */
function checkRows({ place, name, server: { tables } }: Site): void {
  for (const table of tables.names) {
    for (const row of tables.list(table)) {
      const user = row.user_key ?? (table === "users" ? row.key : null);
      const isForeign = !isOf(row.realm, REALMS_PER_STORE, place) || !isOf(user, KEYS_PER_STORE, place);
      if (isForeign) {
        throw new Error(`${name} has a row of another database: ${table} ${JSON.stringify(row)}`);
      }
    }
  }
}

function isOf(number: unknown, range: number, place: number): boolean {
  return typeof number !== "number" || number === 0 || Math.floor(number / range) === place;
}

/** Each workspace, app and key is on one database. */
function checkIds(sites: readonly Site[]): void {
  const places = new Map<unknown, string>();
  for (const { name, server: { tables } } of sites) {
    const ids = ["workspaceId", "appId", "keyId"] as const;
    const tablesOf = { workspaceId: "workspaces", appId: "apps", keyId: "keys" };
    for (const id of ids.flatMap((id) => tables.list(tablesOf[id]).map((row) => row[id]))) {
      const other = places.get(id);
      if (other !== undefined) throw new Error(`${id} is on ${other} and on ${name}`);
      places.set(id, name);
    }
  }
}

interface Listed {
  readonly workspaceId: string;
  readonly appId?: string;
  readonly store?: string;
}

/** A list that was answered has all that there was when it was asked for, each with its database, and nothing twice. */
function checkLists(sites: readonly Site[], calls: readonly Call[]): void {
  const created = calls.filter(({ request: { op }, answer }) =>
    op === "createWorkspace" && answer?.status === 200
  );
  for (const { no, request: { input }, answer } of created) {
    const { workspaceId, store } = dataOf(answer) as Listed;
    if ((input["store"] ?? store) === store && nameOf(sites, workspaceId) === store) continue;
    throw new Error(`call ${no} created ${workspaceId} on ${store}`);
  }
  for (const { no, request: { op }, attempts } of calls) {
    for (const { reply, sentAt } of attempts) {
      if (op === "createWorkspace" || reply?.status !== 200) continue;
      const rows = dataOf(reply) as readonly Listed[];
      const ids = rows.map(({ workspaceId, appId }) => appId ?? workspaceId);
      const before = created.filter(({ answeredAt }) => answeredAt !== null && answeredAt < sentAt);
      const must = sites.flatMap(({ tenants }) => tenants).map(({ appId, workspaceId }) =>
        op === "listApps" ? appId : workspaceId
      );
      if (op !== "listApps") must.push(...before.map(({ answer }) => (dataOf(answer) as Listed).workspaceId));
      const missing = must.find((id) => !ids.includes(id));
      if (missing !== undefined) throw new Error(`call ${no} ${op} lacks ${missing}`);
      if (new Set(ids).size < ids.length) throw new Error(`call ${no} ${op} lists one twice`);
      const lost = rows.find(({ workspaceId, store }) =>
        store !== undefined && nameOf(sites, workspaceId) !== store
      );
      if (lost !== undefined) throw new Error(`call ${no} ${op} lists ${lost.workspaceId} at ${lost.store}`);
    }
  }
}

/** The list of databases names all of them, and says which one is not served. */
function checkStores(sites: readonly Site[], sick: Site | null, { no, attempts }: Call): void {
  for (const { reply, arrivedMs } of attempts) {
    if (reply?.status !== 200) continue;
    const rows = dataOf(reply) as { store: string; state: string; workspaces: number | null }[];
    const isWhole = rows.map(({ store }) => store).join() === sites.map(({ name }) => name).join();
    if (!isWhole) throw new Error(`call ${no} lists other databases: ${reply.body}`);
    for (const [place, { store, state, workspaces }] of rows.entries()) {
      const isUp = arrivedMs > STARTED_MS && sick !== null && sick.place !== place;
      const isServed = state === "serving";
      // One that is served may not have answered.
      if (isUp && workspaces === null || !isServed && workspaces !== null) {
        throw new Error(`call ${no} says that ${store} is ${state} with ${workspaces} workspaces`);
      }
    }
  }
}

function dataOf(reply: Attempt["reply"]): unknown {
  return JSON.parse(reply?.body ?? "{}").data;
}

/** The name of the database that has a workspace. */
function nameOf(sites: readonly Site[], workspaceId: string): string | undefined {
  const isIt = (row: { workspaceId?: unknown }) => row.workspaceId === workspaceId;
  return sites.find(({ server: { tables } }) => tables.list("workspaces", isIt).length > 0)?.name;
}
