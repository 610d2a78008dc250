// Passing a call on: it is sent once, again only after an explicit "not run", and not for ever.

import assert from "node:assert/strict";
import { Doors } from "../../actors/doors.ts";
import { Unavailable } from "../../actors/port.ts";
import type { Hub, Reply } from "../../src/channel/hub.ts";
import type { ClusterNode } from "../../src/cluster/node.ts";
import { Owners } from "../../src/cluster/owners.ts";
import { callSender, notRun, passOn } from "../../src/cluster/passing.ts";
import { dispatch } from "../../routes/http/dispatch.ts";
import { CELL_LIMITS } from "../../src/process/limits.ts";

const CELL = 3;
const OWN_TERM = 1;
const ANSWER: Reply = { head: [200], body: "{}" };

/** A node that only passes calls on; each read of the tables runs `look`. */
function memberThat(look: (owners: Owners, doors: Doors) => void = () => {}) {
  const owners = new Owners();
  const doors = new Doors();
  const counts = { passedOn: 0, sentAgain: 0 };
  const node = {
    term: OWN_TERM,
    parts: { owners, counts, term: { doors }, hub: null as unknown },
    relayTo: (owner: number) => owner === 9 ? 8 : null,
    lookForOwners: () => Promise.resolve(look(owners, doors)),
  };
  return { owners, doors, counts, node: node as unknown as ClusterNode };
}

/** A sender that answers from a script and records where it sent. */
function senderOf(...replies: (Reply | Error | null)[]) {
  const sent: number[] = [];
  const send = (owner: number) => {
    const reply = replies.shift();
    if (reply === undefined) throw new Error("The call was sent too often");
    if (reply === null) return null;
    sent.push(owner);
    return reply instanceof Error ? Promise.reject(reply) : Promise.resolve(reply);
  };
  return { send, sent };
}

Deno.test("a call goes to the owner once, and its answer returns unchanged", async () => {
  const { node, owners, counts } = memberThat();
  owners.set([CELL], 5);
  const { send, sent } = senderOf(ANSWER);
  assert.equal(await passOn(node, CELL, send), ANSWER);
  assert.deepEqual([sent, counts], [[5], { passedOn: 1, sentAgain: 0 }]);
});

Deno.test("a call that did not run goes on to the owner that its receiver names", async () => {
  const { node, owners, counts } = memberThat();
  owners.set([CELL], 5);
  const { send, sent } = senderOf(notRun(6), ANSWER);
  assert.equal(await passOn(node, CELL, send), ANSWER);
  assert.deepEqual([sent, owners.of(CELL), counts.sentAgain], [[5, 6], 6, 1]);
});

for (
  const [what, reply] of [
    ["names no owner", notRun(null)],
    ["names itself", notRun(5)],
    ["names this node, which does not own the cell", notRun(OWN_TERM)],
  ] as const
) {
  Deno.test(`a call that did not run is sent by the tables if its receiver ${what}`, async () => {
    let looks = 0;
    const { node, owners } = memberThat((known) => {
      looks += 1;
      known.set([CELL], 7);
    });
    owners.set([CELL], 5);
    const { send, sent } = senderOf(reply, ANSWER);
    assert.equal(await passOn(node, CELL, send), ANSWER);
    assert.deepEqual([sent, looks], [[5, 7], 1]);
  });
}

Deno.test("a call with a lost answer is not sent a second time", async () => {
  const { node, owners } = memberThat();
  owners.set([CELL], 5);
  const { send, sent } = senderOf(new Unavailable("The channel was lost"));
  await assert.rejects(passOn(node, CELL, send), Unavailable);
  assert.deepEqual(sent, [5]);
});

Deno.test("a call is not sent if its cell has moved here meanwhile", async () => {
  const { node, owners } = memberThat((_, doors) => doors.open([CELL]));
  owners.set([CELL], 5);
  const { send, sent } = senderOf(notRun(null));
  assert.equal(await passOn(node, CELL, send), null);
  assert.deepEqual(sent, [5]);
});

Deno.test("the owner is searched for 2 s, and no longer", async () => {
  const { now } = performance;
  let at = 0;
  performance.now = () => at;
  try {
    let looks = 0;
    const { node } = memberThat(() => {
      looks += 1;
      at += CELL_LIMITS.doorWaitMs / 4;
    });
    const { send, sent } = senderOf();
    await assert.rejects(passOn(node, CELL, send), Unavailable);
    assert.deepEqual([looks, sent], [5, []]);
  } finally {
    performance.now = now;
  }
});

Deno.test("a call goes through a third node only where there is no channel to the owner, and once at most", () => {
  const { node } = memberThat();
  const calls: [number, unknown][] = [];
  const hub = {
    isOpen: (term: number) => term === 5,
    call: (term: number, call: unknown) => {
      calls.push([term, call]);
      return Promise.resolve(ANSWER);
    },
  };
  (node.parts as { hub: Hub | null }).hub = hub as unknown as Hub;
  const send = callSender(node, "x");
  assert.ok(send(5) !== null && send(9) !== null);
  assert.equal(send(6), null, "no node can reach it");
  assert.deepEqual(calls, [[5, [0, "x"]], [8, [9, "x"]]]);
});

Deno.test("a part of an answer of all owners that fails beside an owner who cannot be asked is a failed call", async () => {
  const { node, owners } = memberThat();
  owners.set([...Array(64).keys()], OWN_TERM);
  owners.set([CELL], 5);
  const world = {
    node,
    registry: { version: 1 },
    term: { doors: { held: [], isHere: () => true }, isServing: false },
  };
  const target = { id: "sweep", gather: () => 0, handle: () => Promise.resolve({ status: 200, body: "{}" }) };
  const call = { target, caller: null, input: {}, members: {} };
  // A failure that nobody awaited would end this process.
  await assert.rejects(dispatch(world as never, call as never, "req_1"), Unavailable);
  await new Promise((resolve) => setTimeout(resolve));
});
