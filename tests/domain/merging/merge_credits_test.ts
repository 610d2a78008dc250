// Credits in a merge: balances move in any state, and two copies of one grant become one grant that pays for
// what both used.

import assert from "node:assert/strict";
import { statusOf } from "../../../src/domain/state/credit.ts";
import { packOf, Scene } from "../scene.ts";

const item = (id: string, amount: number) => {
  return { id, label: id, unit: "count", amount, matches: [{ event: "x.*" }] } as const;
};
const PACKS = [
  packOf("a"),
  packOf("b"),
  packOf("bundle", { unit: undefined, matches: undefined, items: [item("one", 10), item("two", 5)] }),
];
const REF = { externalRef: "order-1" };

function twoUsers(): [alias: Scene, into: Scene] {
  const into = new Scene([], undefined, PACKS);
  return [new Scene([], undefined, [], { beside: into, key: 8, id: "from" }), into];
}

/** Waits with both: a merge is made at one moment. */
function waitBoth(scenes: readonly Scene[], seconds: number): void {
  for (const scene of scenes) scene.wait(seconds);
}

function statusIn(scene: Scene, id: string): string {
  const row = scene.state.balances.get(id);
  return row === undefined ? "gone" : `${Number(row.remaining) / 1e6} ${statusOf(row, scene.now)}`;
}

interface Row {
  readonly name: string;
  /** What each side did with its copy of 10. */
  readonly from: (scene: Scene, id: string) => void;
  readonly to: (scene: Scene, id: string) => void;
  readonly survivor: "from" | "to";
  readonly remaining: number;
  readonly overage?: number;
  readonly after: readonly [survivor: string, dropped: string];
  /** Deltas of the two merge_dedupe rows, survivor first. */
  readonly deltas: readonly [number, number];
  /** Seconds between what both did and the merge. */
  readonly wait?: number;
  /** When a side's copy expires, in seconds. */
  readonly expires?: { readonly from?: number; readonly to?: number };
}

const use = (count: number) => (scene: Scene) => void scene.track(count);
const hold = (count: number) => (scene: Scene) => void scene.hold(count);
const none = () => {};

// deno-fmt-ignore: a row a case
const ROWS: readonly Row[] = [
  { name: "what both used is used of one", from: use(3), to: use(4), survivor: "to", remaining: 3, after: ["3 active", "0 revoked"], deltas: [-3, -7] },
  { name: "what is held counts as used", from: hold(3), to: hold(4), survivor: "to", remaining: 3, after: ["3 active", "0 revoked"], deltas: [-3, -7] },
  { name: "nothing was used", from: none, to: none, survivor: "to", remaining: 10, after: ["10 active", "0 revoked"], deltas: [0, -10] },
  { name: "all of it, exactly", from: use(6), to: use(4), survivor: "to", remaining: 0, after: ["0 depleted", "0 revoked"], deltas: [-6, -4] },
  { name: "more than one grant is overage", from: use(9), to: hold(6), survivor: "to", remaining: 0, overage: 5, after: ["0 depleted", "0 revoked"], deltas: [-4, -1] },
  { name: "the alias's copy was revoked", from: (scene, id) => { scene.track(2); scene.revoke(id); }, to: hold(3), survivor: "to", remaining: 0, after: ["0 revoked", "0 revoked"], deltas: [-7, 0] },
  { name: "the canonical user's copy was revoked", from: hold(3), to: (scene, id) => { scene.track(2); scene.revoke(id); }, survivor: "to", remaining: 0, after: ["0 revoked", "0 revoked"], deltas: [0, -7] },
  { name: "the canonical user's expired, the active one survives", from: use(2), to: use(3), expires: { to: 1 }, wait: 2, survivor: "from", remaining: 5, after: ["5 active", "0 revoked"], deltas: [-3, -7] },
  { name: "the canonical user's expired, and the alias's is used up", from: use(10), to: use(1), expires: { to: 1 }, wait: 2, survivor: "from", remaining: 0, overage: 1, after: ["0 depleted", "0 revoked"], deltas: [0, -9] },
  { name: "the canonical user's expired, and the alias's is held whole", from: hold(10), to: none, expires: { to: 1 }, wait: 2, survivor: "from", remaining: 0, after: ["0 depleted", "0 revoked"], deltas: [0, -10] },
  { name: "the canonical user's expired, and the alias's was revoked", from: (scene, id) => void scene.revoke(id), to: none, expires: { to: 1 }, wait: 2, survivor: "to", remaining: 0, after: ["0 revoked", "0 revoked"], deltas: [-10, 0] },
  { name: "the alias's expired", from: use(2), to: use(3), expires: { from: 1 }, wait: 2, survivor: "to", remaining: 5, after: ["5 active", "0 revoked"], deltas: [-2, -8] },
  { name: "both expired", from: use(2), to: use(3), expires: { from: 1, to: 1 }, wait: 2, survivor: "to", remaining: 5, after: ["5 expired", "0 revoked"], deltas: [-2, -8] },
];

for (const row of ROWS) {
  Deno.test(`two copies of one grant: ${row.name}`, () => {
    const [alias, into] = twoUsers();
    const expiry = (seconds?: number) =>
      seconds === undefined ? {} : { expiresAt: into.now + seconds * 1000 };
    const ids = {
      from: alias.fund("a", 10, { ...REF, ...expiry(row.expires?.from) }),
      to: into.fund("a", 10, { ...REF, ...expiry(row.expires?.to) }),
    };
    row.from(alias, ids.from);
    row.to(into, ids.to);
    waitBoth([alias, into], row.wait ?? 0);
    const [survivorId, droppedId] = row.survivor === "to" ? [ids.to, ids.from] : [ids.from, ids.to];
    const before = into.ledger().length;
    const { conflicts, moved, billableOperations } = alias.mergeInto(into);
    const { remaining, overage = 0 } = row;
    assert.deepEqual(conflicts.credits, [{
      externalRef: "order-1",
      survivorId,
      droppedId,
      remaining,
      overage,
    }]);
    const isMoved = row.survivor === "from";
    assert.deepEqual([moved.creditBalances, billableOperations], [1, isMoved ? 3 : 2]);
    assert.deepEqual(into.ledger().slice(before), [
      ...(isMoved ? [[survivorId, 0, "merged_from_alias"]] : []),
      [survivorId, row.deltas[0], "merge_dedupe"],
      [droppedId, row.deltas[1], "merge_dedupe"],
    ]);
    assert.deepEqual([statusIn(into, survivorId), statusIn(into, droppedId)], row.after);
    assert.deepEqual(into.grant("a", 10, REF), [survivorId], "a retried grant finds the survivor alone");
  });
}

Deno.test("refunds reduce the overage first, then come back to the survivor; the closed copy stays closed", () => {
  const [alias, into] = twoUsers();
  const [ofA, ofB] = [alias.fund("a", 10, REF), into.fund("a", 10, REF)];
  alias.track(5);
  const held = alias.hold(4);
  const kept = into.hold(6);
  alias.mergeInto(into);
  into.release(held);
  assert.deepEqual(into.ledger(2), [[ofB, 4, "reservation_released"], [ofB, -4, "admin_adjust"]]);
  assert.deepEqual(into.left(ofB, ofA), [0, 0]);
  into.commit(kept, { actual: { count: 3 } });
  assert.deepEqual(into.left(ofB, ofA), [2, 0]);
  assert.equal(into.track(2), "matched_credits_only");
  assert.deepEqual([statusIn(into, ofB), statusIn(into, ofA)], ["0 depleted", "0 revoked"]);
});

Deno.test("what was held whole comes back where the other copy has expired", () => {
  const [alias, into] = twoUsers();
  const ofA = alias.fund("a", 10, REF);
  into.fund("a", 10, { ...REF, expiresAt: into.now + 1000 });
  const held = alias.hold(10);
  waitBoth([alias, into], 2);
  alias.mergeInto(into);
  into.release(held);
  assert.equal(statusIn(into, ofA), "10 active");
});

Deno.test("overage counts as usage in the next merge", () => {
  const [alias, into] = twoUsers();
  const third = new Scene([], undefined, [], { beside: into, key: 9, id: "third" });
  for (const scene of [alias, into]) scene.fund("a", 5, REF);
  alias.track(2);
  into.track(5);
  assert.equal(alias.mergeInto(into).conflicts.credits[0]?.overage, 2);
  const survivorId = third.fund("a", 9, REF);
  const [conflict] = into.mergeInto(third).conflicts.credits;
  assert.deepEqual([conflict?.survivorId, conflict?.remaining], [survivorId, 2]);
});

Deno.test("what a hold gives back to a survivor that is revoked is taken again", () => {
  const [alias, into] = twoUsers();
  const ofB = into.fund("a", 5, REF);
  alias.revoke(alias.fund("a", 5, REF));
  const held = into.hold(1);
  alias.mergeInto(into);
  into.release(held);
  assert.deepEqual(into.ledger(2), [[ofB, 1, "reservation_released"], [ofB, -1, "admin_adjust"]]);
});

Deno.test("holds on a copy that was closed settle on the survivor: exact, more, less, released, lapsed and late", () => {
  const [alias, into] = twoUsers();
  alias.fund("a", 100, REF);
  const ofB = into.fund("a", 100, REF);
  const [exact, more, less, released, lapsed] = [1, 2, 3, 4, 5].map(() => alias.hold(10)) as [
    string,
    string,
    string,
    string,
    string,
  ];
  alias.mergeInto(into);
  const steps: [name: string, settle: () => unknown, left: number][] = [
    ["merged", () => {}, 50],
    ["exact", () => into.commit(exact), 50],
    ["more", () => into.commit(more, { extra: { count: 5 } }), 45],
    ["less", () => into.commit(less, { actual: { count: 4 } }), 51],
    ["released", () => into.release(released), 61],
    ["lapsed", () => into.wait(601), 71],
    ["late", () => into.commit(lapsed), 61],
  ];
  for (const [name, settle, left] of steps) {
    settle();
    assert.deepEqual(into.left(ofB), [left], name);
  }
});

Deno.test("balances in any state move, each with a row of 0 that is billed, and keep their state", () => {
  const [alias, into] = twoUsers();
  const depleted = alias.fund("b", 2);
  alias.track(2);
  const active = alias.fund("a", 5);
  const revoked = alias.fund("a", 7);
  alias.revoke(revoked);
  const expired = alias.fund("a", 9, { expiresAt: alias.now + 1000 });
  into.fund("a", 3);
  waitBoth([alias, into], 2);
  const report = alias.mergeInto(into);
  assert.deepEqual([report.billableOperations, report.moved.creditBalances, report.conflicts.credits], [
    4,
    4,
    [],
  ]);
  const moved = [depleted, active, revoked, expired];
  assert.deepEqual(into.ledger(4), [...moved].sort().map((id) => [id, 0, "merged_from_alias"]));
  assert.deepEqual(moved.map((id) => statusIn(into, id)), [
    "0 depleted",
    "5 active",
    "0 revoked",
    "9 expired",
  ]);
  assert.equal(into.reason(8), "ok", "of both together");
});

Deno.test("only the same pack, item and reference is a copy, and a closed one never is again", () => {
  const [alias, into] = twoUsers();
  const third = new Scene([], undefined, [], { beside: into, key: 9, id: "third" });
  const bundles = [alias, into].map((scene) => scene.grant("bundle", null, { externalRef: "r" }));
  alias.grant("bundle");
  into.grant("bundle");
  alias.fund("a", 1, { externalRef: "r" });
  into.fund("b", 1, { externalRef: "r" });
  into.fund("a", 1, { externalRef: "R" });
  const report = alias.mergeInto(into);
  const pairs = report.conflicts.credits.map(({ survivorId, droppedId }) => [droppedId, survivorId]);
  assert.deepEqual(pairs, [[bundles[0]?.[0], bundles[1]?.[0]], [bundles[0]?.[1], bundles[1]?.[1]]]);
  assert.deepEqual([report.moved.creditBalances, report.billableOperations], [5, 3 + 2 * 2]);
  third.grant("bundle", null, { externalRef: "r" });
  assert.equal(into.mergeInto(third).conflicts.credits.length, 2);
});
