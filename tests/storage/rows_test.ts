// Rows are unchanged after encoding for the journal and decoding.

import { decodeWork, encodeWork } from "../../src/storage/rows/work_text.ts";
import { UNITS } from "../../src/domain/catalog/plan.ts";
import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { emptyCounter } from "../../src/domain/state/counter.ts";
import type { TopUp, TopUpIntent, TopUpSetting } from "../../src/domain/state/top_up.ts";
import type { CreditBalance, CreditLine, LedgerEntry } from "../../src/domain/state/credit.ts";
import type { Line, Reservation } from "../../src/domain/state/reservation.ts";
import type { Run } from "../../src/domain/state/run.ts";
import { emptyShare, type ShareLine } from "../../src/domain/state/share.ts";
import type { Subscription } from "../../src/domain/state/subscription.ts";
import type { User } from "../../src/domain/state/user.ts";
import { RESERVATIONS } from "../../src/storage/rows/metering_rows.ts";
import { RUNS } from "../../src/storage/rows/run_rows.ts";
import { CHANGE_HEAD, encodeChanges, withLaterColumns } from "../../src/storage/rows/tables.ts";
import { HOSTILE_TEXTS } from "./sample.ts";
import { anyChar } from "../support/any_char.ts";
import { MemoryTables } from "../support/memory_store.ts";

/** Generates a record like the domain makes it. */
function record<T>(members: { [Name in keyof T]: fc.Arbitrary<T[Name]> }): fc.Arbitrary<T> {
  return fc.record<T>(members, { noNullPrototype: true }) as fc.Arbitrary<T>;
}

const text = fc.oneof(
  fc.constantFrom(...HOSTILE_TEXTS),
  fc.string({ unit: anyChar, maxLength: 20 }).map((any) => any.replaceAll("\0", "").toWellFormed()),
);
/**
 * Keys of objects. Once JSON.parse of V8 has read the key of one backslash, it reads another key of one character that is
 * escaped, such as "\\u0001", as that backslash.
 */
const name = text.filter((each) => each !== "__proto__" && each !== "\\");
const amount = fc.oneof(
  fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }),
  fc.bigInt({ min: -5_000_000n, max: 5_000_000n }),
);
const size = amount.map((value) => value < 0n ? -value : value);
const millis = fc.integer({ min: -(2 ** 42), max: 2 ** 43 });
const key = fc.constant(1);
const orNull = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: null });

const line: fc.Arbitrary<Line> = record({
  planId: text,
  groupId: text,
  window: record({ start: millis, end: orNull(millis) }),
  unit: fc.constantFrom(...UNITS),
  taken: size,
});

const creditLine: fc.Arbitrary<CreditLine> = record({
  balanceId: text,
  unit: fc.constantFrom(...UNITS),
  taken: size,
});

const balance: fc.Arbitrary<CreditBalance> = record({
  id: text,
  userKey: key,
  realm: key,
  packId: text,
  packName: text,
  packItemId: orNull(text),
  kind: fc.constantFrom("per_type", "generic"),
  unit: fc.constantFrom(...UNITS),
  matches: fc.array(fc.record({ event: text }, { noNullPrototype: true }), { maxLength: 3 }),
  priority: fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0),
  initial: size,
  grantedAt: millis,
  expiresAt: orNull(millis),
  externalRef: orNull(text),
  source: fc.constantFrom("purchase", "grant", "refund", "manual"),
  notes: orNull(text),
  remaining: size,
  held: size,
  revokedAmount: size,
  revokedAt: orNull(millis),
  overage: size,
  notified: fc.constantFrom(0, 1, 2, 3, 4, 7),
  origin: orNull(fc.constantFrom("plan", "rollover", "topup")),
  ownRef: orNull(text),
  included: orNull(record({
    planId: text,
    subscriptionId: text,
    isAddOn: fc.boolean(),
    windowStart: millis,
    windowEnd: orNull(millis),
    state: fc.constantFrom("open", "left", "taken_over"),
    rollsUntil: orNull(millis),
  })),
});

const entry: fc.Arbitrary<LedgerEntry> = record({
  id: text,
  userKey: key,
  balanceId: text,
  packId: text,
  delta: amount,
  reason: fc.constantFrom("event_committed", "reservation_held", "grant", "admin_adjust"),
  eventId: orNull(text),
  reservationId: orNull(text),
  notes: orNull(text),
  at: millis,
});

const ref = record({ planId: text, groupId: text, window: record({ start: millis, end: orNull(millis) }) });
const lineThatLeft = fc.tuple(line, fc.array(ref, { minLength: 1, maxLength: 3 }))
  .map(([taken, left]) => ({ ...taken, left }));

const unit = fc.constantFrom(...UNITS);
const window = record({ start: millis, end: orNull(millis) });
const shareLine: fc.Arbitrary<ShareLine> = record({
  accountKey: key,
  groupId: text,
  unit,
  window,
  since: millis,
  taken: size,
});

const partIds = fc.array(fc.constantFrom("rsv_2_1", "rsv_3_1"), { minLength: 1, maxLength: 2 });
const relation = fc.oneof(
  fc.constant({}),
  partIds.map((parts) => ({ parts })),
  fc.tuple(partIds, fc.array(shareLine, { minLength: 1, maxLength: 2 })).map(([parts, shares]) => ({
    parts,
    shares,
  })),
  fc.constant({ partOf: "rsv_1_1" }),
);

const wholeReservation = record({
  id: text,
  userKey: key,
  status: fc.constantFrom("held", "committed", "released", "expired"),
  event: text,
  metadata: orNull(text),
  quantity: orNull(size),
  count: orNull(size),
  amounts: record({ count: size, tokens: size, seconds: size, cents: size, credits: size }),
  perUnit: fc.boolean(),
  priceRow: orNull(fc.integer({ min: -1, max: 9 })),
  namesCents: fc.boolean(),
  lines: fc.array(fc.oneof(line, lineThatLeft), { maxLength: 3 }),
  credits: fc.array(creditLine, { maxLength: 3 }),
  prompt: orNull(text),
  createdAt: millis,
  expiresAt: millis,
  settledAt: orNull(millis),
});
const inRun = fc.constantFrom({}, { runId: "run_1_1" });
const rated = fc.constantFrom({}, { rate: { number: 0, tokens: 0n } }, {
  rate: { number: 12, tokens: 10n ** 30n },
});
const reservation: fc.Arbitrary<Reservation> = fc.tuple(wholeReservation, relation, inRun, rated)
  .map(([row, part, run, rate]) => ({ ...row, ...part, ...run, ...rate }) as Reservation);

const run: fc.Arbitrary<Run> = record({
  id: text,
  userKey: key,
  realm: key,
  name: orNull(text),
  metadata: orNull(text),
  around: fc.constantFrom([], ["run_1_1"], ["run_1_2", "run_1_1"]),
  limits: fc.array(
    record({
      id: text,
      unit: fc.constantFrom(...UNITS),
      event: text,
      quota: size,
      count: size,
      held: size,
    }),
    { maxLength: 3 },
  ),
  openHolds: fc.nat(9),
  createdAt: millis,
  expiresAt: millis,
  endedAt: orNull(millis),
  reason: orNull(text),
});

const subscription: fc.Arbitrary<Subscription> = record({
  id: text,
  userKey: key,
  planId: text,
  provider: orNull(text),
  externalId: orNull(text),
  startedAt: millis,
  endsAt: orNull(millis),
  ended: fc.boolean(),
  cycleAnchorAt: orNull(millis),
  customLimits: fc.dictionary(name, size, { maxKeys: 3 }),
  quantity: fc.integer({ min: 1, max: 10_000 }),
  scheduled: orNull(record({ at: millis, planId: text })),
  trial: orNull(record({ endsAt: millis, thenPlanId: orNull(text) })),
  trials: fc.array(text, { maxLength: 2 }),
  firstHeld: fc.dictionary(name, millis, { maxKeys: 3 }),
  trialCredits: fc.dictionary(name, millis, { maxKeys: 3 }),
  providerTrialEndsAt: orNull(millis),
  customFeatures: fc.dictionary(
    name,
    fc.oneof(fc.boolean(), fc.integer(), text, fc.array(text, { maxLength: 3 })),
    { maxKeys: 3 },
  ),
});

const setting: fc.Arbitrary<TopUpSetting> = record({
  packId: text,
  below: size,
  quantity: fc.integer({ min: 1 }),
  maxPerMonth: fc.integer({ min: 1 }),
  customerId: text,
  paymentMethodId: text,
  enabled: fc.boolean(),
});

const topUp: fc.Arbitrary<TopUp> = record({
  setting: orNull(setting),
  currency: text,
  failures: fc.nat(3),
  nextTryAt: orNull(millis),
  failedMethodId: orNull(text),
  stopped: fc.constantFrom("failures", "currency_changed", null),
  month: text,
  spent: fc.dictionary(fc.constantFrom("eur", "usd"), fc.nat(), { maxKeys: 2, noNullPrototype: true }),
  cappedIn: orNull(text),
});

const intent: fc.Arbitrary<TopUpIntent> = record({
  id: fc.constant("tup_1_x"),
  userKey: fc.constant(1),
  realm: fc.integer({ min: 1, max: 9 }),
  status: fc.constantFrom("open", "processing", "paid", "failed", "canceled"),
  packId: text,
  quantity: fc.integer({ min: 1 }),
  amount: fc.integer({ min: 1 }),
  currency: text,
  terms: record({
    packName: text,
    packItemId: orNull(text),
    kind: fc.constantFrom("per_type", "generic"),
    unit: fc.constantFrom("count", "cents"),
    matches: fc.array(record({ event: text }), { minLength: 1, maxLength: 2 }),
    priority: fc.integer(),
    units: size,
    expiryDays: orNull(fc.nat()),
  }),
  customerId: text,
  paymentMethodId: text,
  paymentIntentId: orNull(text),
  attempt: fc.nat(3),
  attemptedAt: orNull(millis),
  isConfirmed: fc.boolean(),
  isCalledOff: fc.boolean(),
  reason: orNull(text),
  month: text,
  createdAt: millis,
  settledAt: orNull(millis),
});

const user: fc.Arbitrary<User> = record({
  key,
  realm: fc.integer({ min: 1, max: 2 ** 31 - 1 }),
  id: text,
  entitlement: orNull(record({
    planId: text,
    subscriptionId: text,
    anchor: millis,
    startedAt: millis,
    until: orNull(millis),
    carried: fc.boolean(),
  })),
  dueAt: orNull(millis),
  mergedInto: orNull(fc.constant(2)),
  optedOut: fc.integer({ min: 0, max: 7 }),
  isErasing: fc.boolean(),
  parentKey: orNull(key),
  topUp: orNull(topUp),
  shareResets: orNull(fc.array(
    record({ accountKey: key, groupId: text, windowStart: millis, windowEnd: orNull(millis), at: millis }),
    { minLength: 1, maxLength: 2 },
  )),
  memberLimits: orNull(fc.dictionary(name, size, { maxKeys: 3 })),
  spendCaps: orNull(fc.dictionary(name, size, { maxKeys: 3 })),
});

Deno.test("a reservation is decoded unchanged", () => {
  fc.assert(fc.property(reservation, (row) => {
    const tables = new MemoryTables();
    tables.write(encodeChanges([{ verb: "append", table: "reservations", row }]));
    assert.deepEqual(tables.reservations(1), [row]);
  }));
});

Deno.test("the work of an event is decoded unchanged", () => {
  const each = orNull(size);
  const call = record({
    quantity: each,
    count: each,
    inputTokens: each,
    inputCostCents: each,
    maxOutputTokens: each,
    cacheWriteTokens: each,
    cacheWrite1hTokens: each,
  });
  const usage = record({
    inputTokens: size,
    cachedInputTokens: each,
    cacheWriteTokens: each,
    cacheWrite1hTokens: each,
    outputTokens: each,
    reasoningTokens: each,
    seconds: each,
    calls: each,
  });
  const amounts = record({ count: size, tokens: size, seconds: size, cents: size, credits: size });
  const work = record({
    size: call,
    costCents: each,
    usage: orNull(usage),
    credits: each,
    heldForMs: orNull(fc.nat()),
    held: orNull(amounts),
  });
  fc.assert(fc.property(work, (row) => assert.deepEqual(decodeWork(encodeWork(row)), row)));
  assert.deepEqual(decodeWork(""), decodeWork(",,,"));
});

Deno.test("a top-up is decoded unchanged", () => {
  fc.assert(fc.property(intent, (row) => {
    const tables = new MemoryTables();
    tables.write(encodeChanges([{ verb: "append", table: "top_ups", row }]));
    assert.deepEqual(tables.topUps(1), [row]);
  }));
});

Deno.test("a run is decoded unchanged, and keeps its metadata when it is written anew", () => {
  fc.assert(fc.property(run, size, (row, count) => {
    const tables = new MemoryTables();
    tables.write(encodeChanges([{ verb: "append", table: "runs", row }]));
    assert.deepEqual(tables.runs(1), [row]);
    const limits = row.limits.map((limit) => ({ ...limit, count }));
    const changed: Run = { ...row, metadata: null, limits };
    const [first, second] = [{ verb: "append", row }, { verb: "put", row: changed }] as const;
    tables.write(encodeChanges([{ ...second, table: "runs" }]));
    assert.deepEqual(tables.runs(1), [{ ...row, limits }]);
    const lines = encodeChanges([{ ...first, table: "runs" }, { ...second, table: "runs" }]).split("\n");
    const [appended = "", put = ""] = lines.map((line) => line.slice(CHANGE_HEAD));
    assert.equal(RUNS.over?.(appended, put), RUNS.encode({ ...row, limits }));
  }));
});

Deno.test("a subscription is decoded unchanged", () => {
  fc.assert(fc.property(subscription, (row) => {
    const tables = new MemoryTables();
    tables.write(encodeChanges([{ verb: "append", table: "subscriptions", row }]));
    assert.deepEqual(tables.subscriptions(1), [{
      ...row,
      customLimits: { ...row.customLimits },
      firstHeld: { ...row.firstHeld },
      trialCredits: { ...row.trialCredits },
      customFeatures: { ...row.customFeatures },
    }]);
  }));
});

Deno.test("a user is decoded unchanged", () => {
  fc.assert(fc.property(user, (row) => {
    const tables = new MemoryTables();
    tables.write(encodeChanges([{ verb: "put", table: "users", row }]));
    const [memberLimits, spendCaps] = [row.memberLimits, row.spendCaps].map((each) => each && { ...each });
    assert.deepEqual(tables.users(), [{ ...row, memberLimits, spendCaps }]);
  }));
});

Deno.test("a share is decoded unchanged", () => {
  fc.assert(fc.property(shareLine, text, orNull(size), (line, userId, cost) => {
    const row = { ...emptyShare(1, userId, line), count: line.taken, costCents: cost ?? 0n };
    const tables = new MemoryTables();
    tables.write(encodeChanges([{ verb: "put", table: "shares", row }]));
    assert.deepEqual(tables.shares(1), [row]);
  }));
});

Deno.test("a counter is decoded unchanged", () => {
  const values = record({
    count: size,
    adjusted: amount,
    costCents: amount,
    alerted: fc.constantFrom([], [80], [33.3, 100]),
  });
  const rare = fc.record(
    { alertedQuota: size, block: record({ filler: size, upTo: size }), resetAt: fc.nat() },
    { requiredKeys: [] },
  );
  fc.assert(fc.property(ref, values, rare, (named, counted, marked) => {
    const row = { ...emptyCounter(1, named), ...counted, ...marked };
    const tables = new MemoryTables();
    tables.write(encodeChanges([{ verb: "put", table: "counters", row }]));
    assert.deepEqual(tables.counters(1), [row]);
  }));
});

Deno.test("a credit balance is decoded unchanged", () => {
  fc.assert(fc.property(balance, (row) => {
    const tables = new MemoryTables();
    tables.write(encodeChanges([{ verb: "append", table: "credit_balances", row }]));
    assert.deepEqual(tables.balances(1), [row]);
  }));
});

Deno.test("a ledger entry is decoded unchanged", () => {
  fc.assert(fc.property(entry, (row) => {
    const tables = new MemoryTables();
    tables.write(encodeChanges([{ verb: "append", table: "credit_ledger", row }]));
    assert.deepEqual(tables.ledger(1), [row]);
  }));
});

Deno.test("a journal line from before a column was added gets the column's value", () => {
  fc.assert(fc.property(wholeReservation, (row) => {
    const today = { ...row, credits: [], prompt: null, priceRow: null, namesCents: false };
    const full = encodeChanges([{ verb: "append", table: "reservations", row: today }]);
    const old = full.split("\t").slice(0, -RESERVATIONS.later.length).join("\t");
    const other = encodeChanges([{ verb: "put", table: "credit_issues", row: { realm: 1, issued: 2 } }]);
    assert.equal(withLaterColumns(`${old}\n${other}\n${full}`), `${full}\n${other}\n${full}`);
  }));
});

Deno.test("an encoded change is one line, whatever its text", () => {
  fc.assert(fc.property(reservation, (row) => {
    const encoded = encodeChanges([{ verb: "put", table: "reservations", row }]);
    assert.doesNotMatch(encoded, /[\n\r]/);
  }));
});
