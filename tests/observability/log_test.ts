// Log lines: levels, the request behind a line, and what looks like a secret in somebody else's message.

import assert from "node:assert/strict";
import { log, masked, setLogLevel } from "../../src/process/log.ts";
import { serviceOfFile } from "../routes/support.ts";

const service = serviceOfFile();

/** The lines that were logged while something was done. */
async function linesOf(work: () => unknown) {
  const written: string[] = [];
  const writeSync = Deno.stderr.writeSync;
  Deno.stderr.writeSync = (bytes) => {
    written.push(new TextDecoder().decode(bytes));
    return bytes.byteLength;
  };
  try {
    await work();
  } finally {
    Deno.stderr.writeSync = writeSync;
  }
  return written.map((line) => {
    assert.ok(line.endsWith("\n") && line.indexOf("\n") === line.length - 1, line);
    return JSON.parse(line);
  });
}

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

Deno.test("a bug is logged once, with the request's id and without the key that its message held", async () => {
  const app = await service.newApp();
  const { directory } = service.serving().term;
  const runById = directory.runById;
  directory.runById = () => {
    throw new TypeError(`cannot read "Bearer ${app.secretLive}"`);
  };
  const lines = await linesOf(async () => {
    const headers = { "x-request-id": "request-9" };
    const body = { userId: "u", event: "image.x", prompt: "a prompt" };
    const answer = await app.call("POST", "/reserve", body, { headers }).finally(() => {
      directory.runById = runById;
    });
    assert.equal(answer.status, 500);
    assert.equal(answer.headers.get("x-request-id"), "request-9");
  });
  assert.equal(lines.length, 1);
  const [{ level, requestId, error, stack }] = lines as [Record<string, string>];
  assert.deepEqual([level, requestId, error], ["error", "request-9", 'cannot read "Bearer ***"']);
  assert.match(stack ?? "", /operation\.ts/);
  const text = JSON.stringify(lines);
  for (const secret of [app.secretLive, "a prompt"]) assert.ok(!text.includes(secret));
});

Deno.test("a refusal and an answer write no line at the default level", async () => {
  const app = await service.newApp();
  const lines = await linesOf(async () => {
    await app.call("GET", "/plans");
    await app.call("GET", "/plans", undefined, { key: "sk_live_wrong" });
    await app.call("POST", "/reserve", "no JSON");
  });
  assert.deepEqual(lines, []);
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

for (const [line, shown] of MASKED) {
  Deno.test(`"${shown}" is what a log line shows of a message`, () => assert.equal(masked(line), shown));
}
