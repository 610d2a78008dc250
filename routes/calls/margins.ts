// Margins: the revenue of each plan, by its price and its seats, against the cost of its calls.

import type { Realm } from "../../actors/call.ts";
import { MARGIN_DAYS, marginOf } from "../../src/domain/plans/margin.ts";
import { amountOf, numberOf } from "../../src/domain/values/amount.ts";
import type { Millis } from "../../src/domain/values/period.ts";
import { addForRead, type AddingWorld } from "../../src/operations/sweeps/daily_use.ts";
import { type DayOfUse, listDailyUse } from "../../src/storage/queries/daily_use.ts";
import { countSeats, type PlanSeats } from "../../src/storage/queries/plan_seats.ts";
import type { Registry } from "../../src/tenant/registry.ts";
import { timeText } from "../contract/fields.ts";
import { listMargins } from "../contract/margins.ts";
import { dayText } from "../contract/service.ts";
import { success } from "../http/answer.ts";
import { keylessEndpointsOn } from "../http/endpoint.ts";
import type { KeylessEndpoint } from "../http/endpoint_types.ts";
import { appOf } from "./admin.ts";

type World = AddingWorld & {
  readonly database: Parameters<typeof listDailyUse>[0];
  readonly registry: Pick<Registry, "apps">;
};

const endpoint = keylessEndpointsOn<World>();

const DAY_MS = 86_400_000;
/** The most plans in an answer. */
const PLANS_MAX = 1_000;
/** Seats are counted again after this many times the duration of the last count. */
const REST_FACTOR = 20;
/** If the last count took longer than this, callers do not wait for the next one ... */
const SLOW_MS = 50;
/** ... unless the last result is older than this. */
const STALE_MS = 86_400_000;

/** Margins of plans. */
export const MARGINS: readonly KeylessEndpoint<World>[] = [
  endpoint(listMargins, async ({ world, input }) => {
    const { appId, mode, userId = null } = input;
    const realm = appOf(world, appId).realms[mode];
    const to = Math.floor(realm.now() / DAY_MS);
    const countedUntil = await addForRead(world, realm);
    const from = to - MARGIN_DAYS + 1;
    const query = {
      realm: realm.realm,
      from,
      to,
      by: "plan",
      measure: "events",
      partsMax: PLANS_MAX,
      userId,
    } as const;
    const [days, seats] = await Promise.all([
      listDailyUse(world.database, query),
      userId === null ? seatsOf(world, realm) : countNow(world, realm, userId),
    ]);
    return success({
      from: dayText(from),
      to: dayText(to),
      countedUntil: timeText(countedUntil),
      seatsAt: timeText(seats.at),
      plans: marginsOf(realm, seats.plans, days),
    });
  }),
];

/** Seats, and when they were counted, by the clock of the realm. */
interface Counted {
  readonly at: Millis;
  readonly plans: readonly PlanSeats[];
}

async function countNow({ database }: World, realm: Realm, userId: string | null): Promise<Counted> {
  const at = realm.now();
  return { at, plans: await countSeats(database, realm.realm, at, userId) };
}

/** The last count of the seats of a realm. Times are by the clock of the process. */
interface Kept {
  readonly counted: Promise<Counted>;
  /** No new count begins before this time; Infinity while a count runs. */
  until: number;
  /** Until this time callers get the last result while a new count runs. */
  staleUntil: number;
}

const KEPT = new WeakMap<Realm, Kept>();

/** Counts the seats of a realm, or returns the last result: a count reads every subscription. */
async function seatsOf(world: World, realm: Realm): Promise<Counted> {
  const startedAt = performance.now();
  const kept = KEPT.get(realm);
  if (kept !== undefined && startedAt < kept.until) return await kept.counted;
  const entry: Kept = { counted: countNow(world, realm, null), until: Infinity, staleUntil: 0 };
  const counted = entry.counted.finally(() => {
    const now = performance.now();
    const took = now - startedAt;
    entry.until = now + took * REST_FACTOR;
    if (took > SLOW_MS) entry.staleUntil = now + STALE_MS;
  });
  if (kept === undefined || startedAt >= kept.staleUntil) {
    KEPT.set(realm, entry);
    return await counted;
  }
  kept.until = Infinity;
  counted.then(() => KEPT.set(realm, entry), () => KEPT.delete(realm));
  return await kept.counted;
}

/** Joins prices, seats and cost by plan: plans of the catalog in their order, then others, then events without a plan. */
function marginsOf({ catalog }: Realm, seats: readonly PlanSeats[], days: readonly DayOfUse[]) {
  const cost = new Map<string | null, { costCents: number; unpriced: number }>();
  for (const { planId, costCents, unpriced = 0 } of days.flatMap(({ parts }) => parts)) {
    const sum = cost.get(planId) ?? { costCents: 0, unpriced: 0 };
    cost.set(planId, { costCents: sum.costCents + costCents, unpriced: sum.unpriced + unpriced });
  }
  const seatsOfPlan = new Map(seats.map((each) => [each.planId, each]));
  const { plans, planPrices } = catalog;
  const ids = new Set<string | null>([...plans.keys(), ...seatsOfPlan.keys(), ...cost.keys()]);
  return [...ids].flatMap((planId) => {
    const price = planPrices.get(planId ?? "") ?? null;
    const [counted, used] = [seatsOfPlan.get(planId ?? ""), cost.get(planId)];
    if (price === null && counted === undefined && used === undefined) return [];
    const plan = plans.get(planId ?? "");
    const costCents = amountOf(used?.costCents ?? 0);
    const { revenue, margin } = marginOf(price, plan?.period ?? NO_PERIOD, counted?.seats ?? 0, costCents);
    return [{
      planId,
      planName: plan?.name ?? null,
      price,
      users: counted?.users ?? 0,
      seats: counted?.seats ?? 0,
      revenue: revenue === null || price === null
        ? null
        : { amount: numberOf(revenue), currency: price.currency },
      costCents: numberOf(costCents),
      unpriced: used?.unpriced ?? 0,
      marginCents: margin === null ? null : numberOf(margin),
    }];
  });
}

/** Of a plan that the catalog lacks. */
const NO_PERIOD = { type: "lifetime" } as const;
