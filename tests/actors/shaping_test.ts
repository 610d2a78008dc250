// A fault in shaping an answer: it fails its call, and leaves the user, the journal and the actor unchanged.

import assert from "node:assert/strict";
import type { Keeping } from "../../actors/call.ts";
import { MemoryStore } from "../support/memory_store.ts";
import { startRuntime } from "./runtime.ts";

const WHOLE = 1_000_000n;

const THROWING: Keeping<unknown> = {
  call: { realm: 1, key: "k", requestHash: "h" },
  shape: () => {
    throw new Error("This answer has no form");
  },
};

const KEPT: Keeping<unknown> = { ...THROWING, shape: () => ({ status: 200, body: "{}" }) };

Deno.test("a first answer that cannot be shaped leaves user, journal and actor untouched", async () => {
  const store = new MemoryStore();
  using runtime = await startRuntime(store);
  await runtime.subscribe("u");
  const actor = await runtime.term.directory.actorOf(1, "u");
  const input = {
    event: "x.make",
    metadata: null,
    size: { quantity: null, count: 3n * WHOLE, inputTokens: null, inputCostCents: null },
    ttlMs: null,
    prompt: null,
  };
  await assert.rejects(runtime.call("u", "reserve", input, { keeping: THROWING }), /has no form/);
  assert.equal(actor.isBroken, false);
  assert.equal(actor.state.openHolds, 0);
  assert.equal(await runtime.count("u"), 0n);
  const again = await runtime.call("u", "reserve", input, { keeping: KEPT });
  assert.deepEqual(again.kept, { status: 200, body: "{}" });
  assert.equal(await runtime.count("u"), 3n * WHOLE);
  assert.equal(await runtime.term.directory.actorOf(1, "u"), actor);
  await runtime.term.flush();
  assert.equal(store.tables.list("idempotency").length, 1);
});

Deno.test("a merge whose first answer cannot be shaped merges nothing", async () => {
  const store = new MemoryStore();
  using runtime = await startRuntime(store);
  for (const user of ["a", "b"]) {
    await runtime.subscribe(user);
    await runtime.reserve(user, 2);
  }
  const call = { realm: runtime.realm, from: "a", to: "b", isDryRun: false, analytics: "linked" } as const;
  await assert.rejects(runtime.term.merge({ ...call, keeping: THROWING }), /has no form/);
  assert.deepEqual([await runtime.count("a"), await runtime.count("b")], [2n * WHOLE, 2n * WHOLE]);
  const { result } = await runtime.term.merge({ ...call, keeping: KEPT });
  assert.equal(result.ok, true);
  assert.deepEqual([await runtime.count("a"), await runtime.count("b")], [4n * WHOLE, 4n * WHOLE]);
});
