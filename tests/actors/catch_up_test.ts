// A user with many lapsed holds: they are settled in bounded turns, and no call sees only some of them settled.

import assert from "node:assert/strict";
import { RUNTIME_LIMITS } from "../../src/process/limits.ts";
import { readLine } from "../support/journal_line.ts";
import { MemoryStore } from "../support/memory_store.ts";
import { limitsOfFile } from "../support/limits.ts";
import { QUOTA, type Runtime, startRuntime } from "./runtime.ts";

const MINUTE_MS = 60_000;
const MOST = 3;

limitsOfFile(RUNTIME_LIMITS, { turnHoldsMax: MOST });

/** A runtime in which all of a user's quota is held and has lapsed, with the number of expired holds in each append. */
async function withLapsed(): Promise<{ runtime: Runtime; expired: number[] }> {
  const store = new MemoryStore();
  const runtime = await startRuntime(store);
  await runtime.subscribe("u");
  for (let hold = 0; hold < QUOTA; hold++) {
    assert.notEqual(await runtime.reserve("u", 1), null);
    runtime.advance(1);
  }
  const expired: number[] = [];
  store.hooks.append = (changes) => {
    const lines = changes.flatMap((change) => typeof change === "string" ? [readLine(change)] : []);
    const count =
      lines.filter(({ table, columns }) => table === "reservations" && columns.status === "expired").length;
    if (count > 0) expired.push(count);
    return Promise.resolve();
  };
  runtime.advance(11 * MINUTE_MS);
  return { runtime, expired };
}

Deno.test("many lapsed holds are settled in turns of a bounded size, and calls meanwhile see all of them settled", async () => {
  const { runtime, expired } = await withLapsed();
  const [count, held, swept] = await Promise.all([
    runtime.count("u"),
    runtime.reserve("u", QUOTA),
    runtime.call("u", "settle", {}),
  ]);
  assert.equal(count, 0n);
  assert.notEqual(held, null);
  assert.equal(swept.ok, true);
  assert.deepEqual(expired, [MOST, MOST, MOST, 1]);
  runtime.term.fail(new Error("end"));
});

Deno.test("holds that lapse at one moment are settled together", async () => {
  const store = new MemoryStore();
  const runtime = await startRuntime(store);
  await runtime.subscribe("u");
  for (let hold = 0; hold < QUOTA; hold++) await runtime.reserve("u", 1);
  runtime.advance(11 * MINUTE_MS);
  assert.equal(await runtime.count("u"), 0n);
  runtime.term.fail(new Error("end"));
});

Deno.test("a user with many lapsed holds is merged with none of them open", async () => {
  const { runtime, expired } = await withLapsed();
  await runtime.subscribe("v");
  const { result } = await runtime.term.merge({
    realm: runtime.realm,
    from: "u",
    to: "v",
    isDryRun: false,
    analytics: "linked",
    keeping: null,
  });
  assert.equal(result.ok, true);
  assert.equal(await runtime.count("u"), 0n);
  assert.ok(Math.max(...expired) <= MOST, String(expired));
  runtime.term.fail(new Error("end"));
});
