// Log lines: levels, and the masking of what looks like a secret. Lines of requests are in `metrics_test.ts`, which has
// a service.

import assert from "node:assert/strict";
import { log, masked, setLogLevel } from "../../src/process/log.ts";
import { linesOf } from "./log_lines.ts";

Deno.test("lines below the level are left out", async () => {
  const levels = ["debug", "info", "warn", "error"] as const;
  for (const [index, level] of levels.entries()) {
    const lines = await linesOf(() => {
      setLogLevel(level);
      for (const each of levels) log(each, "A line", { each });
      setLogLevel("info");
    });
    assert.deepEqual(lines.map(({ each }) => each), levels.slice(index));
  }
});

const MASKED: readonly (readonly [string, string])[] = [
  ["key sk_live_abcDEF123 here", "key *** here"],
  ["pk_test_0 and sk_test_1", "*** and ***"],
  ["Incorrect API key sk-proj-abc_def-0123", "Incorrect API key ***"],
  ["authorization: bearer abc.def-ghi", "authorization: bearer ***"],
  ["GET /api/v1/export-download?token=eyJ.abc&x=1", "GET /api/v1/export-download?token=***&x=1"],
  ["postgres://user:pass:word@db:5432/name failed", "postgres://user:***@db:5432/name failed"],
  ["http://127.0.0.1:8000/api and a user@host", "http://127.0.0.1:8000/api and a user@host"],
];

Deno.test("a log line masks keys, tokens and passwords, and nothing else", () => {
  for (const [line, shown] of MASKED) assert.equal(masked(line), shown);
});
