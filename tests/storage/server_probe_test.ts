// The probe of a server at the start, and the line that a server without what the service needs is refused with.

import assert from "node:assert/strict";
import { openPostgres } from "../../src/storage/postgres_database.ts";
import { type ProbeFacts, probeFault, probeServer } from "../../src/storage/server_probe.ts";
import { testServerUrl } from "../support/test_store.ts";

const PLAIN: ProbeFacts = {
  version: "PostgreSQL 15.20 (Debian 15.20-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc",
  versionNumber: 150_020,
  isStandby: false,
  hasLz4: true,
  isSessionKept: true,
  doLocksExclude: true,
};

Deno.test("a server is refused with what it is and what to do", () => {
  for (const hasLz4 of [true, false]) assert.equal(probeFault({ ...PLAIN, hasLz4 }), null);
  const refused: readonly [Partial<ProbeFacts>, RegExp][] = [
    [
      { isSessionKept: false },
      /pooler in transaction mode\. Connect to the server itself, or .* session mode/,
    ],
    [{ version: "CockroachDB CCL v24.1.1 (x86_64-pc-linux-gnu)" }, /^this is CockroachDB.*plain PostgreSQL/],
    [{ version: "PostgreSQL 15.12-YB-2025.1.0.0-b168 on x86_64" }, /^this is YugabyteDB/],
    [{ doLocksExclude: false }, /same advisory lock on PostgreSQL 15\.20,/],
    [{ version: "PostgreSQL 14.9 on x86_64", versionNumber: 140_009 }, /^this is PostgreSQL 14\.9\./],
    [{ isStandby: true }, /^this is a standby/],
  ];
  for (const [changed, line] of refused) assert.match(probeFault({ ...PLAIN, ...changed }) ?? "", line);
});

Deno.test({
  name: "a plain server passes, for several processes at once, and no lock stays",
  ignore: testServerUrl() === null,
  async fn() {
    const database = openPostgres(testServerUrl() as string, 1, "holdfast_probed");
    await Promise.all([probeServer(database), probeServer(database), probeServer(database)]);
    const left = `select from pg_locks l join pg_stat_activity a using (pid)
      where l.locktype = 'advisory' and a.application_name = 'holdfast_probed'`;
    assert.equal((await database.query(left)).length, 0);
    await database.close();
  },
});
