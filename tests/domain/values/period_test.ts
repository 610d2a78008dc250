// Windows of every kind of period, around every kind of edge.

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { type Period, windowAt } from "../../../src/domain/values/period.ts";
import { windowAt as modelWindowAt } from "../../model/windows.ts";

interface Row {
  readonly name: string;
  readonly type: Period["type"];
  readonly anchor: Period["anchor"];
  readonly from: string;
  readonly at: string;
  readonly window: readonly [string, string | null];
}

const START = "subscription_start";

// deno-fmt-ignore: a row a case
const ROWS: readonly Row[] = [
  { name: "a calendar day", type: "daily", anchor: "calendar", from: "2026-01-31T10:30Z", at: "2026-03-11T00:00Z", window: ["2026-03-11T00:00Z", "2026-03-12T00:00Z"] },
  { name: "the last moment of a calendar day", type: "daily", anchor: "calendar", from: "2026-01-31T10:30Z", at: "2026-03-10T23:59:59.999Z", window: ["2026-03-10T00:00Z", "2026-03-11T00:00Z"] },
  { name: "a calendar week begins on Monday", type: "weekly", anchor: "calendar", from: "2026-01-31T10:30Z", at: "2026-03-15T23:00Z", window: ["2026-03-09T00:00Z", "2026-03-16T00:00Z"] },
  { name: "a calendar week over new year", type: "weekly", anchor: "calendar", from: "2026-01-31T10:30Z", at: "2027-01-01T00:00Z", window: ["2026-12-28T00:00Z", "2027-01-04T00:00Z"] },
  { name: "a calendar month", type: "monthly", anchor: "calendar", from: "2026-01-31T10:30Z", at: "2026-12-31T23:59Z", window: ["2026-12-01T00:00Z", "2027-01-01T00:00Z"] },
  { name: "February of a leap year", type: "monthly", anchor: "calendar", from: "2026-01-31T10:30Z", at: "2028-02-29T12:00Z", window: ["2028-02-01T00:00Z", "2028-03-01T00:00Z"] },
  { name: "a calendar lifetime begins with the subscription", type: "lifetime", anchor: "calendar", from: "2026-01-31T10:30Z", at: "2030-01-01T00:00Z", window: ["2026-01-31T10:30Z", null] },
  { name: "a day from the start", type: "daily", anchor: START, from: "2026-01-31T10:30Z", at: "2026-02-02T10:29Z", window: ["2026-02-01T10:30Z", "2026-02-02T10:30Z"] },
  { name: "a day before the start", type: "daily", anchor: START, from: "2026-01-31T10:30Z", at: "2026-01-31T10:29:59.999Z", window: ["2026-01-30T10:30Z", "2026-01-31T10:30Z"] },
  { name: "a week from the start", type: "weekly", anchor: START, from: "2026-01-31T10:30Z", at: "2026-02-14T10:30Z", window: ["2026-02-14T10:30Z", "2026-02-21T10:30Z"] },
  { name: "a week before 1970", type: "weekly", anchor: START, from: "1969-12-25T06:00Z", at: "1969-12-20T00:00Z", window: ["1969-12-18T06:00Z", "1969-12-25T06:00Z"] },
  { name: "31 January steps to 28 February", type: "monthly", anchor: START, from: "2026-01-31T10:30Z", at: "2026-02-28T10:29Z", window: ["2026-01-31T10:30Z", "2026-02-28T10:30Z"] },
  { name: "and from there to 31 March", type: "monthly", anchor: START, from: "2026-01-31T10:30Z", at: "2026-02-28T10:30Z", window: ["2026-02-28T10:30Z", "2026-03-31T10:30Z"] },
  { name: "30 April between two long months", type: "monthly", anchor: START, from: "2026-01-31T10:30Z", at: "2026-05-01T00:00Z", window: ["2026-04-30T10:30Z", "2026-05-31T10:30Z"] },
  { name: "29 February of a leap year", type: "monthly", anchor: START, from: "2026-01-31T10:30Z", at: "2028-03-01T00:00Z", window: ["2028-02-29T10:30Z", "2028-03-31T10:30Z"] },
  { name: "months back over new year", type: "monthly", anchor: START, from: "2026-03-31T01:00Z", at: "2025-12-31T00:59Z", window: ["2025-11-30T01:00Z", "2025-12-31T01:00Z"] },
  { name: "months back to February", type: "monthly", anchor: START, from: "2026-03-31T01:00Z", at: "2026-03-01T00:00Z", window: ["2026-02-28T01:00Z", "2026-03-31T01:00Z"] },
  { name: "an anchor in the year 1", type: "monthly", anchor: START, from: "0001-01-31T10:30Z", at: "2026-03-01T00:00Z", window: ["2026-02-28T10:30Z", "2026-03-31T10:30Z"] },
  { name: "within the year 1", type: "monthly", anchor: START, from: "0001-01-31T10:30Z", at: "0001-03-01T00:00Z", window: ["0001-02-28T10:30Z", "0001-03-31T10:30Z"] },
  { name: "a calendar month of the year 99", type: "monthly", anchor: "calendar", from: "0099-01-31T10:30Z", at: "0099-12-31T23:59Z", window: ["0099-12-01T00:00Z", "0100-01-01T00:00Z"] },
  { name: "days from an anchor in the year 50", type: "daily", anchor: START, from: "0050-02-28T10:30Z", at: "2026-03-01T10:29Z", window: ["2026-02-28T10:30Z", "2026-03-01T10:30Z"] },
  { name: "a hundred years on", type: "monthly", anchor: START, from: "2026-01-31T10:30Z", at: "2100-02-28T10:30Z", window: ["2100-02-28T10:30Z", "2100-03-31T10:30Z"] },
  { name: "a calendar hour", type: "hourly", anchor: "calendar", from: "2026-01-31T10:30Z", at: "2026-03-11T05:59Z", window: ["2026-03-11T05:00Z", "2026-03-11T06:00Z"] },
  { name: "an hour from the start", type: "hourly", anchor: START, from: "2026-01-31T10:30Z", at: "2026-03-11T05:29Z", window: ["2026-03-11T04:30Z", "2026-03-11T05:30Z"] },
  { name: "a calendar year", type: "yearly", anchor: "calendar", from: "2026-05-31T10:30Z", at: "2027-12-31T23:59Z", window: ["2027-01-01T00:00Z", "2028-01-01T00:00Z"] },
  { name: "a year from the start", type: "yearly", anchor: START, from: "2026-05-31T10:30Z", at: "2027-05-31T10:29Z", window: ["2026-05-31T10:30Z", "2027-05-31T10:30Z"] },
  { name: "years from 29 February", type: "yearly", anchor: START, from: "2028-02-29T10:30Z", at: "2029-03-01T00:00Z", window: ["2029-02-28T10:30Z", "2030-02-28T10:30Z"] },
  { name: "and back to 29 February", type: "yearly", anchor: START, from: "2028-02-29T10:30Z", at: "2032-02-29T10:30Z", window: ["2032-02-29T10:30Z", "2033-02-28T10:30Z"] },
  { name: "years back", type: "yearly", anchor: START, from: "2028-02-29T10:30Z", at: "2027-01-01T00:00Z", window: ["2026-02-28T10:30Z", "2027-02-28T10:30Z"] },
  { name: "a lifetime from the start", type: "lifetime", anchor: START, from: "2026-01-31T10:30Z", at: "2026-01-31T10:30Z", window: ["2026-01-31T10:30Z", null] },
];

for (const { name, type, anchor, from, at, window: [start, end] } of ROWS) {
  Deno.test(`window: ${name}`, () => {
    const origin = Date.parse(from);
    const window = { start: Date.parse(start), end: end === null ? null : Date.parse(end) };
    assert.deepEqual(windowAt({ type, anchor }, Date.parse(at), origin, origin), window);
    const anchors = { startedAt: origin, cycleAnchorAt: null };
    assert.deepEqual(modelWindowAt({ type, anchor }, anchors, Date.parse(at)), window, "of the model");
  });
}

Deno.test("a cycle anchor moves stepped windows and leaves a lifetime at the start", () => {
  const [at, anchor, startedAt] = ["2026-03-10T00:00Z", "2026-03-05T00:00Z", "2026-01-01T00:00Z"].map((
    text,
  ) => Date.parse(text)) as [number, number, number];
  assert.equal(windowAt({ type: "monthly", anchor: START }, at, anchor, startedAt).start, anchor);
  assert.equal(windowAt({ type: "lifetime", anchor: START }, at, anchor, startedAt).start, startedAt);
});

Deno.test("windows contain their moment and tile time without gap or overlap", () => {
  const moment = fc.integer({ min: Date.UTC(1950, 0, 1), max: Date.UTC(2150, 0, 1) });
  const period = fc.record({
    type: fc.constantFrom<Period["type"]>("daily", "weekly", "monthly"),
    anchor: fc.constantFrom<Period["anchor"]>("calendar", "subscription_start"),
  });
  fc.assert(
    fc.property(period, moment, moment, (kind, at, origin) => {
      const { start, end } = windowAt(kind, at, origin, origin);
      assert.ok(end !== null && start <= at && at < end);
      assert.equal(windowAt(kind, start, origin, origin).start, start);
      assert.equal(windowAt(kind, end, origin, origin).start, end);
      assert.equal(windowAt(kind, start - 1, origin, origin).end, start);
    }),
    { numRuns: 3_000 },
  );
});
