// Room for batches of events: a share for each app, and an order within it.

import assert from "node:assert/strict";
import { BatchRoom } from "../../actors/batch_room.ts";
import { RUNTIME_LIMITS } from "../../src/process/limits.ts";

const MOST = RUNTIME_LIMITS.batchesOfAppBytesMax;

Deno.test("batches of an app enter in their order while its share has room; other apps do not wait", async () => {
  const room = new BatchRoom();
  const entered: string[] = [];
  const enter = (name: string, app: string, bytes: number) =>
    room.enter(app, bytes)?.then(() => void entered.push(name)) ?? void entered.push(name);
  enter("half", "a", MOST / 2);
  const waiting = [enter("whole", "a", MOST), enter("small behind it", "a", 1)];
  enter("other app", "b", MOST);
  assert.deepEqual(entered, ["half", "other app"]);
  room.leave("a", MOST / 2);
  await waiting[0];
  assert.deepEqual(entered.slice(2), ["whole"]);
  room.leave("a", MOST);
  await waiting[1];
  assert.deepEqual(entered.slice(3), ["small behind it"]);
  assert.equal(room.enter("a", MOST - 1), null, "beside it");
});

Deno.test("a batch above its app's share enters alone", async () => {
  const room = new BatchRoom();
  assert.equal(room.enter("a", MOST * 2), null);
  const next = room.enter("a", MOST * 2);
  room.leave("a", MOST * 2);
  await next;
  room.leave("a", MOST * 2);
  assert.equal(room.enter("a", 1), null);
});
