// How prompts and responses are cut: by bytes of UTF-8 between characters where they are stored, by characters in
// previews.

import assert from "node:assert/strict";
import type { Customer } from "./credits_support.ts";
import { serviceOfFile } from "./support.ts";
import { feedOf, newLogged } from "./privacy_support.ts";

const service = serviceOfFile();

const BYTES_MAX = 32_768;
const SUFFIX = "…[truncated]";
const encoder = new TextEncoder();

/** Texts around the bound, of characters of one to four bytes, with what is stored of them. */
const TEXTS: readonly (readonly [name: string, text: string, stored: string])[] = [
  ["one byte each, at the bound", "a".repeat(32_768), "a".repeat(32_768)],
  ["one byte each, one over", "a".repeat(32_769), "a".repeat(32_768) + SUFFIX],
  ["two bytes each, at the bound", "é".repeat(16_384), "é".repeat(16_384)],
  ["two bytes each, across the bound", "a" + "é".repeat(16_384), "a" + "é".repeat(16_383) + SUFFIX],
  ["three bytes each, across the bound", "€".repeat(10_923), "€".repeat(10_922) + SUFFIX],
  ["three bytes each, at the bound", "aa" + "€".repeat(10_922), "aa" + "€".repeat(10_922)],
  ["four bytes each, at the bound", "😀".repeat(8192), "😀".repeat(8192)],
  ["four bytes each, one over", "😀".repeat(8193), "😀".repeat(8192) + SUFFIX],
  ["four bytes each, across the bound by one", "a" + "😀".repeat(8192), "a" + "😀".repeat(8191) + SUFFIX],
  [
    "four bytes each, across the bound by three",
    "aaa" + "😀".repeat(8192),
    "aaa" + "😀".repeat(8191) + SUFFIX,
  ],
  ["far over the bound", "x€😀".repeat(40_000), cutByCharacters("x€😀".repeat(40_000)) + SUFFIX],
  ["a mark of its own", "a".repeat(32_700) + SUFFIX, "a".repeat(32_700) + SUFFIX],
];

/** The same rule, a character at a time. */
function cutByCharacters(text: string): string {
  let kept = "";
  let bytes = 0;
  for (const character of text) {
    bytes += encoder.encode(character).length;
    if (bytes > BYTES_MAX) break;
    kept += character;
  }
  return kept;
}

/** The log of an event: prompt and response. */
async function textsOf(customer: Customer, eventId: string): Promise<[string | null, string | null]> {
  const { prompt, response } = await customer.event(eventId);
  return [prompt, response];
}

for (const [name, text, stored] of TEXTS) {
  Deno.test(`a text is cut between characters and marked: ${name}`, async () => {
    const u = await newLogged(service);
    const kept = stored.endsWith(SUFFIX) && stored !== text ? stored.slice(0, -SUFFIX.length) : stored;
    assert.ok(encoder.encode(kept).length <= BYTES_MAX);
    const tracked = await u.post("/track", { event: "image.x", prompt: text, response: text });
    assert.deepEqual(await textsOf(u, tracked.eventId), [stored, stored]);
    const held = await u.hold("image.x", { prompt: text });
    const committed = await u.commit(held, { response: text });
    assert.deepEqual(await textsOf(u, committed.eventId), [stored, stored]);
    const open = await u.hold("image.x", { prompt: text });
    await u.post("/release", { reservationId: open, response: text });
    const [released] = await feedOf(u);
    assert.deepEqual(await textsOf(u, released.id), [stored, stored]);
  });
}

Deno.test("a preview is the first 200 characters of the stored text, whatever their size", async () => {
  const u = await newLogged(service);
  const cases = [
    ["", ""],
    ["a".repeat(200), "a".repeat(200)],
    ["a".repeat(201), "a".repeat(200)],
    ["😀".repeat(200), "😀".repeat(200)],
    ["😀".repeat(201), "😀".repeat(200)],
    ["a" + "😀".repeat(200), "a" + "😀".repeat(199)],
    ["\u{feff}  \n" + "é".repeat(300), "\u{feff}  \n" + "é".repeat(196)],
    ["😀".repeat(10_000), "😀".repeat(200)],
  ];
  for (const [prompt, preview] of cases) {
    const { eventId } = await u.post("/track", { event: "chat.x", inputTokens: 1, prompt });
    const detail = await u.event(eventId);
    const [listed] = await feedOf(u);
    assert.deepEqual([listed.id, listed.hasLog, listed.promptPreview], [eventId, true, preview]);
    assert.deepEqual([detail.hasLog, detail.promptPreview], [true, preview]);
    assert.ok(detail.prompt.startsWith(preview));
  }
});

Deno.test("reason and errorCode of a release are cut by characters", async () => {
  const u = await newLogged(service);
  const reservationId = await u.hold("image.x");
  await u.post("/release", { reservationId, reason: "😀".repeat(501), errorCode: "€".repeat(101) });
  const [{ id }] = await feedOf(u) as [{ id: string }];
  const { reason, errorCode } = await u.event(id);
  assert.deepEqual([reason, errorCode], ["😀".repeat(500), "€".repeat(100)]);
});
