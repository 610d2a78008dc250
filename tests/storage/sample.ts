// A writer on a fresh store, and rows to write: every field of a row has a value unless a test gives another.

import { workOfOlder } from "../../src/domain/state/work.ts";
import type { AppendedBatch, RowChange } from "../../actors/port.ts";
import { type Counter, emptyCounter } from "../../src/domain/state/counter.ts";
import type { CreditBalance } from "../../src/domain/state/credit.ts";
import type { MeteringEvent } from "../../src/domain/state/event.ts";
import type { Reservation } from "../../src/domain/state/reservation.ts";
import type { Run } from "../../src/domain/state/run.ts";
import type { Subscription } from "../../src/domain/state/subscription.ts";
import { newUser, type User } from "../../src/domain/state/user.ts";
import type { Database, PinnedSession } from "../../src/storage/database.ts";
import { joinCluster, type Writer } from "../../src/storage/journal/writer.ts";
import type { NewNode } from "../../src/storage/nodes/node_store.ts";
import { openTestStore, type TestStore } from "../support/test_store.ts";

export const DAY_MS = 86_400_000;
export const NOW = Date.UTC(2026, 2, 10, 12);

/** The row of a node without an address. */
export const LONER: NewNode = { address: null, share: 1, fingerprints: {} };

/** A store with its writer. */
export interface TestWriter {
  readonly store: TestStore;
  readonly session: PinnedSession;
  readonly lease: Writer;
  append(changes: readonly RowChange[]): Promise<AppendedBatch>;
  /** Appends, and drains immediately. */
  write(changes: readonly RowChange[]): Promise<void>;
  journalRows(): Promise<number>;
}

/** Joins as a node that no other node can reach. */
export async function joinAlone(database: Database, session: PinnedSession): Promise<Writer> {
  const writer = await joinCluster(database, session, () => Promise.resolve(LONER));
  if (writer === null) throw new Error("A lock keeps nodes out of this store");
  return writer;
}

/** Runs a test with a writer on a fresh store. */
export async function withWriter(work: (writer: TestWriter) => Promise<void>): Promise<void> {
  const store = await openTestStore();
  try {
    const session = await store.database.pin(() => {});
    const lease = await joinAlone(store.database, session);
    const append = (changes: readonly RowChange[]) => lease.journal.append(changes);
    try {
      await work({
        store,
        session,
        lease,
        append,
        write: async (changes) => await lease.journal.drain([await append(changes)]),
        journalRows: async () => (await store.database.query("select seq from journal")).length,
      });
    } finally {
      await lease.close();
    }
  } finally {
    await store.close();
  }
}

/** Resolves when some session of a server's database waits for a lock, or when work has ended without one. */
export async function untilWaiting(database: Database, work: Promise<unknown>): Promise<void> {
  let hasEnded = false;
  void work.then(() => hasEnded = true, () => hasEnded = true);
  while (!hasEnded) {
    const waiting = await database.query(
      "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    );
    if (waiting.length > 0) return;
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

export function user(row: Partial<User> = {}): User {
  return { ...newUser(1, 1, "u"), ...row };
}

export function subscription(row: Partial<Subscription> = {}): Subscription {
  return {
    id: "sub_1",
    userKey: 1,
    planId: "plan_a",
    provider: null,
    externalId: null,
    startedAt: NOW,
    endsAt: null,
    ended: false,
    cycleAnchorAt: null,
    customLimits: {},
    quantity: 1,
    scheduled: null,
    trial: null,
    trials: [],
    firstHeld: {},
    providerTrialEndsAt: null,
    trialCredits: {},
    customFeatures: {},
    ...row,
  };
}

export function counter(row: Partial<Omit<Counter, "key">> = {}): Counter {
  const { userKey = 1, planId = "plan_a", groupId = "g" } = row;
  const { windowStart: start = NOW - DAY_MS, windowEnd: end = NOW + DAY_MS } = row;
  const empty = emptyCounter(userKey, { planId, groupId, window: { start, end } });
  return { ...empty, count: 1_000_000n, ...row };
}

export function reservation(row: Partial<Reservation> = {}): Reservation {
  return {
    id: "rsv_1_00000000000000000001",
    userKey: 1,
    status: "held",
    event: "x.make",
    metadata: null,
    quantity: null,
    count: null,
    amounts: { count: 1_000_000n, tokens: 0n, seconds: 1_000_000n, cents: 0n, credits: 0n },
    perUnit: false,
    priceRow: 0,
    namesCents: false,
    lines: [],
    credits: [],
    prompt: null,
    createdAt: NOW,
    expiresAt: NOW + 600_000,
    settledAt: null,
    ...row,
  };
}

export function balance(row: Partial<CreditBalance> = {}): CreditBalance {
  return {
    id: "crb_1_00000000000000000001",
    userKey: 1,
    realm: 1,
    packId: "cpk_a",
    packName: "A",
    packItemId: null,
    kind: "generic",
    unit: "count",
    matches: [{ event: "*" }],
    priority: 0,
    initial: 5_000_000n,
    grantedAt: NOW - DAY_MS,
    expiresAt: null,
    externalRef: null,
    source: "purchase",
    notes: null,
    remaining: 1_000_000n,
    held: 0n,
    revokedAmount: 0n,
    revokedAt: null,
    overage: 0n,
    notified: 0,
    origin: null,
    ownRef: null,
    included: null,
    ...row,
  };
}

export function run(row: Partial<Run> = {}): Run {
  return {
    id: "run_1_00000000000000000001",
    userKey: 1,
    realm: 1,
    name: "research",
    metadata: null,
    around: [],
    limits: [{ id: "limit_1", unit: "count", event: "*", quota: 5_000_000n, count: 1_000_000n, held: 0n }],
    openHolds: 0,
    createdAt: NOW - DAY_MS,
    expiresAt: NOW + DAY_MS,
    endedAt: null,
    reason: null,
    ...row,
  };
}

export function event(row: Partial<MeteringEvent> = {}): MeteringEvent {
  return {
    id: "evt_1",
    userKey: 1,
    realm: 1,
    type: "x.make",
    quantity: 1_000_000n,
    costCents: 0n,
    matchStatus: "matched",
    createdAt: NOW,
    metadata: null,
    reservationId: null,
    reason: null,
    errorCode: null,
    lines: [],
    credits: [],
    uncovered: {},
    work: workOfOlder(1_000_000n, 0n),
    ...row,
  };
}

/** Text that breaks careless encoders: of COPY, arrays, JSON and SQL. */
export const HOSTILE_TEXTS: readonly string[] = [
  "",
  " ",
  "\t",
  "\n",
  "\r\n",
  "\\",
  "\\N",
  "\\.",
  "\\\\.\n\\.\n",
  "NULL",
  "null",
  "nil\\tab\\n",
  "{a,b}",
  '{"a","b"}',
  '"',
  '\\"',
  "'; drop table users; --",
  "''",
  "$1",
  "a\u0001b\u001f\u007f",
  "\v\f\b",
  "\u2028\u2029",
  "é e\u0301 ß İ",
  "emoji 👩‍👩‍👧‍👦 🏴",
  "\ufeffbom",
  "مرحبا",
  "x".repeat(10_000) + "\t\\N\n",
];
