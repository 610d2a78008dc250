// Statements of the log of failed requests. Which of alike rows is the newest, and what an erasure hides of a row that is
// written later, is not looked at.

import type { Fields } from "../../support/memory_store.ts";
import { textsOf } from "./params.ts";
import type { Entry } from "./statements.ts";
import { write } from "./statements_stripe.ts";

const COLUMNS = [
  "app_id",
  "mode",
  "key_id",
  "key_prefix",
  "method",
  "route",
  "status",
  "code",
  "hour_ms",
  "count",
  "first_at_ms",
  "last_at_ms",
  "request_ids",
  "path",
  "message",
  "user_id",
  "body",
];
const KEY = ["app_id", "mode", "key_id", "method", "route", "status", "code", "hour_ms"];

export const FAILED_REQUESTS: readonly Entry[] = [
  write("add failed requests: insert into failed_requests as f", (tables, params) => {
    const columns = params.map(textsOf);
    for (let place = 0; place < (columns[0]?.length ?? 0); place++) {
      const row = Object.fromEntries(
        COLUMNS.map((name, at) => [name, columns[at]?.[place] ?? null]),
      ) as Fields;
      const id = JSON.stringify(KEY.map((name) => row[name]));
      const [known] = tables.list("failed_requests", (each) => each.id === id);
      tables.put("failed_requests", id, {
        ...row,
        id,
        count: Number(row.count) + Number(known?.count ?? 0),
        last_at_ms: Number(row.last_at_ms),
      });
    }
  }),
  write("trim failed requests: delete from failed_requests where id = any(array( select beyond.id", () => {}),
  write(
    "remove old failed requests: delete from failed_requests where id = any(array( select id",
    (tables, params) => {
      tables.remove(
        "failed_requests",
        (row) => Number(row.last_at_ms) <= Number(params[0]),
        Number(params[1]),
      );
    },
  ),
  write("lock failed requests: lock table failed_requests", () => {}),
  write("erase failed requests: delete from failed_requests f using realms r", (tables, [realm, ids]) => {
    const [of] = tables.list("realms", (row) => row.realm === realm);
    const names = textsOf(ids);
    tables.remove(
      "failed_requests",
      (row) => row.app_id === of?.app_id && row.mode === of?.mode && names.includes(row.user_id as string),
    );
  }),
];
