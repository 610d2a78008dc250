// What was sold by the hour, as the wire lists it.

import { numberOf } from "../../src/domain/values/amount.ts";
import type { Millis } from "../../src/domain/values/period.ts";
import type { DecideSystem } from "./decide_system.ts";
import type { Input, ModelReply } from "../model/document.ts";

const HOUR_MS = 3_600_000;

/** Adds up what messages reported and what is pending, by hour. */
export function answerOverage(system: DecideSystem, input: Input, now: Millis): ModelReply {
  const userId = String(input["userId"]);
  system.run(userId, "settle", {}, now);
  const { user, aliases } = system.stateOf(userId, now);
  const keys = [user.key, ...aliases.map(({ key }) => key)];
  const windows = keys.flatMap((key) => system.tables.overages(key));
  const pending = windows.filter(({ dueAt }) => dueAt !== null)
    .map((row) => ({ ...row, hour: Math.floor((row.dueAt! - 1) / HOUR_MS) * HOUR_MS, amount: row.pending }));
  const told = system.soldHours.filter(({ userKey }) => keys.includes(userKey));
  const all = [...told, ...pending];
  const sums = new Map<
    string,
    { groupId: string; unit: string; window: string; hour: number; amount: bigint }
  >();
  for (const { groupId, unit, windowStart, windowEnd, hour, amount } of all) {
    const window = `${windowStart} ${windowEnd}`;
    const key = JSON.stringify([groupId, unit, window, hour]);
    const sum = sums.get(key) ?? { groupId, unit, window, hour, amount: 0n };
    sums.set(key, { ...sum, amount: sum.amount + amount });
  }
  const rows = [...sums.values()];
  const [from, to] = [Date.parse(String(input["from"])), Date.parse(String(input["to"]))];
  const overage = rows.filter(({ hour }) => hour >= from && hour < to).map((row) => ({
    userId: user.id,
    groupId: row.groupId,
    unit: row.unit,
    hour: new Date(row.hour).toISOString(),
    amount: numberOf(row.amount),
    total: numberOf(
      rows.filter((each) =>
        each.groupId === row.groupId && each.unit === row.unit && each.window === row.window &&
        each.hour <= row.hour
      ).reduce((sum, { amount }) => sum + amount, 0n),
    ),
  }));
  return { status: 200, data: { overage } };
}
