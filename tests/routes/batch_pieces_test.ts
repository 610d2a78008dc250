// Large batches are decided in pieces, beside the calls of others.

import assert from "node:assert/strict";
import type { JournalEntry } from "../../actors/port.ts";
import { BODY_COUNTS } from "../../src/process/counts/sent_counts.ts";
import { RUNTIME_LIMITS } from "../../src/process/limits.ts";
import { BODY_LIMITS } from "../../src/process/sent_limits.ts";
import { readLine } from "../support/journal_line.ts";
import { changedLimits } from "../support/limits.ts";
import type { TestApp } from "../support/test_service.ts";
import { appWithUser, assertRefused, countOf, dataOf, serviceOfFile } from "./support.ts";
import { until } from "../support/until.ts";

const service = serviceOfFile();

const IMAGE = { userId: "u", event: "image.x" };
/** An event with a text counts for a little more than a kilobyte. */
const LONG = { ...IMAGE, metadata: { text: "x".repeat(600) } };

async function resultsOf(app: TestApp, events: readonly unknown[]) {
  return (await dataOf(app.call("POST", "/track/batch", { events }))).results;
}

/** The realm of an event, by its line; nothing for any other line. */
function realmOfEvent(line: string): number[] {
  const { table, columns } = readLine(line);
  return table === "events" ? [Number(columns.realm)] : [];
}

/** Calls a function before each append of the running term. */
function beforeAppends(act: (changes: readonly JournalEntry[]) => Promise<void> | void): Disposable {
  const { journal } = service.serving().lease;
  const { append } = journal;
  journal.append = async (changes) => {
    await act(changes);
    return await append.call(journal, changes);
  };
  return { [Symbol.dispose]: () => void (journal.append = append) };
}

Deno.test("a large batch is written in pieces, and a call of another app does not wait for all of them", async () => {
  using _limits = changedLimits(RUNTIME_LIMITS, { batchPieceBytes: 3_500 });
  const [app, other] = [await appWithUser(service), await appWithUser(service)];
  /** The realms of the events of each append. */
  const appends: number[][] = [];
  let call: Promise<unknown> | null = null;
  using _hook = beforeAppends((changes) => {
    appends.push(changes.flatMap((change) => typeof change === "string" ? realmOfEvent(change) : []));
    call ??= dataOf(other.call("POST", "/track", IMAGE));
  });
  const results = await resultsOf(app, [LONG, { userId: "u" }, ...Array(11).fill(LONG)]);
  await call;
  const [[realm] = []] = appends;
  const inEach = appends.map((realms) => realms.filter((one) => one === realm).length);
  assert.deepEqual(inEach.filter((count) => count > 0), [3, 3, 3, 3]);
  const place = appends.findIndex((realms) => realms.some((one) => one !== realm));
  assert.ok(place > 0 && place < 3, `the other app's call is in append ${place} of ${appends.length}`);
  const counts = results.map((result: { ok: boolean; data: { counters: { count: number }[] } }) =>
    result.ok ? result.data.counters[0]?.count : "refused"
  );
  assert.deepEqual(counts, [1, "refused", 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
});

Deno.test("large batches with the same keys do not wait for each other, and count each key once", async () => {
  using _limits = changedLimits(RUNTIME_LIMITS, { batchPieceBytes: 3_500, batchesOfAppBytesMax: 3_500 });
  const app = await appWithUser(service);
  const events = Array.from({ length: 12 }, (_, no) => ({ ...LONG, idempotencyKey: `k${no}` }));
  const once = (body: unknown) => app.call("POST", "/track", body, { headers: { "idempotency-key": "k6" } });
  await service.restart();
  const [one, two, three, alone] = await Promise.all([
    resultsOf(app, events),
    resultsOf(app, events.toReversed()),
    resultsOf(app, [...events.slice(6), ...events.slice(0, 6)]),
    once(LONG),
  ]);
  assert.deepEqual(two.toReversed(), one);
  assert.deepEqual([...three.slice(6), ...three.slice(0, 6)], one);
  assert.deepEqual(alone.body, one[6]);
  assert.equal(await countOf(app, "lg_images"), 12);
});

Deno.test("the body of a large batch keeps its app's share of memory until the batch has its answer", async () => {
  using _limits = changedLimits(BODY_LIMITS, { readHereBytesMax: 20_000, appBytesMax: 40_000 });
  const [app, other] = [await appWithUser(service), await appWithUser(service)];
  const events = Array(40).fill(LONG);
  const full = BODY_COUNTS.full.keyed;
  const gate = Promise.withResolvers<void>();
  using _hook = beforeAppends(() => gate.promise);
  using _opened = { [Symbol.dispose]: () => gate.resolve() };
  const [first, elsewhere] = [resultsOf(app, events), resultsOf(other, events)];
  await until(() => service.serving().term.gate.tip?.isDurable === false);
  const refused = app.call("POST", "/track/batch", { events });
  await until(() => BODY_COUNTS.full.keyed > full);
  assertRefused(await refused, 503, "unavailable");
  gate.resolve();
  assert.equal((await first).length, 40);
  assert.equal((await elsewhere).length, 40);
  assert.equal(BODY_COUNTS.heldBytes.keyed, 0);
  assert.equal((await resultsOf(app, events)).length, 40);
});
