// Aliases in the model: refused pairs, repeated calls, caps and batches, which the runtime decides around a merge, and
// the order that the model learns from merged lists. "v" becomes an alias of "u". The effects of a merge on the two users
// are in the scenes of `tests/domain/merging`, which run against the model too.

import assert from "node:assert/strict";
import { compareWithDryRun } from "./compare.ts";
import { EITHER, type Input, type ModelOptions, type WireData } from "./document.ts";
import { compare } from "./model.ts";
import { catalogOf, limit, pack, Scene } from "./support.ts";

const X = { event: "x.make" };
const V = { userId: "v" };

const CATALOG = { ...catalogOf({ id: "plan", limits: [limit("lg", 10)] }), packs: [pack("wallet")] };

function scene(options: ModelOptions = {}): Scene {
  return new Scene(CATALOG, undefined, options);
}

/** Merges "v" into "u". */
// deno-lint-ignore no-explicit-any
function merge(at: Scene, more: Input = {}): any {
  return at.data("alias", { from: "v", to: "u", ...more });
}

function codeOf(at: Scene, from: string, to: string): string | undefined {
  return at.ask("alias", { from, to }).code;
}

Deno.test("every call by the alias is one of the canonical user", () => {
  const at = scene();
  merge(at);
  assert.equal(at.data("subscribe", { ...V, planId: "plan" }).userId, "u");
  const reservationId = at.hold({ ...V, ...X, count: 2 });
  at.data("commit", { reservationId });
  at.data("track", { ...V, ...X });
  assert.deepEqual(at.counts(), { lg: 3 });
  assert.equal(at.data("usage", V).userId, "u");
  for (const userId of ["u", "v"]) {
    const { events } = at.data("events", { userId });
    assert.deepEqual(events.map((row: Input) => row["endUserId"]), ["u", "u"]);
  }
  assert.equal(at.data("cancel", V).userId, "u");
});

Deno.test("an alias of an alias resolves, and aliases of a merged user are pointed anew", () => {
  const at = scene();
  at.data("alias", { from: "a", to: "b" });
  assert.equal(at.data("alias", { from: "c", to: "a" }).moved.aliasesRepointed, 0);
  assert.deepEqual(at.data("customer", { userId: "b" }).aliases, ["a", "c"]);
  assert.equal(at.data("alias", { from: "b", to: "d" }).moved.aliasesRepointed, 2);
  for (const userId of ["a", "b", "c", "d"]) {
    assert.deepEqual(at.data("customer", { userId }).canonicalId, "d");
  }
  assert.deepEqual(at.data("customer", { userId: "a" }).aliases.toSorted(), ["a", "b", "c"]);
});

Deno.test("the same id twice, a way back, and another canonical user are refused", () => {
  const at = scene();
  assert.equal(codeOf(at, "u", "u"), "alias_cycle");
  at.data("alias", { from: "a", to: "b" });
  assert.equal(codeOf(at, "a", "a"), "alias_cycle");
  assert.equal(codeOf(at, "b", "a"), "alias_cycle");
  assert.equal(codeOf(at, "a", "c"), "alias_conflict");
  assert.deepEqual(at.ask("alias", { from: "a", to: "c", dryRun: true }), {
    status: 409,
    code: "alias_conflict",
  });
  at.data("alias", { from: "b", to: "c" });
  assert.equal(codeOf(at, "c", "a"), "alias_cycle");
  assert.equal(codeOf(at, "c", "b"), "alias_cycle");
  assert.equal(codeOf(at, "b", "d"), "alias_conflict");
  for (const input of [{ from: "", to: "u" }, { from: "u" }, { from: "u", to: "x".repeat(201) }]) {
    assert.equal(at.ask("alias", input).code, "invalid_request");
  }
});

Deno.test("a repeated call gives the stored report of the merge in which the id became an alias", () => {
  const at = scene();
  for (const userId of ["u", "v"]) at.data("subscribe", { userId, planId: "plan" });
  const first = merge(at);
  const again = { ...first, alreadyMerged: true, billableOperations: 0, analytics: "already_linked" };
  assert.deepEqual(merge(at), again);
  const dry = { ...again, dryRun: true, mergeId: null };
  assert.deepEqual(merge(at, { dryRun: true }), dry);
  // Also when the canonical user has become an alias itself, whichever of its ids is named.
  at.data("alias", { from: "u", to: "w" });
  for (const to of ["u", "w"]) {
    assert.deepEqual(merge(at, { to }), { ...again, to });
  }
  assert.equal(at.model.operationsUsed(at.now), 2);
});

Deno.test("analytics of an anonymous session are linked only with consent", () => {
  for (const [from, to] of [["anon_1", "u"], ["v", "anon_2"]]) {
    for (const consentGiven of [undefined, null, false, true]) {
      const { analytics } = scene().data("alias", { from, to, consentGiven });
      assert.equal(analytics, consentGiven ? "linked" : "skipped_consent_required");
    }
  }
  assert.equal(scene().data("alias", { from: "an_anon_1", to: "u" }).analytics, "linked");
});

Deno.test("history of more than 500 rows is reported as pending, and reads are complete all the same", () => {
  for (const [events, pending] of [[497, false], [498, true]] as const) {
    const at = scene();
    for (let n = 0; n < events; n++) at.data("track", { ...V, ...X });
    at.data("subscribe", { ...V, planId: "plan" });
    at.hold({ ...V, ...X });
    const reservationId = at.hold({ ...V, ...X });
    at.data("release", { reservationId });
    // Beside the tracks: the feed's row of the release, the settled hold, and the row `created`.
    const { historyPending, moved } = merge(at);
    assert.equal(historyPending, pending);
    const counts = [moved.events, moved.subscriptionEvents, moved.reservations, moved.counters];
    assert.deepEqual(counts, pending ? [0, 0, 1, 1] : [events + 1, 1, 2, 1]);
    assert.equal(at.data("events", { userId: "u", limit: 100, offset: 400 }).events.length, events + 1 - 400);
  }
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

/** A merged user whose two holds lapsed at one moment, with no call between; the ids of their balances. */
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

Deno.test("rows of one user, and rows of calls, are not reordered to follow an answer", () => {
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
