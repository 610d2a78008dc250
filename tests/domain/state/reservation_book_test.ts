// Reservations in memory: what is read is what was kept, whatever a caller wrote.

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { ownedId } from "../../../src/domain/values/ids.ts";
import { UNITS } from "../../../src/domain/catalog/plan.ts";
import type { CounterRef } from "../../../src/domain/state/counter.ts";
import { HoldTexts, textOfHold } from "../../../src/domain/state/hold_text.ts";
import type { Line, Reservation } from "../../../src/domain/state/reservation.ts";
import { TextRoom } from "../../../src/domain/state/text_room.ts";
import { ReservationBook } from "../../../src/domain/state/reservation_book.ts";

const HELD: Reservation = {
  id: "rsv_1_a",
  userKey: 1,
  status: "held",
  event: "chat.reply",
  metadata: null,
  quantity: null,
  count: null,
  amounts: { tokens: 0n, seconds: 0n, count: 1_000_000n, cents: 0n, credits: 0n },
  perUnit: false,
  priceRow: null,
  namesCents: false,
  lines: [],
  credits: [],
  prompt: null,
  createdAt: 1_000,
  expiresAt: 2_000,
  settledAt: null,
};
/** A hold whose texts take 20 bytes. */
const TOLD: Reservation = { ...HELD, metadata: '{"a":1}', prompt: "two" };
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

const unrated: fc.Arbitrary<Reservation> = fc.record({
  id: reservationId,
  userKey: fc.nat(),
  status: fc.constant("held"),
  event: anyText,
  metadata: orNull(anyText),
  quantity: orNull(amount),
  count: orNull(amount),
  amounts: fc.record(
    { tokens: amount, seconds: amount, count: amount, cents: amount, credits: amount },
    PLAIN,
  ),
  perUnit: fc.boolean(),
  priceRow: orNull(fc.integer({ min: -1, max: 1_000_000 })),
  namesCents: fc.boolean(),
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

const rate = fc.record({ number: fc.nat(), tokens: fc.bigInt({ min: 0n, max: 10n ** 40n }) }, PLAIN);
const held = fc.oneof(unrated, fc.tuple(unrated, rate).map(([row, own]) => ({ ...row, rate: own })));

Deno.test("an open hold is read unchanged, whatever texts it has", () => {
  fc.assert(fc.property(held, (row) => {
    const book = new ReservationBook(row.userKey, 1, new HoldTexts());
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

Deno.test("holds of one event that differ in one field are read with their own values, in any order", () => {
  const texts = new HoldTexts();
  const book = new ReservationBook(1, 1, texts);
  const held = [1n, 2n, 1n, 2n].map((count, place): Reservation => {
    const line = {
      planId: "p",
      groupId: "g",
      window: { start: 0, end: 10 },
      unit: "count",
      taken: count,
    } as const;
    return { ...HELD, id: `rsv_1_${place}`, amounts: { ...HELD.amounts, count }, lines: [line] };
  });
  for (const row of held) book.set(row);
  assert.deepEqual([...book.values()], held);
  assert.equal(textOfHold(held[0] as Reservation, texts), textOfHold(held[2] as Reservation, texts));
});

/** The members that a shared text depends on. A hold with any of the others differs, or has a text of its own. */
type TextMember = Exclude<
  keyof Reservation,
  | ("id" | "userKey" | "status" | "settledAt" | "metadata" | "prompt")
  | ("parts" | "partOf" | "runId")
>;

Deno.test("no two holds that differ in any member share a text", () => {
  const line = {
    planId: "p",
    groupId: "g",
    window: { start: 0, end: 10 },
    unit: "count",
    taken: 1n,
  } as const;
  const one: Reservation = { ...HELD, lines: [line, line] };
  const lines: Required<{ [Member in keyof Line]: Pick<Line, Member>[] }> = {
    planId: [{ planId: "q" }],
    groupId: [{ groupId: "h" }],
    window: [
      { window: { start: 1, end: 10 } },
      { window: { start: 0, end: null } },
      { window: { start: 0, end: 10, kind: "session" } },
    ],
    unit: [{ unit: "tokens" }],
    taken: [{ taken: 2n }],
    overage: [{ overage: 1n }],
  };
  const others: Required<{ [Member in TextMember]: Pick<Reservation, Member>[] }> = {
    event: [{ event: "another" }],
    quantity: [{ quantity: 1n }],
    count: [{ count: 1n }],
    amounts: UNITS.map((each) => ({ amounts: { ...one.amounts, [each]: 7n } })),
    perUnit: [{ perUnit: !one.perUnit }],
    priceRow: [{ priceRow: 1 }],
    namesCents: [{ namesCents: !one.namesCents }],
    createdAt: [{ createdAt: one.createdAt + 1 }],
    expiresAt: [{ expiresAt: one.expiresAt + 1 }],
    isBare: [{ isBare: true }],
    rate: [{ rate: { number: 1, tokens: 0n } }, { rate: { number: 1, tokens: 1n } }],
    credits: [{ credits: [{ balanceId: "b", unit: "count", taken: 1n }] }],
    shares: [{ shares: [{ accountKey: 1, since: 0, ...line }] }],
    lines: [
      { lines: [line] },
      ...Object.values(lines).flat().map((part) => ({ lines: [line, { ...line, ...part }] })),
    ],
  };
  const rows = [one, ...Object.values(others).flat().map((part) => ({ ...one, ...part }))];
  for (const row of rows) {
    for (const other of rows) {
      const texts = new HoldTexts();
      const isSame = textOfHold(row, texts) === textOfHold(other, texts);
      assert.equal(isSame, row === other, JSON.stringify([row, other], (_, value) => String(value)));
    }
  }
});

Deno.test("a hold whose lines left counters keeps them", () => {
  const line = { ...BEHIND, planId: "new", unit: "count", taken: 1n, left: [BEHIND] } as const;
  const book = new ReservationBook(HELD.userKey, 1, new HoldTexts());
  book.set(HELD);
  book.set({ ...HELD, lines: [line] });
  assert.deepEqual(book.get(HELD.id)?.lines, [line]);
  assert.equal(book.expiryOf(HELD.id), HELD.expiresAt);
  book.set(HELD);
  assert.deepEqual(book.get(HELD.id), HELD);
  assert.deepEqual([...book.keys()], [HELD.id]);
});

Deno.test("each reservation is there once, with its last value, until it is deleted", () => {
  const book = new ReservationBook(HELD.userKey, 1, new HoldTexts());
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

/** Bounds with room for some holds like `TOLD`. */
function roomFor({ ofUser = 9, ofApp = 9, inAll = 9 }, appOf?: (realm: number) => string): HoldTexts {
  const bounds = {
    textBytesOfUserMax: 20 * ofUser,
    textBytesOfAppMax: 20 * ofApp,
    textBytesMax: 20 * inAll,
  };
  return new HoldTexts(new TextRoom(bounds, appOf));
}

/** Adds a hold with texts under each id; returns the ids of those that are bare. */
function bareOf(book: ReservationBook, ...ids: readonly string[]): string[] {
  for (const id of ids) book.set({ ...TOLD, id });
  return ids.filter((id) => book.stored(id)?.isBare === true);
}

Deno.test("texts of a user, an app and all apps have their room; without room a hold is bare", () => {
  const ofUser = roomFor({ ofUser: 2 });
  assert.deepEqual(bareOf(new ReservationBook(1, 1, ofUser), "a", "b", "c"), ["c"]);
  assert.deepEqual(bareOf(new ReservationBook(2, 1, ofUser), "a"), []);
  // Both realms of an app share its room.
  const ofApp = roomFor({ ofApp: 2 }, (realm) => realm < 3 ? "one" : "other");
  assert.deepEqual(bareOf(new ReservationBook(1, 1, ofApp), "a"), []);
  assert.deepEqual(bareOf(new ReservationBook(2, 2, ofApp), "a", "b"), ["b"]);
  assert.deepEqual(bareOf(new ReservationBook(3, 3, ofApp), "a"), []);
  assert.deepEqual([ofApp.room.bytes, ofApp.room.bytesOfAppMost], [60, 40]);
  const inAll = roomFor({ inAll: 1 });
  assert.deepEqual(bareOf(new ReservationBook(1, 1, inAll), "a"), []);
  assert.deepEqual(bareOf(new ReservationBook(2, 2, inAll), "a"), ["a"]);
});

Deno.test("room is given back by a settlement, a deletion and the end of a book, once", () => {
  const texts = roomFor({});
  const { room } = texts;
  const book = new ReservationBook(HELD.userKey, 1, texts);
  assert.deepEqual(bareOf(book, "a", "b", "c", "d"), []);
  book.set({ ...TOLD, id: "a", expiresAt: 5_000 });
  book.set({ ...TOLD, id: "b", status: "expired", settledAt: 2_000 });
  assert.equal(room.bytes, 80);
  book.set({ ...TOLD, id: "b", status: "committed", prompt: null, settledAt: 2_000 });
  book.delete("c");
  book.set({ ...TOLD, id: "d", lines: [{ ...BEHIND, unit: "count", taken: 1n, left: [BEHIND] }] });
  assert.equal(room.bytes, 40);
  book.delete("d");
  book.leave();
  book.leave();
  assert.deepEqual([room.bytes, room.bytesOfAppMost], [0, 0]);
});

Deno.test("a bare hold has its texts while they are lent, and stays bare in whatever state", () => {
  const book = new ReservationBook(HELD.userKey, 1, roomFor({ ofUser: 0 }));
  assert.deepEqual(bareOf(book, HELD.id), [HELD.id]);
  assert.deepEqual(book.get(HELD.id), { ...HELD, isBare: true });
  assert.equal(book.expiryOf(HELD.id), HELD.expiresAt);
  assert.equal(book.bareSince(HELD.id), HELD.createdAt);
  const { id, metadata, prompt } = TOLD;
  book.lend({ id, metadata, prompt });
  assert.deepEqual(book.get(id), TOLD);
  book.set({ ...TOLD, status: "expired", settledAt: 2_000 });
  assert.deepEqual(book.get(id), { ...TOLD, status: "expired", settledAt: 2_000 });
  book.lend(null);
  assert.deepEqual(book.get(id), { ...HELD, status: "expired", settledAt: 2_000, isBare: true });
  book.set({ ...TOLD, status: "committed", prompt: null, settledAt: 3_000 });
  // Nothing asks for the texts of what is settled for good.
  assert.equal(book.bareSince(id), null);
  book.set({ ...HELD, id: "none" });
  assert.deepEqual(book.get("none"), { ...HELD, id: "none" });
});
