// Functions that pages use: places in JSON, differences of lines, lists as CSV, the series of a chart.

import assert from "node:assert/strict";
import { numberIn } from "../../routes/console/parts/form.tsx";
import { csvFile, csvStream } from "../../routes/console/parts/csv.ts";
import { agoText, comingText } from "../../routes/console/parts/format.tsx";
import { offsetAt, placeOf, readJson } from "../../routes/console/parts/json_places.ts";
import { diffLines } from "../../routes/console/parts/line_diff.ts";
import { colourOf, coloursOf } from "../../routes/console/parts/colours.ts";
import { deltaText } from "../../routes/console/parts/figure.tsx";
import { DOWNLOAD_LIMITS } from "../../src/process/limits.ts";
import { changedLimits } from "../support/limits.ts";
import { scaleOf } from "../../routes/console/parts/usage_chart.tsx";
import { seriesOf } from "../../routes/console/parts/daily_usage.tsx";

const FAULTS: readonly (readonly [text: string, line: number, column: number, message: RegExp])[] = [
  ["", 1, 1, /unexpected end/],
  ['{\n  "a": 1,\n}', 3, 1, /trailing comma/],
  ["[1, 2,]", 1, 7, /trailing comma/],
  ['{\n  "a": 1\n  "b": 2\n}', 3, 3, /missing "," or "}"/],
  ["[1 2]", 1, 4, /missing "," or "]"/],
  ['{"a" 1}', 1, 6, /missing ":"/],
  ["{a: 1}", 1, 2, /name in double quotes/],
  ['{"a": }', 1, 7, /missing value/],
  ['{"a": tru}', 1, 7, /missing value/],
  ['{"a": 01}', 1, 8, /missing "," or "}"/],
  ['{"a": "x\ny"}', 1, 7, /unterminated string/],
  ['{"a": "\\x"}', 1, 7, /unterminated string/],
  ['{"a": 1, "a": 2}', 1, 10, /duplicate name "a"/],
  ["{} {}", 1, 4, /unexpected text after the end/],
  ["[".repeat(1000), 1, 202, /nested too deeply/],
];

Deno.test("a syntax error in JSON has its line and column", () => {
  for (const [text, line, column, message] of FAULTS) {
    const read = readJson(text);
    assert.ok("fault" in read, text);
    assert.deepEqual(placeOf(text, read.fault.offset), { line, column }, text);
    assert.match(read.fault.message, message);
  }
});

Deno.test("JSON is read as JSON.parse reads it, and each value has its place", () => {
  const document = {
    a: [{ b: 'ü\u007f"\\\n😀' }, -1.5e-7, true, null],
    "": {},
    c: { "d.e": [[]] },
    ["__proto__x"]: 0,
  };
  const text = JSON.stringify(document, null, 2);
  const read = readJson(text);
  assert.ok("value" in read);
  assert.deepEqual(read.value, document);
  const at = (path: string) => text.slice(offsetAt(read.places, path)).split("\n", 1)[0]?.replace(/,$/, "");
  assert.equal(
    at("a[0].b"),
    JSON.stringify(document.a[0] === null ? "" : (document.a[0] as { b: string }).b),
  );
  assert.equal(at("a[1]"), "-1.5e-7");
  assert.equal(at("a[2]"), "true");
  // A member that is missing is shown at what it is missing in.
  assert.equal(offsetAt(read.places, "a[0].missing.deeper"), read.places.get("a[0]"));
  assert.equal(offsetAt(read.places, "missing"), 0);
});

Deno.test("times are relative within a week, and coming ones within a day", () => {
  const now = Date.UTC(2026, 10, 26, 12);
  const at = (ms: number) => new Date(now + ms).toISOString();
  const [minute, hour, day] = [60_000, 3_600_000, 86_400_000];
  const ago: readonly (readonly [number, string])[] = [
    [-59_999, "just now"],
    [-minute, "1 min ago"],
    [-hour + 1, "59 min ago"],
    [-day + 1, "23 h ago"],
    [-7 * day + 1, "6 d ago"],
    [-7 * day, "Nov 19"],
    [-400 * day, "Oct 22, 2025"],
  ];
  for (const [ms, text] of ago) assert.equal(agoText(at(ms), now), text);
  const coming: readonly (readonly [number, string])[] = [
    [-1, "in 1 min"],
    [minute + 1, "in 2 min"],
    [5 * hour, "in 5 h"],
    [day, "Nov 27"],
    [60 * day, "Jan 25, 2027"],
  ];
  for (const [ms, text] of coming) assert.equal(comingText(at(ms), now), text);
});

Deno.test("a difference shows changed lines with some around them, and puts both texts together", () => {
  const lines = Array.from({ length: 30 }, (_, index) => `line ${index}`);
  const changed = lines.with(10, "other").toSpliced(20, 1);
  const diff = diffLines(lines.join("\n"), changed.join("\n")) ?? [];
  assert.deepEqual(
    diff.filter(({ kind }) => kind === "added" || kind === "removed").map(({ kind, text }) => [kind, text]),
    [["removed", "line 10"], ["added", "other"], ["removed", "line 20"]],
  );
  assert.deepEqual(diff.filter(({ kind }) => kind === "gap").length, 3);
  assert.equal(diff.filter(({ kind }) => kind === "same").length, 12);
  assert.deepEqual(diffLines("a\nb", "a\nb"), [{ kind: "gap", text: "" }]);
  const many = (name: string) => Array.from({ length: 3_000 }, (_, index) => `${name}${index}`).join("\n");
  assert.equal(diffLines(many("a"), many("b")), null);
});

Deno.test("texts of a CSV are quoted, none is a formula, and numbers stay numbers", () => {
  const { text, name } = csvFile("list", ["a", "b"], [
    { a: 'say "hi", you', b: -5 },
    { a: '=HYPERLINK("http://evil")', b: 0.25 },
    { a: "+1", b: null },
    { a: "-1", b: 1 },
    { a: "@x\r\ny", b: 2 },
    { a: "x;=1+1", b: 3 },
  ]);
  assert.equal(name, "list.csv");
  assert.equal(
    text,
    '"a","b"\r\n"say ""hi"", you",-5\r\n"\'=HYPERLINK(""http://evil"")",0.25\r\n"\'+1",\r\n"\'-1",1\r\n' +
      '"\'@x\r\ny",2\r\n"x;=1+1",3\r\n',
  );
});

Deno.test("a CSV of pages comes whole, and is given up where its reader takes nothing more", async () => {
  using _limits = changedLimits(DOWNLOAD_LIMITS, { readerGoneMs: 5 });
  let ended = 0;
  async function* pages() {
    try {
      for (const a of [1, 2]) yield [{ a }];
    } finally {
      ended += 1;
    }
  }
  const body = () => csvStream("list", ["a"], pages()).text as ReadableStream<Uint8Array>;
  assert.equal(await new Response(body()).text(), '"a"\r\n1\r\n2\r\n');
  const reader = body().getReader();
  for (let read = 0; read < 2; read++) await reader.read();
  while (ended < 2) await new Promise((resolve) => setTimeout(resolve, 1));
  await assert.rejects(reader.read(), (line) => /its reader takes nothing/.test(line as string));
});

Deno.test("the series of a chart add up to the sums of the days, the largest first", () => {
  const part = (event: string, events: number) => ({
    event,
    userId: null,
    model: null,
    planId: null,
    hour: null,
    events,
    blocked: 0,
    costCents: events / 10,
    quantity: 1,
  });
  const names = ["a", "b", "c", "d", "e", "f", "g", "h"];
  const days = [10, 50].map((events, day) => ({
    day: `2026-01-0${day + 1}`,
    events: events + 40,
    blocked: 0,
    users: 1,
    costCents: (events + 40) / 10,
    parts: names.map((name, index) => part(name, index + (day === 1 && name === "a" ? 20 : 0))),
  }));
  const series = seriesOf({ by: "event", days }, "events");
  assert.equal(series.length, 8);
  assert.deepEqual([series[0]?.name, series.at(-1)?.name], ["a", "all others"]);
  days.forEach(({ events }, day) => {
    assert.equal(series.reduce((sum, { values }) => sum + (values[day] ?? 0), 0), events);
  });
  const cents = seriesOf({ by: "event", days }, "cents");
  assert.ok(cents.every(({ values }) => values.every((value) => String(value).length < 9)));
});

Deno.test("a name keeps its colour whatever is shown beside it, and two names get two", () => {
  const names = Array.from({ length: 12 }, (_, place) => `image.${place}`);
  const colours = coloursOf(names);
  assert.equal(new Set(colours.values()).size, 12);
  assert.deepEqual(coloursOf(names.toReversed()), colours);
  assert.equal(colourOf(coloursOf([]), "image.1"), coloursOf(["image.1"]).get("image.1"));
  assert.equal(coloursOf([...names, "one more"]).size, 13);
});

Deno.test("scales end at round numbers, and differences say from where", () => {
  const rows: [number, number][] = [[0, 1], [0.3, 0.4], [1, 1], [3, 4], [41, 60], [99, 100], [101, 200]];
  for (const [most, top] of rows) assert.equal(scaleOf(most), top, String(most));
  assert.equal(deltaText({ now: 3, before: 3 }), "unchanged");
  assert.equal(deltaText({ now: 5, before: 0 }), "+5 from 0");
  assert.equal(deltaText({ now: 150, before: 200 }, "cents"), "−25 % from $2.00");
  assert.equal(deltaText({ now: 205, before: 200 }), "+2.5 % from 200");
});

Deno.test("commas of a number in a form only part thousands", () => {
  const read = ["12", " 1,234,567.5 ", "-.5", "1e3", ""].map(numberIn);
  assert.deepEqual(read, [12, 1_234_567.5, -0.5, 1000, undefined]);
  for (const text of ["1,5", "1,23", "12,3456", "1,,000", "0x10", "Infinity", "1 000", "-"]) {
    assert.equal(numberIn(text), text);
  }
});
