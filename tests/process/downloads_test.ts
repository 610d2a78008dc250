// Downloads apart from their content: shares, slow readers, and readers that take nothing.

import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { Downloads } from "../../src/process/downloads.ts";
import { DOWNLOAD_LIMITS } from "../../src/process/limits.ts";
import { changedLimits } from "../support/limits.ts";

const OWNER = { app: "a", person: "a/p" };

async function* pieces(...texts: readonly string[]): AsyncGenerator<string> {
  yield* texts;
}

function taken(downloads: Downloads, owner = OWNER) {
  const download = downloads.take(owner);
  assert.ok(download !== null);
  return download;
}

Deno.test("a person and an app have shares, and others have room", () => {
  using _limits = changedLimits(DOWNLOAD_LIMITS, { ofPersonMax: 2, ofAppMax: 3 });
  const downloads = new Downloads();
  const first = taken(downloads);
  taken(downloads);
  assert.equal(downloads.take(OWNER), null);
  taken(downloads, { app: "a", person: "a/q" });
  assert.equal(downloads.take({ app: "a", person: "a/r" }), null);
  taken(downloads, { app: "b", person: "b/p" });
  assert.deepEqual([downloads.counts.open, downloads.counts.refused], [4, 2]);
  first.end("left");
  first.end("whole");
  assert.deepEqual(downloads.counts.ended, { whole: 0, left: 1, still: 0, failed: 0 });
  taken(downloads);
});

Deno.test("a document comes whole, in small parts, and gives its shares back", async () => {
  using _limits = changedLimits(DOWNLOAD_LIMITS, { chunkBytes: 3 });
  const downloads = new Downloads();
  const parts = await Array.fromAsync(taken(downloads).stream(pieces("", "äbcdefg", "h", "")));
  assert.ok(parts.every(({ length }) => length <= 3));
  assert.equal(Buffer.concat(parts).toString(), "äbcdefgh");
  assert.deepEqual([downloads.counts.open, downloads.counts.ended.whole], [0, 1]);
});

Deno.test("a reader that takes nothing is ended, at the beginning and amid a document; one that leaves too", async () => {
  using _limits = changedLimits(DOWNLOAD_LIMITS, { readerGoneMs: 5, chunkBytes: 1 });
  const downloads = new Downloads();
  const { counts } = downloads;
  let isMade = false;
  async function* made(): AsyncGenerator<string> {
    isMade = true;
    yield* pieces("abc");
  }
  const untouched = taken(downloads).stream(made()).getReader();
  const stopped = taken(downloads).stream(pieces("abc")).getReader();
  await stopped.read();
  while (counts.open > 0) await new Promise((resolve) => setTimeout(resolve, 1));
  assert.equal(counts.ended.still, 2);
  await assert.rejects(untouched.read());
  await assert.rejects(stopped.read());
  assert.equal(isMade, false);
  await taken(downloads).stream(pieces("abc")).cancel();
  assert.deepEqual([counts.open, counts.ended.left], [0, 1]);
});

Deno.test("a document that cannot be made further breaks off and gives its shares back", async () => {
  const downloads = new Downloads();
  async function* broken(): AsyncGenerator<string> {
    yield* pieces("abc");
    throw new Error("no database");
  }
  await assert.rejects(new Response(taken(downloads).stream(broken())).text(), /no database/);
  assert.deepEqual([downloads.counts.open, downloads.counts.ended.failed], [0, 1]);
});
