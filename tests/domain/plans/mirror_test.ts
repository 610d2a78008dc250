// Mirror: the row of a provider's subscription, its history, and its messages.

import assert from "node:assert/strict";
import type { InForce, Over } from "../../../src/domain/plans/mirror.ts";
import { planOf, Scene } from "../scene.ts";

const PLANS = [
  planOf("low", { g: 10 }),
  planOf("top", { g: 30 }, { rank: 3 }),
  planOf("old", { g: 5 }, { archived: true }),
  planOf("seat", { g: 2 }, { rank: 2, perSeat: true }),
];
const NOW = Date.parse("2026-03-10T12:00:00.000Z");
const DAY_MS = 86_400_000;

const inForce = (planId = "low", members: Partial<InForce> = {}): InForce => {
  return { planId, startsAt: NOW - DAY_MS, endsAt: null, quantity: undefined, ...members };
};
const over = (endedAt: number | null = null): Over => ({ endedAt, reason: "Stripe: canceled" });
const sceneOf = () => new Scene(PLANS, undefined, [], { listensTo: ["*"] });
const tell = (scene: Scene, state: InForce | Over) =>
  scene.ask("mirror", { provider: "stripe", externalId: "sub_1", state }).row;

/** The reports, then the history, the row and the counters of the user. */
interface Row {
  readonly name: string;
  readonly told: readonly (InForce | Over)[];
  readonly writes: readonly string[];
  /** The plan, the start and the end as days from now, and whether the end is settled; null for no row. */
  readonly row: readonly [planId: string, starts: number, ends: number | null, ended: boolean] | null;
  readonly counts: Readonly<Record<string, number>>;
}

// deno-fmt-ignore: a row a case
const ROWS: readonly Row[] = [
  { name: "new", told: [inForce()], writes: ["created"], row: ["low", -1, null, false], counts: { g: 0 } },
  { name: "the same again", told: [inForce(), inForce()], writes: ["created"], row: ["low", -1, null, false], counts: { g: 0 } },
  { name: "another plan", told: [inForce(), inForce("top")], writes: ["created", "plan_changed"], row: ["top", -1, null, false], counts: { g: 0 } },
  { name: "an archived plan", told: [inForce("old")], writes: ["created"], row: ["old", -1, null, false], counts: { g: 0 } },
  { name: "a start that lies ahead is now", told: [inForce("low", { startsAt: NOW + DAY_MS })], writes: ["created"], row: ["low", 0, null, false], counts: { g: 0 } },
  { name: "a start that is not reported is now", told: [inForce("low", { startsAt: null })], writes: ["created"], row: ["low", 0, null, false], counts: { g: 0 } },
  { name: "a later start of a known row changes nothing", told: [inForce(), inForce("low", { startsAt: NOW })], writes: ["created"], row: ["low", -1, null, false], counts: { g: 0 } },
  { name: "an end to come", told: [inForce(), inForce("low", { endsAt: NOW + DAY_MS })], writes: ["created", "canceled"], row: ["low", -1, 1, false], counts: { g: 0 } },
  { name: "an end that moves", told: [inForce("low", { endsAt: NOW + DAY_MS }), inForce("low", { endsAt: NOW + 2 * DAY_MS })], writes: ["created", "canceled"], row: ["low", -1, 2, false], counts: { g: 0 } },
  { name: "an end that is taken back", told: [inForce("low", { endsAt: NOW + DAY_MS }), inForce()], writes: ["created", "reactivated"], row: ["low", -1, null, false], counts: { g: 0 } },
  { name: "an end that has passed", told: [inForce(), inForce("top", { endsAt: NOW - DAY_MS / 2 })], writes: ["created", "canceled"], row: ["low", -1, -0.5, true], counts: {} },
  { name: "an end that has passed, told twice", told: [inForce(), inForce("low", { endsAt: NOW }), inForce("low", { endsAt: NOW })], writes: ["created", "canceled"], row: ["low", -1, 0, true], counts: {} },
  { name: "an end before the start", told: [inForce(), inForce("low", { endsAt: 1000 })], writes: ["created", "canceled"], row: ["low", -1, -1, true], counts: {} },
  { name: "a first one, already ended", told: [inForce("low", { endsAt: NOW - DAY_MS / 2 })], writes: ["created", "ended"], row: ["low", -1, -0.5, true], counts: {} },
  { name: "a first one with an end before its start", told: [inForce("low", { endsAt: 1000 })], writes: ["created", "ended"], row: ["low", -1, -1, true], counts: {} },
  { name: "over, now", told: [inForce(), over()], writes: ["created", "canceled"], row: ["low", -1, 0, true], counts: {} },
  { name: "over, twice", told: [inForce(), over(), over()], writes: ["created", "canceled"], row: ["low", -1, 0, true], counts: {} },
  { name: "over, in the past", told: [inForce(), over(NOW - DAY_MS / 4)], writes: ["created", "canceled"], row: ["low", -1, -0.25, true], counts: {} },
  { name: "over, before it started", told: [inForce(), over(1000)], writes: ["created", "canceled"], row: ["low", -1, -1, true], counts: {} },
  { name: "over at a time to come", told: [inForce(), over(NOW + DAY_MS)], writes: ["created", "canceled"], row: ["low", -1, 1, false], counts: { g: 0 } },
  { name: "over, after another end", told: [inForce("low", { endsAt: NOW + DAY_MS }), over()], writes: ["created", "canceled"], row: ["low", -1, 0, true], counts: {} },
  { name: "over and never known", told: [over()], writes: [], row: null, counts: {} },
  { name: "paused, and in force again", told: [inForce(), over(), inForce()], writes: ["created", "canceled", "reactivated"], row: ["low", -1, null, false], counts: { g: 0 } },
  { name: "and on another plan", told: [inForce(), over(), inForce("top")], writes: ["created", "canceled", "reactivated", "plan_changed"], row: ["top", -1, null, false], counts: { g: 0 } },
];

for (const { name, told, writes, row, counts } of ROWS) {
  Deno.test(`mirror: ${name}`, () => {
    const scene = sceneOf();
    for (const state of told) tell(scene, state);
    assert.deepEqual(scene.counts(), counts);
    assert.deepEqual(scene.history(), writes);
    assert.deepEqual(scene.messages.map(({ type }) => type), writes.map((type) => `subscription.${type}`));
    const rows = [...scene.state.subscriptions.values()];
    const days = (at: number | null) => at === null ? null : (at - NOW) / DAY_MS;
    assert.deepEqual(
      rows.map(({ planId, startedAt, endsAt, ended }) => [planId, days(startedAt), days(endsAt), ended]),
      row === null ? [] : [row],
    );
  });
}

Deno.test("mirror: custom limits of our own stay through everything but another plan", () => {
  const scene = sceneOf();
  tell(scene, inForce());
  scene.pay("low", "sub_1", { customLimits: { g: 7_000_000n } });
  const limits = () => [...scene.state.subscriptions.values()][0]?.customLimits;
  for (const state of [inForce("low", { endsAt: NOW + DAY_MS }), over(), inForce()]) tell(scene, state);
  assert.deepEqual(limits(), { g: 7_000_000n });
  tell(scene, inForce("top"));
  assert.deepEqual(limits(), {});
});

Deno.test("mirror: another number of seats changes the row alone, and a report without one keeps it", () => {
  const scene = sceneOf();
  for (const quantity of [2, 3, 3, undefined]) tell(scene, inForce("low", { quantity }));
  assert.equal([...scene.state.subscriptions.values()][0]?.quantity, 3);
  assert.deepEqual(scene.history(), ["created"]);
});

Deno.test("mirror: seats of a plan by the seat stay with it, and seats of our own with every plan", () => {
  const seatsAfter = (...told: InForce[]) => {
    const scene = sceneOf();
    for (const state of told) tell(scene, state);
    return [...scene.state.subscriptions.values()][0]?.quantity;
  };
  const five = inForce("seat", { quantity: 5 });
  assert.equal(seatsAfter(five, inForce("top")), 1);
  assert.equal(seatsAfter(five, inForce("top", { quantity: 3 })), 3);
  assert.equal(seatsAfter(five, inForce("seat")), 5);
  assert.equal(seatsAfter(inForce("low", { quantity: 4 }), inForce("top")), 4);
});

Deno.test("mirror: another subscription is promoted where this one is over, however that is reported", () => {
  for (const state of [over(), inForce("top", { endsAt: NOW })]) {
    const scene = sceneOf();
    tell(scene, inForce("top"));
    scene.pay("low", "sub_2");
    const from = scene.history().length;
    tell(scene, state);
    assert.deepEqual(scene.history(from), ["canceled", "promoted"]);
    assert.deepEqual(scene.counts(), { g: 0 });
  }
});

Deno.test("mirror: a plan that the catalog has lost is refused, and the row stays", () => {
  const scene = sceneOf();
  tell(scene, inForce());
  const input = { provider: "stripe", externalId: "sub_1", state: inForce("gone") };
  assert.equal(scene.code("mirror", input), "not_found");
  assert.deepEqual(scene.history(), ["created"]);
});
