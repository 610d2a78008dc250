// Counts of refused calls in the runtime: what is counted under whose id, when it is written, and that no write counts
// anything twice.

import assert from "node:assert/strict";
import { kindOf, type RefusalRow, type RefusedCall, rowOf } from "../../src/domain/state/refused_call.ts";
import { REFUSAL_LIMITS } from "../../src/process/limits.ts";
import { sizeOf } from "../domain/scene.ts";
import { MemoryStore } from "../support/memory_store.ts";
import { barrier, NOW, QUOTA, type Runtime, startRuntime } from "./runtime.ts";

const OVER = QUOTA + 1;

/** A runtime with an open cell and a subscribed user "u". */
async function withRuntime(
  work: (runtime: Runtime, store: MemoryStore) => Promise<void>,
  caps = {},
): Promise<void> {
  const store = new MemoryStore();
  const runtime = await startRuntime(store, caps);
  runtime.term.doors.open([0]);
  try {
    await runtime.subscribe("u");
    await work(runtime, store);
  } finally {
    runtime.term.fail(new Error("end"));
  }
}

/** Stored rows as "user event reason groups count". */
function stored(store: MemoryStore): string[] {
  return [...store.refusals.values()].map(shown).sort();
}

function shown({ userId, event, reasons, groupIds, count }: RefusalRow): string {
  return [userId, event, ...reasons, ...groupIds, count].join(" ");
}

const merge = ({ term, realm }: Runtime, from: string, to: string) =>
  term.merge({ realm, from, to, isDryRun: false, analytics: "linked", keeping: null });

Deno.test("refused calls are counted under the canonical user, and those of an unknown id make no user", () =>
  withRuntime(async (runtime, store) => {
    await runtime.reserve("u", OVER);
    await runtime.reserve("u", 1);
    await runtime.reserve("unknown", 1);
    assert.deepEqual([runtime.term.refusedCalls.size, stored(store)], [2, []]);
    await merge(runtime, "old", "u");
    await runtime.reserve("old", OVER);
    runtime.advance(3_600_000);
    await runtime.reserve("old", OVER);
    await runtime.term.refusedCalls.write();
    assert.deepEqual(stored(store), [
      "u x.make limit_reached g 1",
      "u x.make limit_reached g 2",
      "unknown x.make no_subscription 1",
    ]);
    await runtime.term.flush();
    assert.deepEqual(store.tables.users().map(({ id }) => id).sort(), ["old", "u"]);
  }));

Deno.test("a refusal at a cap is counted, for reserve and track alike, and so is a refusal without a turn", () =>
  withRuntime(async ({ term, realm, call }, store) => {
    const input = { event: "x.a", metadata: null, size: sizeOf({ count: 1 }) };
    await call("u", "track", { ...input, costCents: null }, { isCapped: true });
    await call("u", "track", { ...input, costCents: null }, { isCapped: true });
    await call("u", "reserve", { ...input, ttlMs: null }, { isCapped: true });
    await call("u", "canUse", input);
    const reasons = ["ai_budget_exceeded"] as const;
    await term.directory.countRefused(realm, "u", {
      event: "compose.a",
      reasons,
      groupIds: [],
      refusedBy: [],
      at: NOW,
    });
    await term.refusedCalls.write();
    assert.deepEqual(stored(store), [
      "u compose.a ai_budget_exceeded 1",
      "u x.a workspace_limit_reached 2",
    ]);
  }, { operationCap: 1 }));

Deno.test("an answer that is kept under an idempotency key is refused, and counted, once", () =>
  withRuntime(async ({ term, realm, call }, store) => {
    const input = { event: "x.a", metadata: null, size: sizeOf({ count: OVER }), ttlMs: null };
    const idempotent = { realm: realm.realm, key: "k", requestHash: "h" };
    const keeping = { call: idempotent, shape: () => ({ status: 200, body: "{}" }) };
    const ask = () =>
      term.idempotency.run(idempotent, async () => {
        await call("u", "reserve", input, { keeping });
        return { status: 200, code: "ok", body: "{}" } as const;
      });
    await ask();
    await ask();
    await term.refusedCalls.write();
    assert.deepEqual(stored(store), ["u x.a limit_reached g 1"]);
  }));

Deno.test("after a write everything counted before it is stored, also the rows that an earlier write took", () =>
  withRuntime(async (runtime, store) => {
    const slow = barrier();
    await runtime.reserve("u", OVER);
    store.hooks.refusals = () => slow.wait;
    const first = runtime.term.refusedCalls.writeBeside();
    await runtime.reserve("u", OVER);
    const second = runtime.term.refusedCalls.write();
    await runtime.reserve("u", OVER);
    slow.open();
    await second;
    assert.deepEqual(stored(store), ["u x.make limit_reached g 3"]);
    await first;
  }));

Deno.test("a failed write is repeated with all later counts; a write with an unknown end is not", () =>
  withRuntime(async (runtime, store) => {
    await runtime.reserve("u", OVER);
    store.hooks.refusals = async () => {
      await runtime.reserve("u", OVER);
      throw new Error("A test");
    };
    await assert.rejects(runtime.term.refusedCalls.write(), /A test/);
    store.hooks.refusals = () => false;
    await runtime.term.refusedCalls.write();
    await runtime.term.refusedCalls.write();
    assert.deepEqual(stored(store), ["u x.make limit_reached g 2"]);
    assert.deepEqual([runtime.counts.refusalRowsWritten, runtime.counts.refusedCallsLost], [0, 2]);
  }));

Deno.test("a write beside the calls passes a shut door by, and the write before a hand-over does not", () =>
  withRuntime(async (runtime, store) => {
    const { term, realm } = runtime;
    await runtime.reserve("u", OVER);
    await term.doors.shut([realm.cell]);
    await term.refusedCalls.writeBeside();
    assert.deepEqual(stored(store), []);
    const parts = { realms: new Set([realm.realm]), workspaces: new Set([realm.caps.workspaceId]) };
    await term.flush();
    await assert.rejects(term.drop(parts), /still in memory/);
    await term.refusedCalls.write([realm.realm]);
    await term.drop(parts);
    assert.deepEqual(stored(store), ["u x.make limit_reached g 1"]);
  }));

Deno.test("rows in memory are bounded: many are written at once, and past the bound calls are counted as lost", () =>
  withRuntime(async (runtime, store) => {
    const { term, realm } = runtime;
    const slow = barrier();
    store.hooks.refusals = () => slow.wait;
    const { writeFromRows, rowsMax } = REFUSAL_LIMITS;
    const callOf = (event: number): RefusedCall => {
      return { event: `x.${event}`, reasons: ["limit_reached"], groupIds: [], refusedBy: [], at: NOW };
    };
    const count = (event: number) => term.refusedCalls.count(realm, "u", callOf(event));
    for (let event = 0; event < writeFromRows; event++) count(event);
    // The write takes them as soon as this turn of the loop is over, and then waits.
    while (term.refusedCalls.size > 0) await new Promise((resolve) => setTimeout(resolve, 0));
    for (let event = 0; event < rowsMax + 2; event++) count(event);
    count(0);
    assert.deepEqual([term.refusedCalls.size, runtime.counts.refusedCallsLost], [rowsMax, 2]);
    slow.open();
    await term.refusedCalls.write();
    assert.equal(store.refusals.size, rowsMax);
    assert.equal(store.refusals.get(`1 ${kindOf(rowOf(1, "u", callOf(0)))}`)?.count, 3);
  }));
