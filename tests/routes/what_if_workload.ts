// A random workload of an app, and what its recorded events give under a catalog.

import assert from "node:assert/strict";
import { Random } from "../model/random.ts";
import type { TestApp, TestService } from "../support/test_service.ts";
import { dataOf } from "./support.ts";

export const DAILY = { type: "daily", anchor: "calendar" };

/** A limit group that matches one kind of event. */
export function group(id: string, unit: string, quota: number, more: object = {}) {
  return { id, label: id, unit, quota, matches: [{ event: `${id}.*` }], ...more };
}

const LIMITS = [
  group("images", "count", 12),
  group("chat", "tokens", 9_000, { period: { type: "hourly", anchor: "subscription_start" } }),
  group("clips", "seconds", 90),
  group("spend", "cents", 60),
  group("points", "credits", 50),
  group("sold", "count", 5, { overage: { max: 4 } }),
  group("burst", "count", 30, { period: { type: "session", seconds: 7_200 } }),
];

const CATALOG = {
  models: [
    {
      id: "gpt",
      modality: "text",
      amountMode: "per_token",
      inputCentsPerMillionTokens: 500,
      outputCentsPerMillionTokens: 2_000,
    },
    { id: "veo", modality: "video", amountMode: "per_unit", centsPerSecond: 0.5 },
  ],
  rates: [{ event: "points.*", perImage: 2, perMillionInputTokens: 500, perMillionOutputTokens: 900 }],
  plans: [
    { id: "small", name: "Small", rank: 1, period: DAILY, limits: LIMITS },
    {
      id: "large",
      name: "Large",
      rank: 2,
      period: { type: "weekly", anchor: "subscription_start" },
      includes: [{ packId: "extra", quantity: 1 }],
      limits: LIMITS.map((limit) => ({ ...limit, quota: limit.quota * 3 })),
    },
    {
      id: "team",
      name: "Team",
      rank: 3,
      period: DAILY,
      limits: [{ ...group("images", "count", 25, { perMember: { quota: 9 } }) }],
    },
  ],
  packs: [{
    id: "extra",
    name: "Extra",
    kind: "per_type",
    items: [{ id: "i", label: "Images", unit: "count", amount: 6, matches: [{ event: "images.*" }] }],
  }],
};

const PLANS = { a: "small", b: "small", c: "large", d: "small", boss: "team" };

/** Asks what a catalog would do to the events of a span: the result in the last line of the answer. */
export async function whatIf(
  service: TestService,
  app: TestApp,
  from: number,
  more: object = {},
) {
  const span = {
    mode: "live",
    from: new Date(from).toISOString(),
    to: new Date(service.clock.now()).toISOString(),
  };
  const { status, body } = await service.admin("POST", `/apps/${app.appId}/what-if`, { ...span, ...more });
  assert.equal(status, 200, JSON.stringify(body));
  const lines = String(body).trim().split("\n").map((line) => JSON.parse(line));
  assert.ok(lines.slice(0, -1).every(({ progress }) => progress !== undefined), String(body));
  return lines.at(-1).result;
}

/** The counters that the service has, as a result lists them. */
export async function countersOf(service: TestService, app: TestApp) {
  await service.serving().term.flush();
  const rows = await service.store.database.query<Record<string, string | number>>(
    `select u.id, c.group_id, c.window_start_ms, c.count from counters c join users u on u.key = c.user_key
     join realms r on r.realm = u.realm where r.app_id = $1 and c.count > 0 and c.kind is distinct from 'rate'`,
    [app.appId],
  );
  return rows.map((row) => ({
    userId: row.id,
    groupId: row.group_id,
    windowStart: new Date(Number(row.window_start_ms)).toISOString(),
    count: Number(row.count),
  })).toSorted(inOrder);
}

function inOrder(one: object, other: object): number {
  return JSON.stringify(one) < JSON.stringify(other) ? -1 : 1;
}

/** One call of a workload, of a random kind and size: a track, or a reserve that is settled. */
async function callAtRandom(service: TestService, app: TestApp, random: Random): Promise<number> {
  const userId = random.pick(Object.keys(PLANS));
  const kind = random.pick(LIMITS).id;
  const event = `${kind}.x`;
  const size = {
    ...kind === "chat" || random.chance(0.2) ? { inputTokens: random.whole(0, 3_000) } : {},
    ...kind === "clips" || random.chance(0.2) ? { quantity: random.whole(1, 40) / 2 } : {},
    ...random.chance(0.5) ? { count: random.whole(1, 4) } : {},
    ...random.chance(0.3) ? { metadata: { model: random.pick(["gpt", "veo", "none"]) } } : {},
    ...random.chance(0.2) ? { inputCostCents: random.whole(0, 9) } : {},
  };
  const usage = { inputTokens: random.whole(0, 2_000), outputTokens: random.whole(0, 2_000) };
  if (random.chance(0.5)) {
    const { status } = await app.call("POST", "/track", {
      userId,
      event,
      ...size,
      ...random.chance(0.3) ? { usage } : {},
    });
    return status;
  }
  const hold = await app.call("POST", "/reserve", {
    userId,
    event,
    ...size,
    maxOutputTokens: random.whole(0, 900),
  });
  if (hold.body.data?.allowed !== true) return hold.status;
  const { reservationId } = hold.body.data;
  service.clock.advance(random.whole(0, 200) * 1000);
  if (random.chance(0.15)) return (await app.call("POST", "/release", { reservationId })).status;
  const final = random.pick([{}, { usage }, { actual: { count: random.whole(0, 6) } }, {
    extra: { tokens: 500 },
  }, { costCents: 7 }]);
  return (await app.call("POST", "/commit", { reservationId, ...final })).status;
}

/** Runs a random workload on a new app; the counters that its events give, and those of the service. */
export async function countBoth(service: TestService, seed: number, steps: number) {
  const random = new Random(seed);
  const app = await service.newApp(CATALOG);
  service.clock.set(Math.ceil(service.clock.now() / 86_400_000) * 86_400_000);
  const from = service.clock.now();
  for (const [userId, planId] of Object.entries(PLANS)) {
    await dataOf(app.call("POST", "/subscriptions", { userId, planId }));
    service.clock.advance(1000);
  }
  for (const userId of ["a", "b"]) {
    await dataOf(app.call("PUT", `/users/${userId}/parent`, { parentId: "boss" }));
  }
  let blocked = 0;
  for (let step = 0; step < steps; step++) {
    service.clock.advance(random.whole(0, 200) * 1000);
    if (step === 100) {
      await dataOf(app.call("POST", "/credits/grant", { userId: "d", packId: "extra", quantity: 2 }));
    }
    if (await callAtRandom(service, app, random) === 429) blocked += 1;
  }
  service.clock.advance(1);
  const { events, users, counters } = await whatIf(service, app, from);
  return {
    blocked,
    events,
    users,
    folded: counters.toSorted(inOrder),
    counted: await countersOf(service, app),
  };
}
