// A term on a store in memory, for tests of the runtime: no server, no timer that a test would have to wait for.

import type { Call, Realm, TurnResult } from "../../actors/call.ts";
import type { WorkspaceCaps } from "../../actors/budget.ts";
import type { Directory } from "../../actors/directory.ts";
import { Term } from "../../actors/term.ts";
import type { CommandName, Commands } from "../../src/domain/command.ts";
import { compileCatalog } from "../../src/domain/catalog/catalog.ts";
import { RuntimeCounts } from "../../src/process/counts/runtime_counts.ts";
import { makeIdSource } from "../../src/process/id_source.ts";
import { planOf, sizeOf } from "../domain/scene.ts";
import type { MemoryLease } from "../support/memory_lease.ts";
import type { MemoryStore } from "../support/memory_store.ts";

export const NOW = Date.UTC(2026, 2, 10, 12);
export const QUOTA = 10;

/** A runtime in which one test's calls run; its term ends with it. */
export interface Runtime extends Disposable {
  readonly term: Term;
  readonly lease: MemoryLease;
  readonly realm: Realm;
  readonly counts: RuntimeCounts;
  /** Moves the clock. */
  advance(ms: number): void;
  call<Name extends CommandName>(
    userId: string,
    name: Name,
    input: Commands[Name]["input"],
    more?: Partial<Call<Name>>,
  ): Promise<TurnResult<Commands[Name]["answer"]>>;
  subscribe(userId: string): Promise<void>;
  /** Reserves; the reservation's id, or null where it was not allowed. */
  reserve(userId: string, count: number): Promise<string | null>;
  settle(name: "commit" | "release", reservationId: string, owner: number): Promise<string>;
  count(userId: string): Promise<bigint>;
  /** Lets idle actors go as if all had been idle for long. */
  passivate(): void;
}

/** Starts a term that replays what the last one left. */
export function startRuntime(store: MemoryStore, caps: Partial<WorkspaceCaps> = {}): Promise<Runtime> {
  const lease = store.takeLease();
  let now = NOW;
  const clock = { now: () => now };
  const realm: Realm = {
    realm: 1,
    cell: 0,
    mode: "live",
    catalog: compileCatalog({ plans: [planOf("plan_a", { g: QUOTA })] }, 1),
    caps: {
      workspaceId: "ws_1",
      operationCap: null,
      testOperationCap: null,
      testCreditBalanceCap: null,
      aiBudgetCents: null,
      ...caps,
    },
    outbox: null,
    now: () => now,
  };
  const counts = new RuntimeCounts();
  const term = new Term({
    lease,
    store,
    refusalStore: store,
    ids: makeIdSource(clock),
    realNow: () => now,
    counts,
  });
  const { tables } = store;
  term.admit({
    operations: tables.operations(),
    issues: tables.issues(),
    aiSpend: tables.aiSpend(),
    gatewaySpend: tables.gatewaySpend(),
  });
  const call: Runtime["call"] = (userId, name, input, more = {}) =>
    term.directory.runById(userId, { realm, name, input, ...more });
  return Promise.resolve({
    term,
    lease,
    realm,
    counts,
    call,
    advance: (ms) => now += ms,
    subscribe: async (userId) => {
      const result = await call(userId, "subscribe", {
        plan: "plan_a",
        provider: null,
        externalId: null,
        customLimits: undefined,
        quantity: undefined,
        trial: undefined,
        customFeatures: undefined,
        startsAt: null,
        endsAt: null,
        cycleStart: undefined,
      });
      if (!result.ok) throw new Error(result.refusal.code);
    },
    reserve: async (userId, count) => {
      const input = { event: "x.make", metadata: null, size: sizeOf({ count }), ttlMs: null };
      const result = await call(userId, "reserve", input, { isCapped: true });
      if (!result.ok) throw new Error(result.refusal.code);
      return result.answer.hold?.reservationId ?? null;
    },
    settle: async (name, reservationId, owner) => {
      const input = { reservationId, extra: {}, actual: {}, costCents: null, reason: null, errorCode: null };
      const result = await term.directory.runByKey(owner, { realm, name, input, needs: { reservationId } });
      return result === null ? "no user" : result.ok ? "ok" : result.refusal.code;
    },
    count: async (userId) => {
      const result = await call(userId, "usage", { event: null });
      if (!result.ok) throw new Error(result.refusal.code);
      return result.answer.counters[0]?.counter.count ?? 0n;
    },
    passivate: () => passivateIdle(term.directory),
    [Symbol.dispose]: () => term.fail(new Error("The test ended")),
  });
}

let idleDays = 0;

/** Lets every idle actor go, as if none had had a turn for days; all within one turn of the event loop. */
export function passivateIdle(directory: Directory): void {
  const { now } = performance;
  performance.now = () => now.call(performance) + idleDays * 24 * 3_600_000;
  try {
    // One look notes who had a turn since the last one, the next one finds that to be long ago.
    for (let look = 0; look < 2; look++) {
      idleDays += 1;
      directory.passivate();
    }
  } finally {
    performance.now = now;
  }
}

/** A promise that a test opens or breaks. */
export function barrier(): { wait: Promise<void>; open: () => void; fail: (error: Error) => void } {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  promise.catch(() => {});
  return { wait: promise, open: resolve, fail: reject };
}

/** Lets everything run that waits for nothing. */
export async function settleLoop(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** Whether a promise has settled. */
export async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let hasSettled = false;
  const note = () => {
    hasSettled = true;
  };
  promise.then(note, note);
  await settleLoop();
  return hasSettled;
}
