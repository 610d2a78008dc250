// Statements of the audit log.

import type { Param } from "../../../src/storage/database.ts";
import type { Fields } from "../../support/memory_store.ts";
import { textsOf } from "./params.ts";
import type { Entry } from "./statements.ts";
import type { SimTables } from "./tables.ts";
import { write } from "./statements_stripe.ts";

const COLUMNS = ["id", "at_ms", "who", "via", "what", "app_id", "mode", "user_id"];

/** Takes writes out that have begun. */
function takeBegun(tables: SimTables, isWanted: (row: Fields) => boolean): Fields[] {
  const begun = tables.list("audit_begun", isWanted);
  tables.remove("audit_begun", isWanted);
  return begun;
}

function hide(table: string, values: Fields): (tables: SimTables, params: readonly Param[]) => void {
  return (tables, [realm, ids, hashes]) => {
    const [of] = tables.list("realms", (row) => row.realm === realm);
    const shown = textsOf(hashes);
    for (const [at, id] of textsOf(ids).entries()) {
      const isAbout = (row: Fields) =>
        row.app_id === of?.app_id && row.mode === of?.mode && row.user_id === id;
      tables.update(table, isAbout, { ...values, user_id: shown[at] as string });
    }
  };
}

export const AUDIT: readonly Entry[] = [
  write("begin a write: insert into audit_begun", (tables, params) => {
    const values = Object.fromEntries(COLUMNS.map((column, at) => [column, params[at] ?? null]));
    tables.put(
      "audit_begun",
      String(params[0]),
      { ...values, erased: false, begun_ms: tables.time.now } as Fields,
    );
  }),
  write(
    "end old writes: with begun as ( delete from audit_begun where begun_ms <=",
    (tables, [sinceMs, after]) => {
      const before = tables.time.now - Number(sinceMs);
      for (
        const { erased, begun_ms: _begun, ...row } of takeBegun(
          tables,
          (row) => Number(row.begun_ms) <= before,
        )
      ) {
        const values = { ...row, before: null, after: erased === true ? null : after as string };
        tables.put("audit", String(row.id), values as Fields);
      }
    },
  ),
  write(
    "end a write: with begun as (delete from audit_begun where id = $1",
    (tables, [id, appId, before, after]) => {
      for (const { erased, begun_ms: _begun, ...row } of takeBegun(tables, (row) => row.id === id)) {
        const texts = erased === true ? { before: null, after: null } : { before, after };
        tables.put("audit", String(id), { ...row, app_id: row.app_id ?? appId, ...texts } as Fields);
      }
    },
  ),
  write("drop a write: delete from audit_begun where id = $1", (tables, [id]) => {
    tables.remove("audit_begun", (row) => row.id === id);
  }),
  write("remove old failed sign-ins: delete from failed_sign_ins", () => {}),
  write("allow changes of the audit log: select set_config('holdfast.erasing'", () => {}),
  write("hide a user in writes: update audit_begun a set user_id", hide("audit_begun", { erased: true })),
  write("hide a user in the log: update audit a set user_id", hide("audit", { before: null, after: null })),
];
