// Requests about what groups sell past their quota: the caps of users, and the sums by the hour.

import type { CatalogDocument, Input } from "./document.ts";
import type { Random } from "./random.ts";

const HOUR_MS = 60 * 60 * 1000;

/** Whether any group sells. */
export function sells({ plans }: CatalogDocument): boolean {
  return plans.some(({ limits }) => limits.some(({ overage }) => overage !== undefined));
}

/** Whether something happens at the ends of hours. */
export function goesByHours(catalog: CatalogDocument): boolean {
  return sells(catalog) || catalog.plans.some(({ includes }) => includes !== undefined);
}

/** Mostly a cap that a group may have; now and then one that is too high, or of a group that sells nothing. */
export function spendCapInput(random: Random, { plans }: CatalogDocument, userId: string): Input {
  const groups = plans.flatMap(({ limits }) => limits);
  const selling = groups.filter(({ overage }) => overage !== undefined);
  const { id: groupId, overage } = random.pick(random.chance(0.9) ? selling : groups);
  const most = overage?.max ?? 5;
  const max = random.pick([null, null, 0, most / 2, most / 4, most, random.whole(0, 40) / 10, most + 1]);
  return { userId, groupId: random.chance(0.04) ? "lg_unknown" : groupId, max };
}

/** The sums of some hours, or all. */
export function overageInput(random: Random, userId: string, nowMs: number): Input {
  const hour = Math.floor(nowMs / HOUR_MS) * HOUR_MS;
  const iso = (hours: number) => new Date(hour + hours * HOUR_MS).toISOString();
  const from = iso(random.pick([-1000, -24, -3, -1]));
  return { userId, from, to: iso(random.pick([1, 1, 0, 24])) };
}

export function toNextHour(nowMs: number): number {
  return HOUR_MS - nowMs % HOUR_MS;
}
