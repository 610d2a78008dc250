// Checks the tables after any requests: the books add up, the tight user is within its quotas, no prototype
// was changed, and refused requests left no trace.

import { reconcile } from "../../src/storage/queries/reconcile.ts";
import { type FuzzScene, TIGHT_USER } from "./scene.ts";

/**
 * Rows that live beside the requests: failed requests, counts of wrong tokens, terms and beats of members, the journal, which is empty after a flush, and the log
 * of our own sweeps.
 */
const LEFT_OUT = [
  "audit",
  "failed_requests",
  "failed_sign_ins",
  "journal",
  "lease",
  "members",
  "schema_migrations",
];
/** Tables with columns that are written beside the requests, without these: last uses of keys, attempts at messages. */
const PARTS: Readonly<Record<string, string>> = {
  keys:
    "(select id, app_id, class, mode, hash, prefix, name, created_by, revoked_at_ms, valid_until_ms from keys)",
  webhooks: "(select id, url, events, description, disabled, secrets, removed from webhooks)",
  webhook_messages: "(select id, webhook_id, user_key, realm, type, body from webhook_messages)",
};
const IDLE_TRIES = 200;

/** Waits until what goes on in the background has ended: drains, erasures, moves of history. */
export async function settle({ service }: FuzzScene): Promise<void> {
  const { database } = service.store;
  for (let tries = 0; tries < IDLE_TRIES; tries++) {
    // A machine that is too busy to prove the lease in time begins a new term.
    const { term } = await service.service.ready();
    await term.flush();
    // What is counted in memory would otherwise come into the tables at any moment.
    await term.refusedCalls.write();
    const [open] = await database.query<{ count: number }>(
      `select (select count(*) from erasure_jobs where status in ('queued', 'in_progress'))
            + (select count(*) from history_moves) as count`,
    );
    if (open?.count === 0) return;
    await service.admin("POST", "/sweep");
    await service.admin("POST", "/move-history");
  }
  throw new Error("Work in the background does not end");
}

/** Everything that is wrong with the tables and with the process. */
export async function bookFaults(scene: FuzzScene): Promise<string[]> {
  await settle(scene);
  const faults: string[] = [];
  await reconcile(scene.service.store.database, ({ userId, text }) => faults.push(`${userId}: ${text}`));
  const { app } = scene;
  for (const key of [app.secretLive, app.secretTest]) {
    for (const { groupId, quota, count } of await countersOf(scene, key)) {
      if (count > quota) faults.push(`${TIGHT_USER}: ${count} of ${quota} in ${groupId}`);
    }
  }
  const polluted = Object.keys(Object.prototype).concat(Object.keys(Array.prototype));
  if (polluted.length > 0) faults.push(`prototypes have ${polluted.join()}`);
  return faults;
}

async function countersOf(scene: FuzzScene, key: string) {
  for (let tries = 0; tries < IDLE_TRIES; tries++) {
    const path = `/usage?userId=${TIGHT_USER}`;
    const { status, body } = await scene.app.call("GET", path, undefined, { key });
    if (status !== 503) return body.data.counters as { groupId: string; quota: number; count: number }[];
    await settle(scene);
  }
  throw new Error("The service does not serve again");
}

/** A digest of each table. */
export async function digestOf(scene: FuzzScene): Promise<Map<string, string>> {
  await settle(scene);
  const { database } = scene.service.store;
  const tables = await database.query<{ name: string }>(
    `select table_name as name from information_schema.tables
     where table_schema = current_schema() and table_type = 'BASE TABLE' order by 1`,
  );
  const names = tables.map(({ name }) => name).filter((name) => !LEFT_OUT.includes(name));
  const parts = names.map((name) => {
    return `select '${name}' as name, count(*) || ' ' || coalesce(md5(string_agg(t::text, '|' order by t::text)), '')
      as digest from ${PARTS[name] ?? `"${name}"`} t`;
  });
  const rows = await database.query<{ name: string; digest: string }>(parts.join(" union all "));
  return new Map(rows.map(({ name, digest }) => [name, digest]));
}

/** The tables that differ. */
export function changedTables(
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
): string[] {
  return [...after.keys()].filter((name) => before.get(name) !== after.get(name));
}
