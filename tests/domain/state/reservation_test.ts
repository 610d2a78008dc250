// The states of a reservation: every state under every trigger, the missing reservation included, with the change of
// the counter, the recorded event and the operations.

import assert from "node:assert/strict";
import { numberOf } from "../../../src/domain/values/amount.ts";
import {
  countersOf,
  type HoldLine,
  type Reservation,
  type ReservationStatus,
  type ReservationTrigger,
  TRANSITIONS,
} from "../../../src/domain/state/reservation.ts";
import { planOf, Scene, sizeOf } from "../scene.ts";

const PLAN = planOf("plan_a", { g: 10 });
const HEADROOM = planOf("plan_h", { g: 10 }, { headroom: { mode: "percent", value: 50 } });

type State = ReservationStatus | "missing";
type Trigger = ReservationTrigger | "reserve";

interface Row {
  readonly state: State;
  readonly trigger: Trigger;
  /** The condition of the row, in words. */
  readonly when?: string;
  /** Brings a scene from its state to the trigger. */
  readonly before?: (scene: Scene) => void;
  readonly plan?: "plan_a" | "plan_h" | "none";
  readonly event?: string;
  readonly next: State;
  /** What the trigger answers: "ok", a refusal's code, or the reason of a reserve that is not allowed. */
  readonly answer: string;
  readonly count: number;
  readonly events?: readonly string[];
  readonly operations?: number;
  readonly recharged?: boolean;
  readonly overflow?: boolean;
}

const HELD = 4;

// deno-fmt-ignore: a row a case
const ROWS: readonly Row[] = [
  { state: "missing", trigger: "reserve", next: "held", answer: "ok", count: 4 },
  { state: "missing", trigger: "reserve", when: "no group matches", event: "y", next: "missing", answer: "unmatched_event", count: 0 },
  { state: "missing", trigger: "reserve", when: "no subscription", plan: "none", next: "missing", answer: "no_subscription", count: 0 },
  { state: "missing", trigger: "reserve", when: "at quota", before: (scene) => scene.reserve(10), next: "missing", answer: "limit_reached", count: 10 },
  { state: "missing", trigger: "reserve", when: "one over what is left", before: (scene) => scene.reserve(7), next: "missing", answer: "limit_reached", count: 7 },
  { state: "missing", trigger: "reserve", when: "inside headroom, below quota", plan: "plan_h", before: (scene) => scene.reserve(5), next: "missing", answer: "reservation_headroom_exceeded", count: 5 },
  { state: "missing", trigger: "commit", next: "missing", answer: "not_found", count: 0 },
  { state: "missing", trigger: "release", next: "missing", answer: "not_found", count: 0 },
  { state: "missing", trigger: "expire", next: "missing", answer: "ok", count: 0 },
  { state: "held", trigger: "commit", next: "committed", answer: "ok", count: 4, events: ["matched"], operations: 1 },
  { state: "held", trigger: "commit", when: "past quota", before: (scene) => scene.reserve(6), next: "committed", answer: "ok", count: 12, events: ["matched"], operations: 1, overflow: true },
  { state: "held", trigger: "commit", when: "after its period has rolled", before: (scene) => scene.at("2026-04-01T00:00:00.000Z"), next: "committed", answer: "ok", count: 0, events: ["matched"], operations: 1 },
  { state: "held", trigger: "release", next: "released", answer: "ok", count: 0, events: ["released"] },
  { state: "held", trigger: "release", when: "after its period has rolled", before: (scene) => scene.at("2026-04-01T00:00:00.000Z"), next: "released", answer: "ok", count: 0, events: ["released"] },
  { state: "held", trigger: "expire", next: "expired", answer: "ok", count: 0 },
  { state: "expired", trigger: "commit", next: "committed", answer: "ok", count: 4, events: ["matched"], operations: 1, recharged: true },
  { state: "expired", trigger: "commit", when: "where others took the room", before: (scene) => scene.reserve(9), next: "committed", answer: "ok", count: 13, events: ["matched"], operations: 1, recharged: true, overflow: true },
  { state: "expired", trigger: "commit", when: "after its period has rolled", before: (scene) => scene.at("2026-05-01T00:00:00.000Z"), next: "committed", answer: "ok", count: 0, events: ["matched"], operations: 1, recharged: true },
  { state: "expired", trigger: "release", next: "expired", answer: "reservation_not_pending", count: 0 },
  { state: "expired", trigger: "expire", next: "expired", answer: "ok", count: 0 },
  { state: "committed", trigger: "commit", next: "committed", answer: "reservation_not_pending", count: 4 },
  { state: "committed", trigger: "release", next: "committed", answer: "reservation_not_pending", count: 4 },
  { state: "committed", trigger: "expire", next: "committed", answer: "ok", count: 4 },
  { state: "released", trigger: "commit", next: "released", answer: "reservation_not_pending", count: 0 },
  { state: "released", trigger: "release", next: "released", answer: "reservation_not_pending", count: 0 },
  { state: "released", trigger: "expire", next: "released", answer: "ok", count: 0 },
];

for (const row of ROWS) {
  const when = row.when === undefined ? "" : `, ${row.when}`;
  Deno.test(`reservation ${row.state}, ${row.trigger}${when}: ${row.answer}, then ${row.next}`, () =>
    check(row));
}

Deno.test("every state under every trigger has its row", () => {
  const covered = new Set(ROWS.map(({ state, trigger }) => `${state} ${trigger}`));
  for (const [state, triggers] of Object.entries(TRANSITIONS)) {
    for (const trigger of Object.keys(triggers)) {
      assert.ok(covered.has(`${state} ${trigger}`), `${state} ${trigger}`);
    }
  }
});

function check(row: Row): void {
  const settings = { reservationTtlSeconds: 60 * 86_400 };
  const scene = new Scene([PLAN, HEADROOM], undefined, [], { settings });
  if (row.plan !== "none") scene.subscribe(row.plan ?? "plan_a");
  const id = bringTo(scene, row.state);
  row.before?.(scene);
  const from = scene.changes.length;
  const { answer, operations, recharged, overflow, made } = pull(scene, row, id);
  assert.equal(answer, row.answer);
  assert.equal(operations, row.operations ?? 0);
  assert.equal(recharged, row.recharged ?? false);
  assert.equal(overflow, row.overflow ?? false);
  const status = scene.state.reservations.get(made ?? id)?.status ?? "missing";
  assert.equal(status, row.next);
  const events = scene.changes.slice(from).flatMap((each) =>
    each.table === "events" ? [each.row.matchStatus] : []
  );
  assert.deepEqual(events, row.events ?? []);
  assert.equal(row.plan === "none" ? 0 : scene.counts().g, row.count);
}

/** A reservation of 4 in the wanted state; an id that names none where it is missing. */
function bringTo(scene: Scene, state: State): string {
  if (state === "missing") return "rsv_7_00000000000000000099";
  const id = scene.reserve(HELD, { ttlMs: state === "expired" ? 10_000 : null }) as string;
  if (state === "committed") scene.ask("commit", commitOf(id));
  if (state === "released") scene.ask("release", { reservationId: id, reason: null, errorCode: null });
  if (state === "expired") scene.wait(10).ask("settle", {});
  return id;
}

function commitOf(reservationId: string, extra = {}) {
  return { reservationId, extra, actual: {}, costCents: null };
}

function pull(scene: Scene, row: Row, id: string) {
  const none = { recharged: false, overflow: false, operations: 0, made: null as string | null };
  switch (row.trigger) {
    case "reserve": {
      const input = {
        event: row.event ?? "x.make",
        metadata: null,
        size: sizeOf({ count: HELD }),
        ttlMs: null,
      };
      const { reasons, hold } = scene.ask("reserve", input);
      return { ...none, answer: reasons[0] ?? "ok", made: hold?.reservationId ?? null };
    }
    case "commit": {
      const extra = row.when === "past quota" ? { count: 2_000_000n } : {};
      const { result, operations } = scene.do("commit", commitOf(id, extra));
      if (!result.ok) return { ...none, answer: result.refusal.code, operations };
      const { recharged, groups } = result.answer;
      return {
        ...none,
        answer: "ok",
        operations,
        recharged,
        overflow: groups.some((group) => group.overflow),
      };
    }
    case "release":
      return { ...none, answer: scene.code("release", { reservationId: id, reason: null, errorCode: null }) };
    case "expire": {
      if (row.state === "held") scene.now = scene.state.reservations.get(id)?.expiresAt as number;
      return { ...none, answer: scene.code("settle", {}) };
    }
  }
}

Deno.test("a hold lapses at its expiry to the millisecond", () => {
  const scene = new Scene([PLAN]);
  scene.subscribe("plan_a");
  scene.reserve(10, { ttlMs: 10_000 });
  scene.now += 9_999;
  assert.equal(scene.reserve(1), null);
  scene.now += 1;
  assert.notEqual(scene.reserve(1), null);
});

Deno.test("after a commit past quota the next reserve on the group is refused", () => {
  const scene = new Scene([PLAN]);
  scene.subscribe("plan_a");
  const id = scene.reserve(HELD) as string;
  const { groups } = scene.ask("commit", commitOf(id, { count: 100_000_000n }));
  assert.deepEqual(groups.map(({ current, overflow }) => [numberOf(current), overflow]), [[104, true]]);
  assert.equal(scene.reserve(1), null);
});

Deno.test("a correction below zero floors the counter at zero", () => {
  const scene = new Scene([PLAN]);
  scene.subscribe("plan_a");
  const id = scene.reserve(HELD) as string;
  scene.ask("commit", commitOf(id, { count: -100_000_000n }));
  assert.deepEqual(scene.counts(), { g: 0 });
});

Deno.test("a settlement needs the counters of the lines, and those that the lines left", () => {
  const refOf = (planId: string) => ({ planId, groupId: "g", window: { start: 0, end: null } });
  const line = { ...refOf("b"), unit: "count", taken: 1n } as const;
  const plansOf = (lines: readonly HoldLine[]) =>
    countersOf({ lines } as unknown as Reservation).map(({ planId }) => planId);
  assert.deepEqual(plansOf([line]), ["b"]);
  assert.deepEqual(plansOf([{ ...line, left: [refOf("a"), refOf("c")] }]), ["b", "a", "c"]);
});
