// Reservations in memory: what is read is what was kept, whatever a caller wrote.

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { ownedId } from "../../../src/domain/values/ids.ts";
import type { CounterRef } from "../../../src/domain/state/counter.ts";
import { HoldTexts, textOfHold } from "../../../src/domain/state/hold_text.ts";
import type { Reservation } from "../../../src/domain/state/reservation.ts";
import { ReservationBook } from "../../../src/domain/state/reservation_book.ts";

const HELD: Reservation = {
  id: "rsv_1_a",
  userKey: 1,
  status: "held",
  event: "chat.reply",
  metadata: null,
  quantity: null,
  count: null,
  amounts: { tokens: 0n, seconds: 0n, count: 1_000_000n, cents: 0n },
  perUnit: false,
  priceRow: null,
  toldCents: false,
  lines: [],
  credits: [],
  prompt: null,
  createdAt: 1_000,
  expiresAt: 2_000,
  settledAt: null,
};
const BEHIND: CounterRef = { planId: "old", groupId: "lg", window: { start: 0, end: null } };

/** Any text: with line feeds, tabs, halves of surrogate pairs, and digits that could be taken for a length. */
const anyText = fc.string({
  unit: fc.oneof(fc.constantFrom("\n", "\t", "1", "\ud800", "é", "😀"), fc.string()),
});
const millis = fc.integer({ min: 0, max: 4_000_000_000_000 });
const amount = fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n });
const orNull = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: null });
const unit = fc.constantFrom("count", "tokens", "seconds", "cents");
/** Objects as literals make them. */
const PLAIN = { noNullPrototype: true };
const id = fc.stringMatching(/^[\w.-]{1,20}$/);
const reservationId = fc.oneof(id, fc.stringMatching(/^rsv_[0-9a-z]{1,11}_0[0-9a-v]{19}$/));

const held: fc.Arbitrary<Reservation> = fc.record({
  id: reservationId,
  userKey: fc.nat(),
  status: fc.constant("held"),
  event: anyText,
  metadata: orNull(anyText),
  quantity: orNull(amount),
  count: orNull(amount),
  amounts: fc.record({ tokens: amount, seconds: amount, count: amount, cents: amount }, PLAIN),
  perUnit: fc.boolean(),
  priceRow: orNull(fc.integer({ min: -1, max: 1_000_000 })),
  toldCents: fc.boolean(),
  lines: fc.array(
    fc.record({
      planId: id,
      groupId: id,
      window: fc.record({ start: millis, end: orNull(millis) }, PLAIN),
      unit,
      taken: amount,
    }, PLAIN),
    { maxLength: 3 },
  ),
  credits: fc.array(fc.record({ balanceId: id, unit, taken: amount }, PLAIN), { maxLength: 3 }),
  prompt: orNull(anyText),
  createdAt: millis,
  expiresAt: millis,
  settledAt: fc.constant(null),
}, PLAIN);

Deno.test("an open hold is read unchanged, whatever texts it has", () => {
  fc.assert(fc.property(held, (row) => {
    const book = new ReservationBook(row.userKey, new HoldTexts());
    book.set(row);
    assert.deepEqual(book.get(row.id), row);
    assert.equal(book.expiryOf(row.id), row.expiresAt);
  }));
});

Deno.test("holds of one kind share one text, whenever they were made", () => {
  const at = (moment: number): Reservation => ({
    ...HELD,
    id: ownedId("reservation", moment, moment.toString(32).padStart(10, "0").padEnd(20, "0")),
    createdAt: moment,
    expiresAt: moment + 600_000,
  });
  const [one, other] = [at(1_760_000_000_000), at(1_760_000_000_001)];
  const texts = new HoldTexts();
  assert.equal(textOfHold(one, texts), textOfHold(other, texts));
  assert.notEqual(textOfHold(one, texts), textOfHold({ ...other, expiresAt: one.expiresAt }, texts));
});

Deno.test("a hold whose lines left counters keeps them", () => {
  const line = { ...BEHIND, planId: "new", unit: "count", taken: 1n, left: [BEHIND] } as const;
  const book = new ReservationBook(HELD.userKey, new HoldTexts());
  book.set(HELD);
  book.set({ ...HELD, lines: [line] });
  assert.deepEqual(book.get(HELD.id)?.lines, [line]);
  assert.equal(book.expiryOf(HELD.id), HELD.expiresAt);
  book.set(HELD);
  assert.deepEqual(book.get(HELD.id), HELD);
  assert.deepEqual([...book.keys()], [HELD.id]);
});

Deno.test("each reservation is there once, with its last value, until it is deleted", () => {
  const book = new ReservationBook(HELD.userKey, new HoldTexts());
  const settled: Reservation = { ...HELD, status: "committed", settledAt: 1_500 };
  book.set(HELD);
  book.set({ ...HELD, id: "rsv_1_b" });
  book.set(settled);
  assert.deepEqual([...book.values()].map(({ id, status }) => [id, status]), [
    ["rsv_1_b", "held"],
    [HELD.id, "committed"],
  ]);
  assert.equal(book.expiryOf(HELD.id), null);
  book.delete(HELD.id);
  book.delete("rsv_1_b");
  assert.deepEqual([book.has(HELD.id), book.get("rsv_1_b"), [...book.keys()]], [false, undefined, []]);
});
