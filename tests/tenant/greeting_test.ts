// What a start prints on the embedded store.

import assert from "node:assert/strict";
import type { Config } from "../../src/process/settings.ts";
import { greet } from "../../src/tenant/demo/greeting.ts";

/** The lines that a start prints. */
async function linesOf(adminToken: string | null): Promise<string[]> {
  const config = { databases: [], dataDir: "data", host: "127.0.0.1", adminListen: null, adminToken };
  const service = { ready: () => Promise.resolve({}) };
  const lines: string[] = [];
  const { log } = console;
  console.log = (line: string) => lines.push(line);
  try {
    await greet(service as never, config as unknown as Config, { port: 8000, adminPort: null }, () => null);
  } finally {
    console.log = log;
  }
  return lines;
}

Deno.test("a start names the file of the admin token only where the token is in it", async () => {
  const listens = "Holdfast listens on http://127.0.0.1:8000";
  assert.deepEqual(await linesOf(null), ["The admin token is in data/admin-token", listens]);
  assert.deepEqual(await linesOf("a-token-of-the-settings"), [listens]);
});
