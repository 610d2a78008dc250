// The proof by SQL over the tables of simulated worlds when their faults stop: holds are open, slots of rates count or have
// passed, users have merged.

import assert from "node:assert/strict";
import type { Session } from "../../src/storage/database.ts";
import { reconcile } from "../../src/storage/queries/reconcile.ts";
import { TABLES } from "../../src/storage/rows/tables.ts";
import { openTestStore } from "../support/test_store.ts";
import type { SimTables } from "./database/tables.ts";
import { STEPS } from "./planted/hunt.ts";
import { simulate } from "./simulation.ts";

/** What is not simulated: sums by day, webhooks, payments. */
const NOT_SIMULATED = new Set(["daily_use", "message", "refunded"]);

/** The tables that the proof reads. */
const READ = new Set([
  ...["users", "counters", "shares", "reservations", "events", "credit_balances", "credit_ledger", "runs"],
]);

/** Writes the rows of simulated tables, and of realms what the proof reads. */
async function write(session: Session, rows: SimTables): Promise<void> {
  const put = (table: string, columns: string, values: readonly unknown[]) =>
    session.query(
      `insert into ${table} (${columns}) select ${columns} from json_populate_recordset(null::${table}, $1::text::json)`,
      [JSON.stringify(values)],
    );
  const realms = rows.list("realms").map(({ realm, appId, mode, clockOffsetMs }) => {
    return { realm, app_id: appId, mode, clock_offset_ms: clockOffsetMs };
  });
  // Apps are left out.
  await session.query("set local session_replication_role = replica");
  await put("realms", "realm, app_id, mode, clock_offset_ms", realms);
  for (const { name, columns } of TABLES.filter((table) => READ.has(table.name))) {
    await put(name, columns.join(", "), rows.list(name));
  }
}

for (const seed of [8, 11]) {
  Deno.test(`the tables of seed ${seed} can be proved`, async () => {
    const { tables, violation } = await simulate({ seed, steps: STEPS, stripe: false, windows: 1 });
    assert.ok(violation === null && tables !== null);
    const store = await openTestStore();
    try {
      await store.database.transaction((session) => write(session, tables.rows));
      const drifts: string[] = [];
      const summary = await reconcile(
        store.database,
        ({ kind, userId, text }) => void (!NOT_SIMULATED.has(kind) && drifts.push(`${userId}: ${text}`)),
        undefined,
        tables.atMs,
      );
      assert.deepEqual(drifts, []);
      assert.ok(summary.counters > 20 && summary.holds > 0, "there is something to prove");
    } finally {
      await store.close();
    }
  });
}
