// A mailbox: turns in order, and none beside a prefetch.

import assert from "node:assert/strict";
import { Mailbox } from "../../actors/mailbox.ts";
import { Unavailable } from "../../actors/port.ts";
import { RUNTIME_LIMITS } from "../../src/process/limits.ts";
import { barrier, settleLoop } from "./runtime.ts";

Deno.test("turns run at once and in order when nothing is before them", async () => {
  const mailbox = new Mailbox();
  const seen: number[] = [];
  const turns = [1, 2, 3].map((turn) => mailbox.run(() => seen.push(turn)));
  assert.deepEqual(seen, [1, 2, 3]);
  assert.equal(mailbox.isIdle, true);
  await Promise.all(turns);
});

Deno.test("while a turn waits for its prefetch, later turns wait behind it", async () => {
  const mailbox = new Mailbox();
  const seen: string[] = [];
  const { wait, open } = barrier();
  const first = mailbox.run(() => seen.push("first"), () => wait);
  const second = mailbox.run(() => seen.push("second"));
  const third = mailbox.run(() => seen.push("third"), () => {
    seen.push("third asks");
    return null;
  });
  await settleLoop();
  assert.deepEqual(seen, []);
  assert.equal(mailbox.isIdle, false);
  open();
  await Promise.all([first, second, third]);
  assert.deepEqual(seen, ["first", "second", "third asks", "third"]);
  assert.equal(mailbox.isIdle, true);
});

Deno.test("a prefetch is asked for only when its turn has come", async () => {
  const mailbox = new Mailbox();
  const seen: string[] = [];
  const first = barrier();
  const second = barrier();
  const fetch = (name: string, wait: Promise<void>) => () => {
    seen.push(`${name} asks`);
    return wait;
  };
  const turns = [
    mailbox.run(() => seen.push("first"), fetch("first", first.wait)),
    mailbox.run(() => seen.push("second"), fetch("second", second.wait)),
  ];
  await settleLoop();
  assert.deepEqual(seen, ["first asks"]);
  first.open();
  await settleLoop();
  assert.deepEqual(seen, ["first asks", "first", "second asks"]);
  second.open();
  await Promise.all(turns);
});

Deno.test("a turn that throws, or whose prefetch fails, fails alone", async () => {
  const mailbox = new Mailbox();
  const thrown = mailbox.run(() => {
    throw new Error("a bug");
  });
  await assert.rejects(thrown, /a bug/);
  const unread = mailbox.run(() => 1, () => Promise.reject(new Error("a load failed")));
  const after = mailbox.run(() => 2);
  await assert.rejects(unread, /a load failed/);
  assert.equal(await after, 2);
  assert.equal(mailbox.isIdle, true);
});

Deno.test("a full mailbox answers unavailable", async () => {
  const mailbox = new Mailbox();
  const { wait, open } = barrier();
  const first = mailbox.run(() => 0, () => wait);
  const waiting = Array.from({ length: RUNTIME_LIMITS.mailboxTurnsMax }, () => mailbox.run(() => 0));
  await assert.rejects(mailbox.run(() => 0), Unavailable);
  open();
  await Promise.all([first, ...waiting]);
});
