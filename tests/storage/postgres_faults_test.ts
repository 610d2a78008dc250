// What a failed statement says about the database: away, so that the caller may try again, or a bug of ours.

import assert from "node:assert/strict";
import { Unavailable } from "actors/port.ts";
import { faultOf, openPostgres } from "storage/postgres_database.ts";
import { testServerUrl } from "tests/support/test_store.ts";

/** Codes of the socket and of the driver; the first two look like a SQLSTATE. */
const LOSSES = ["EPIPE", "EBADF", "ECONNRESET", "ETIMEDOUT", "CONNECTION_CLOSED", "CONNECTION_ENDED"];

Deno.test("a lost socket is a fault that may pass, however its code is spelled", () => {
  for (const code of LOSSES) {
    const fault = faultOf(Object.assign(new Error("lost"), { code }));
    assert(fault instanceof Unavailable, code);
  }
});

Deno.test("an error without a code stays what it is", () => {
  const bug = new TypeError("not a function");
  assert.equal(faultOf(bug), bug);
});

Deno.test({
  name: "a statement that the server refuses is a bug, and a server that shuts down is not",
  ignore: testServerUrl() === null,
  async fn() {
    const database = openPostgres(testServerUrl() as string, 1);
    try {
      await assert.rejects(
        database.query("select no_such_column"),
        (error) => !(error instanceof Unavailable),
      );
      await assert.rejects(
        database.query("do $$ begin raise exception using errcode = '57P01'; end $$"),
        Unavailable,
      );
    } finally {
      await database.close();
    }
  },
});
