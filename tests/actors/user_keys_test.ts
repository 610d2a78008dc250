// The numbers of new users: each given once, a block ahead, and never more blocks than needed.

import assert from "node:assert/strict";
import { Unavailable } from "../../actors/port.ts";
import { UserKeys } from "../../actors/user_keys.ts";
import { barrier, settleLoop } from "./runtime.ts";

const SIZE = 4;

/** Blocks 1000, 2000, ... of four numbers, each behind a barrier that the test opens or breaks. */
function blocks() {
  const asked: ReturnType<typeof barrier>[] = [];
  const keys = new UserKeys(async () => {
    const door = barrier();
    asked.push(door);
    const first = asked.length * 1000;
    await door.wait;
    return { first, count: SIZE };
  });
  return { keys, asked };
}

Deno.test("many who wait for the first block get one number each, and all of them come from as few blocks", async () => {
  const { keys, asked } = blocks();
  const taken = Array.from({ length: SIZE + 1 }, () => Promise.resolve(keys.take()));
  assert.equal(asked.length, 1);
  asked[0]?.open();
  await settleLoop();
  asked[1]?.open();
  assert.deepEqual(await Promise.all(taken), [1000, 1001, 1002, 1003, 2000]);
  assert.equal(asked.length, 2);
});

Deno.test("from the middle of a block on the next one is fetched, so that no caller waits for it", async () => {
  const { keys, asked } = blocks();
  const first = keys.take();
  asked[0]?.open();
  assert.equal(await first, 1000);
  assert.equal(keys.take(), 1001);
  assert.equal(keys.take(), 1002);
  assert.equal(keys.take(), 1003);
  assert.equal(asked.length, 2);
  asked[1]?.open();
  await settleLoop();
  assert.equal(await keys.take(), 2000);
});

Deno.test("a block that could not be fetched refuses who waits, and the next one asks again", async () => {
  const { keys, asked } = blocks();
  const refused = [keys.take(), keys.take()].map((taken) => Promise.resolve(taken));
  asked[0]?.fail(new Error("no connection"));
  for (const { status, ...rest } of await Promise.allSettled(refused)) {
    assert.equal(status, "rejected");
    assert.ok("reason" in rest && rest.reason instanceof Unavailable);
  }
  const later = keys.take();
  asked[1]?.open();
  assert.equal(await later, 2000);
});
