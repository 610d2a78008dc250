// The draft: changes laid over an unchanged state.

import assert from "node:assert/strict";
import { counted } from "../../../src/domain/state/counter.ts";
import { Draft } from "../../../src/domain/state/draft.ts";
import { openHolds } from "../../../src/domain/state/open_holds.ts";
import type { Reservation } from "../../../src/domain/state/reservation.ts";
import { planOf, Scene } from "../scene.ts";

function sceneWithHold(): { scene: Scene; held: Reservation } {
  const scene = new Scene([planOf("plan_a", { g: 10 })]);
  scene.subscribe("plan_a");
  const id = scene.reserve(2) as string;
  return { scene, held: scene.state.reservations.get(id) as Reservation };
}

Deno.test("a draft that changed nothing is empty and yields no changes", () => {
  const draft = new Draft(sceneWithHold().scene.state);
  assert.equal(draft.isEmpty, true);
  assert.deepEqual(draft.changes(), []);
  assert.equal(draft.counter({ planId: "p", groupId: "g", window: { start: 0, end: null } }).count, 0n);
  assert.equal(draft.isEmpty, true);
});

Deno.test("a row that is put twice appears once, with its last value, and the state below is untouched", () => {
  const { scene, held } = sceneWithHold();
  const draft = new Draft(scene.state);
  const line = held.lines[0] as Reservation["lines"][number];
  draft.putCounter(counted(draft.counter(line), 1_000_000n));
  draft.putCounter(counted(draft.counter(line), 1_000_000n));
  draft.putReservation({ ...held, status: "released", settledAt: scene.now });
  const changes = draft.changes();
  assert.deepEqual(changes.map(({ table, verb }) => `${verb} ${table}`), [
    "put counters",
    "put reservations",
  ]);
  const [counter] = changes;
  assert.equal(counter?.table === "counters" && counter.row.count, 4_000_000n);
  assert.deepEqual(scene.counts(), { g: 2 });
  assert.equal(scene.state.reservations.get(held.id)?.status, "held");
});

Deno.test("a row that the state lacks is appended, however often it is put", () => {
  const { scene, held } = sceneWithHold();
  const draft = new Draft(scene.state);
  draft.putReservation({ ...held, id: "rsv_new" });
  draft.putReservation({ ...held, id: "rsv_new", expiresAt: 5 });
  assert.deepEqual(draft.changes().map(({ verb }) => verb), ["append"]);
  assert.deepEqual([...openHolds(draft)].map(({ id }) => id), [held.id, "rsv_new"]);
  assert.equal(draft.nextDueWritten(), 5);
  assert.equal(draft.nextDue(), 5);
});

Deno.test("open holds and what is due next leave out what the draft has settled", () => {
  const { scene, held } = sceneWithHold();
  const draft = new Draft(scene.state);
  assert.equal(draft.nextDue(), held.expiresAt);
  draft.putReservation({ ...held, status: "expired", settledAt: held.expiresAt });
  assert.deepEqual([...openHolds(draft)], []);
  assert.equal(draft.nextDue(), null);
});

Deno.test("the user's row takes parts one after another", () => {
  const { scene } = sceneWithHold();
  const draft = new Draft(scene.state);
  draft.putUser({ dueAt: 1 });
  draft.putUser({ entitlement: null });
  const [change] = draft.changes();
  assert.deepEqual(change?.table === "users" && [change.row.dueAt, change.row.entitlement], [1, null]);
  assert.notEqual(scene.state.user.entitlement, null);
});

Deno.test("a turn may have more records than a call takes arguments", () => {
  const draft = new Draft(sceneWithHold().scene.state);
  const row = { eventId: "e", userKey: 7, realm: 1, prompt: null, response: null, at: 0 };
  for (let record = 0; record < 300_000; record++) {
    draft.appendRecord({ verb: "append", table: "event_logs", row });
  }
  assert.equal(draft.changes().length, 300_000);
});
