// Hand-computed scenes for credits in a merge, for what a merge costs and the cap that it may meet, for batches, and
// for lists that a merge joins. "u" is the user that stays, "v" the one that becomes its alias.

import assert from "node:assert/strict";
import { compareWithDryRun } from "./compare.ts";
import { EITHER, type Input, type ModelOptions, type WireData } from "./document.ts";
import { compare } from "./model.ts";
import { catalogOf, item, limit, pack, Scene } from "./support.ts";

const X = { event: "x.make" };
const V = { userId: "v" };
const AT = "2026-03-10T12:00:00.000Z";
const REF = { externalRef: "r" };

const CATALOG = {
  ...catalogOf({ id: "plan", limits: [limit("lg", 10)] }),
  packs: [
    pack("wallet"),
    pack("first", { priority: 5 }),
    pack("two", { items: [item("a", 4), item("b", 6)] }),
  ],
};

function scene(options: ModelOptions = {}): Scene {
  return new Scene(CATALOG, AT, options);
}

// deno-lint-ignore no-explicit-any
function merge(at: Scene, more: Input = {}): any {
  return at.data("alias", { from: "v", to: "u", ...more });
}

/** A grant of counts to each user under one reference; the ids of the two balances. */
function copies(at: Scene, ofU: Input, ofV: Input): [string, string] {
  const [u] = at.grant("wallet", { ...REF, ...ofU });
  const [v] = at.grant("wallet", { ...V, ...REF, ...ofV });
  return [u!, v!];
}

Deno.test("every balance moves with a row of 0, in any state, and is spendable by both ids", () => {
  const at = scene();
  at.grant("wallet", { ...V, quantity: 5 });
  at.grant("first", { ...V, quantity: 1, expiresAt: "2026-03-10T12:00:01.000Z" });
  const [revoked] = at.grant("wallet", { ...V, quantity: 2 });
  at.wait(1).data("revoke", { balanceId: revoked });
  const { moved, conflicts, billableOperations } = merge(at);
  assert.deepEqual([moved.creditBalances, moved.creditLedger, billableOperations], [3, 4, 3]);
  assert.deepEqual(conflicts.credits, []);
  assert.deepEqual(at.ledger().slice(-3), Array(3).fill("merged_from_alias 0"));
  const [row] = at.data("ledger").entries;
  assert.deepEqual([row.eventId, row.reservationId, row.notes], [null, null, null]);
  assert.deepEqual(at.left(), [1, 5, 0]);
  at.hold({ ...X, count: 3 });
  at.hold({ ...V, ...X, count: 2 });
  assert.deepEqual(at.left(), [1, 0, 0]);
});

Deno.test("copies of one grant become one with the usage of both, holds included", () => {
  const at = scene();
  const [u, v] = copies(at, { quantity: 10 }, { quantity: 10 });
  at.data("track", { ...X, count: 2 });
  const reservationId = at.hold({ ...V, ...X, count: 3 });
  const { conflicts, billableOperations, moved } = merge(at);
  assert.deepEqual(conflicts.credits, [
    { externalRef: "r", survivorId: u, droppedId: v, remaining: 5, overage: 0 },
  ]);
  assert.deepEqual([billableOperations, moved.creditBalances], [2, 1]);
  const shown = at.data("credits", { includeExpired: true }).credits;
  assert.deepEqual(shown.map((each: Input) => [each["balanceId"], each["remaining"], each["status"]]), [
    [u, 5, "active"],
    [v, 0, "revoked"],
  ]);
  const rows = at.data("ledger").entries.slice(0, 2).map((row: Input) => [row["balanceId"], row["delta"]]);
  assert.deepEqual(rows, [[v, -7], [u, -3]]);
  // The part of the open hold is the survivor's now.
  at.data("release", { reservationId });
  assert.deepEqual(at.left(), [8, 0]);
  // A retried grant finds the survivor by either id.
  assert.deepEqual(at.grant("wallet", { ...V, ...REF, quantity: 1 }), [u]);
  assert.deepEqual(at.grant("wallet", { ...REF, quantity: 1 }), [u]);
});

Deno.test("what does not fit is overage, which a refund reduces first", () => {
  const at = scene();
  const [u] = copies(at, { quantity: 5 }, { quantity: 5 });
  const [small, large] = [at.hold({ ...X, count: 1 }), at.hold({ ...V, ...X, count: 4 })];
  at.hold({ ...X, count: 3 });
  const [conflict] = merge(at).conflicts.credits;
  // 4 and 4 of 5.
  assert.deepEqual([conflict.remaining, conflict.overage], [0, 3]);
  assert.equal(at.data("credits").credits[0].status, "depleted");
  at.data("release", { reservationId: small });
  assert.deepEqual(at.left(), [0, 0]);
  at.data("release", { reservationId: large });
  assert.deepEqual(at.left(), [2, 0]);
  const rows = at.data("ledger", { balanceId: u, limit: 4 }).entries;
  assert.deepEqual(rows.map((row: Input) => `${row["reason"]} ${row["delta"]}`).reverse(), [
    "reservation_released 1",
    "admin_adjust -1",
    "reservation_released 4",
    "admin_adjust -2",
  ]);
});

Deno.test("overage counts as usage in the next merge", () => {
  const at = scene();
  copies(at, { quantity: 5 }, { quantity: 5 });
  at.data("track", { ...X, count: 5 });
  at.data("track", { ...V, ...X, count: 2 });
  assert.equal(merge(at).conflicts.credits[0].overage, 2);
  const [w] = at.grant("wallet", { userId: "w", ...REF, quantity: 9 });
  const { conflicts } = at.data("alias", { from: "u", to: "w" });
  assert.deepEqual([conflicts.credits[0].survivorId, conflicts.credits[0].remaining], [w, 2]);
});

Deno.test("a revoked copy on either side revokes the survivor", () => {
  for (const side of [0, 1]) {
    const at = scene();
    const ids = copies(at, { quantity: 5 }, { quantity: 5 });
    at.data("track", { ...V, ...X, count: 2 });
    const reservationId = at.hold({ ...X, count: 1 });
    at.data("revoke", { balanceId: ids[side] });
    const [conflict] = merge(at).conflicts.credits;
    assert.deepEqual([conflict.survivorId, conflict.remaining, conflict.overage], [ids[0], 0, 0]);
    const { credits } = at.data("credits", { includeExpired: true });
    assert.deepEqual(credits.map((each: Input) => each["status"]), ["revoked", "revoked"]);
    const deltas = at.data("ledger", { limit: 2 }).entries.map((row: Input) => row["delta"]);
    assert.deepEqual(deltas, side === 0 ? [-3, 0] : [0, -4]);
    at.data("release", { reservationId });
    assert.deepEqual(at.ledger().slice(-2), ["reservation_released 1", "admin_adjust -1"]);
  }
});

Deno.test("an active copy survives an expired one, and is moved as well", () => {
  const at = scene();
  const [u, v] = copies(at, { quantity: 5, expiresAt: "2026-03-10T12:00:01.000Z" }, { quantity: 4 });
  at.data("track", { ...X, count: 1 });
  at.wait(1);
  const { conflicts, billableOperations } = merge(at);
  assert.deepEqual(conflicts.credits, [
    { externalRef: "r", survivorId: v, droppedId: u, remaining: 3, overage: 0 },
  ]);
  assert.equal(billableOperations, 3);
  assert.deepEqual(at.ledger().slice(-3), ["merged_from_alias 0", "merge_dedupe -1", "merge_dedupe -4"]);
  assert.deepEqual(at.left(), [0, 3]);
  // A depleted copy does not take over.
  const other = scene();
  const ids = copies(other, { quantity: 5, expiresAt: "2026-03-10T12:00:01.000Z" }, { quantity: 4 });
  other.data("track", { ...V, ...X, count: 4 });
  assert.equal(merge(other.wait(1)).conflicts.credits[0].survivorId, ids[0]);
});

Deno.test("another pack, another reference and no reference are no copies; of items each is one", () => {
  const at = scene();
  for (const userId of ["u", "v"]) {
    at.grant("two", { userId, ...REF });
    at.grant("wallet", { userId, quantity: 1 });
    at.grant("wallet", { userId, quantity: 1, externalRef: userId });
    at.grant(userId === "u" ? "wallet" : "first", { userId, quantity: 1, externalRef: "other" });
  }
  const { conflicts, billableOperations } = merge(at);
  assert.equal(conflicts.credits.length, 2);
  assert.equal(billableOperations, 2 * 2 + 3);
  assert.equal(at.grant("two", { ...V, ...REF }).length, 2);
});

Deno.test("at the cap a merge is refused; cycles, conflicts, repeats and dry runs are answered as ever", () => {
  for (const mode of ["live", "test"] as const) {
    const at = scene({ mode, operationCap: 1 });
    at.data("subscribe", { ...V, planId: "plan" });
    at.grant("wallet", { ...V, quantity: 1 });
    // A merge may end past the cap.
    assert.equal(merge(at).billableOperations, 2);
    assert.equal(at.model.operationsUsed(at.now), 2);
    const code = mode === "live" ? "workspace_limit_reached" : "test_quota_exceeded";
    assert.deepEqual(at.ask("alias", { from: "w", to: "u" }), { status: 429, code });
    assert.equal(at.data("alias", { from: "w", to: "u", dryRun: true }).mode, mode);
    assert.equal(merge(at).alreadyMerged, true);
    assert.equal(at.ask("alias", { from: "u", to: "v" }).code, "alias_cycle");
    assert.equal(at.ask("alias", { from: "v", to: "w" }).code, "alias_conflict");
  }
});

Deno.test("a batch takes pair after pair, and a failing one stops no other", () => {
  const at = scene();
  at.data("subscribe", { userId: "a", planId: "plan" });
  const pairs = [
    { from: "a", to: "b" },
    { from: "a", to: "b" },
    { from: "b", to: "a" },
    { from: "", to: "b" },
    { from: "a", to: "c" },
    { from: "b", to: "anon_c" },
  ];
  const { results, billableOperations } = at.data("aliasBatch", { pairs, consentGiven: true });
  // What was sent, then the fate of each.
  assert.deepEqual(results.map(({ from, to }: WireData) => ({ from, to })), pairs);
  assert.deepEqual(results.map((each: { error?: { code: string } }) => each.error?.code ?? "ok"), [
    "ok",
    "ok",
    "alias_cycle",
    "invalid_request",
    "alias_conflict",
    "ok",
  ]);
  assert.deepEqual(results.map((each: WireData) => each["billableOperations"]), [1, 0, 0, 0, 0, 1]);
  assert.equal(billableOperations, 2);
  assert.deepEqual([results[1].report.alreadyMerged, results[5].report.analytics], [true, "linked"]);
  assert.deepEqual(at.data("customer", { userId: "a" }).canonicalId, "anon_c");
  for (const input of [{}, { pairs: [] }, { pairs: ["a"] }, { pairs: Array(501).fill(pairs[0]) }]) {
    assert.equal(at.ask("aliasBatch", input).code, "invalid_request");
  }
});

Deno.test("a dry batch asks of each pair alone, and changes nothing", () => {
  const at = scene();
  for (const userId of ["a", "b"]) at.data("subscribe", { userId, planId: "plan" });
  const pairs = [{ from: "a", to: "c" }, { from: "a", to: "b" }];
  const { results, billableOperations } = at.data("aliasBatch", { pairs, dryRun: true });
  assert.deepEqual(results.map((each: WireData) => each["ok"]), [true, true]);
  assert.equal(billableOperations, 2);
  assert.equal(at.data("customer", { userId: "a" }).canonicalId, "a");
});

Deno.test("a batch that meets the cap stops, and all that is left is refused", () => {
  const at = scene({ operationCap: 1 });
  for (const userId of ["a", "c"]) at.data("subscribe", { userId, planId: "plan" });
  const pairs = [{ from: "a", to: "b" }, { from: "a", to: "b" }, { from: "c", to: "b" }, {
    from: "a",
    to: "b",
  }];
  const { results, billableOperations } = at.data("aliasBatch", { pairs });
  assert.deepEqual(results.map((each: { error?: { code: string } }) => each.error?.code ?? "ok"), [
    "ok",
    "ok",
    "workspace_limit_reached",
    "workspace_limit_reached",
  ]);
  assert.equal(billableOperations, 1);
  assert.equal(at.data("customer", { userId: "c" }).canonicalId, "c");
});

Deno.test("rows of equal times are ordered by when they were made, over all users", () => {
  const at = scene();
  for (const [n, userId] of ["u", "v", "u", "v"].entries()) {
    at.data("track", { userId, ...X, quantity: n + 1 });
    at.grant("wallet", { userId, quantity: n + 1 });
  }
  merge(at);
  const { events } = at.data("events", { userId: "u" });
  assert.deepEqual(events.map((row: WireData) => row["quantity"]), [4, 3, 2, 1]);
  assert.deepEqual(at.ledger().slice(0, 4), ["grant 1", "grant 2", "grant 3", "grant 4"]);
  assert.deepEqual(at.left(), [1, 2, 3, 4]);
});

/** A merged user whose two holds lapsed at one moment, when nobody looked; the ids of their balances. */
function lapsed(): { at: Scene; u: string; v: string } {
  const at = scene();
  const [[u], [v]] = [at.grant("wallet", { quantity: 2 }), at.grant("wallet", { ...V, quantity: 2 })];
  at.hold({ ...X, count: 1 });
  at.hold({ ...V, ...X, count: 1 });
  at.wait(601);
  merge(at);
  return { at, u: u!, v: v! };
}

Deno.test("the order of what fell due to two users at one moment is learnt from the first answer", () => {
  const { at, u, v } = lapsed();
  const input = { userId: "u", limit: 3 };
  const balances = (data: WireData | undefined) =>
    (data?.["entries"] as WireData[]).slice(1).map((row) => row["balanceId"]);
  const own = at.ask("ledger", input);
  assert.deepEqual(balances(own.data), [v, u]);
  const [head, first, second] = own.data!["entries"] as WireData[];
  // The system settled "v" before "u".
  const observed = {
    status: 200,
    data: { entries: [head, { ...second, id: "cle_2" }, { ...first, id: "cle_1" }], nextCursor: "more" },
  };
  const predicted = at.model.handle({ op: "ledger", input }, at.now, observed);
  assert.deepEqual(balances(predicted.data), [u, v]);
  assert.deepEqual(balances(at.data("ledger", input)), [u, v]);
  // A page may end between the two, with a cursor that comes after the first.
  const { nextCursor } = at.data("ledger", { limit: 2 });
  assert.equal(at.data("ledger", { limit: 1, cursor: nextCursor }).entries[0].balanceId, v);
});

Deno.test("rows of one user, or of calls, stand where they stand", () => {
  const at = scene();
  at.grant("wallet", { quantity: 1 });
  at.grant("wallet", { ...V, quantity: 2 });
  merge(at);
  const input = { userId: "u" };
  const { data } = at.ask("ledger", input);
  const entries = (data!["entries"] as WireData[]).toReversed();
  const observed = { status: 200, data: { entries, nextCursor: null } };
  const predicted = at.model.handle({ op: "ledger", input }, at.now, observed);
  assert.ok(compare(predicted, observed).length > 0);
});

Deno.test("compare takes the lists of a report without order, and leaves the pending of a repeat open", () => {
  const report = (turn: boolean, historyPending: unknown) => {
    const list = <T>(...values: T[]) => turn ? values.reverse() : values;
    return {
      status: 200,
      data: {
        historyPending,
        conflicts: {
          counters: {
            carried: list({ fromGroupId: "a", toGroupId: "b" }, { fromGroupId: "a", toGroupId: "c" }),
            unpaired: list("a", "b"),
          },
          endedSubscriptions: list({ subscriptionId: "sub_1" }, { subscriptionId: "sub_2" }),
          credits: list({ droppedId: "crb_1", overage: 1 }, { droppedId: "crb_2", overage: 0 }),
        },
        error: { code: "alias_cycle", message: turn ? "one text" : "another" },
      },
    };
  };
  for (const value of [true, false]) {
    assert.deepEqual(compare(report(false, EITHER), report(true, value)), []);
  }
  assert.equal(compare(report(false, EITHER), report(true, null)).length, 1);
  assert.equal(compare(report(false, false), report(true, true)).length, 1);
  // The balances of a user have their order.
  const credits = [{ balanceId: "crb_1" }, { balanceId: "crb_2" }];
  const [a, b] = [credits, credits.toReversed()].map((each) => ({ status: 200, data: { credits: each } }));
  assert.equal(compare(a!, b!).length, 2);
});

Deno.test("a real run that says otherwise than its dry run is found out", () => {
  const at = scene();
  at.grant("wallet", { ...V, quantity: 1 });
  const dry = at.ask("alias", { from: "v", to: "u", dryRun: true });
  const real = { status: 200, data: { ...merge(at), mergeId: "mrg_1" } };
  assert.deepEqual(compareWithDryRun(dry, real), []);
  const wrong = { status: 200, data: { ...real.data, billableOperations: 2 } };
  assert.deepEqual(compareWithDryRun(dry, wrong), [
    "dry run: data.billableOperations: expected 1, observed 2",
  ]);
  assert.deepEqual(compareWithDryRun(dry, { status: 429, code: "workspace_limit_reached" }), []);
  assert.equal(compareWithDryRun({ status: 409, code: "alias_cycle" }, real).length > 0, true);
});
