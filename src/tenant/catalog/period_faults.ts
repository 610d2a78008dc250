// What is wrong with the periods of limit groups: members that their type lacks or does not have, seconds out of range,
// members that no guard has, a pace where no window has a fixed length, and a kind that changes under an id.

import type { CatalogDocument } from "../../domain/catalog/catalog.ts";
import { PERIOD_TYPES } from "../../domain/values/period.ts";
import { isObject, listOf, type Loose, looseOf } from "./loose.ts";
import type { CatalogFault } from "./faults.ts";

/** The range of seconds of each type that has them. */
const SECONDS: ReadonlyMap<unknown, readonly [least: number, most: number]> = new Map([
  ["session", [60, 2_678_400]],
  ["rolling", [1, 86_400]],
]);

/** The faults of the periods of all groups of a document. */
export function* periodFaults(
  document: unknown,
  inForce: CatalogDocument | null,
): Iterable<CatalogFault> {
  const before = new Map([...groupsOf(inForce)].map(({ key, group }) => [key, looseOf(group.period)]));
  for (const { key, path, group, plan } of groupsOf(document)) {
    const period = looseOf(group.period);
    if (isObject(group.period)) {
      yield* memberFaults(period, `${path}.period`);
      if (isGuardType(period.type)) yield* guardFaults(group, path);
    }
    yield* paceFaults(group, looseOf(group.period ?? plan.period).type, path);
    const known = before.get(key);
    if (known !== undefined) yield* kindFaults(known, period, `${path}.period`);
  }
}

function* memberFaults({ type, anchor, seconds }: Loose, path: string): Iterable<CatalogFault> {
  const isCalendar = PERIOD_TYPES.some((each) => each === type);
  if (!isCalendar && type !== "concurrent" && !SECONDS.has(type)) return;
  if (isCalendar && anchor === undefined) {
    yield { path: `${path}.anchor`, message: `is needed when type is ${type}` };
  } else if (!isCalendar && anchor !== undefined) {
    yield { path: `${path}.anchor`, message: `must be left out when type is ${type}` };
  }
  const [least, most] = SECONDS.get(type) ?? [];
  if (least === undefined || most === undefined) {
    if (seconds !== undefined) {
      yield { path: `${path}.seconds`, message: `must be left out when type is ${type}` };
    }
  } else if (seconds === undefined) {
    yield { path: `${path}.seconds`, message: `is needed when type is ${type}` };
  } else if (typeof seconds === "number" && (seconds < least || seconds > most)) {
    yield { path: `${path}.seconds`, message: `must be from ${least} to ${most} when type is ${type}` };
  }
}

function* guardFaults(group: Loose, path: string): Iterable<CatalogFault> {
  for (const name of ["headroom", "alerts", "overage", "perMember"]) {
    const value = group[name];
    if (value === undefined || value === null) continue;
    yield { path: `${path}.${name}`, message: "must be left out: rates and concurrency limits only refuse" };
  }
}

/** The pace needs a window whose start and end no use decides. Guards have no alerts at all. */
function* paceFaults({ alerts }: Loose, type: unknown, path: string): Iterable<CatalogFault> {
  const place = Array.isArray(alerts) ? alerts.indexOf("pace") : -1;
  if (place < 0 || (type !== "lifetime" && type !== "session")) return;
  yield {
    path: `${path}.alerts[${place}]`,
    message: `must not be "pace" when the period is a ${type}: only windows of a fixed length have a pace`,
  };
}

/** Counters are kept under the group's id, so another kind of window would misread them. */
function* kindFaults(known: Loose, period: Loose, path: string): Iterable<CatalogFault> {
  const [before, after] = [kindOf(known.type), kindOf(period.type)];
  const advice = "and cannot change under this id: give the limit group a new id";
  if (before !== after) {
    yield { path: `${path}.type`, message: `is ${before} in the catalog in force ${advice}` };
  } else if (
    known.seconds !== undefined && period.seconds !== undefined && known.seconds !== period.seconds
  ) {
    yield { path: `${path}.seconds`, message: `is ${known.seconds} in the catalog in force ${advice}` };
  }
}

function kindOf(type: unknown): string {
  return isGuardType(type) || type === "session" ? String(type) : "a calendar period";
}

function isGuardType(type: unknown): boolean {
  return type === "rolling" || type === "concurrent";
}

/** The groups of a document, by plan and id. */
function* groupsOf(
  document: unknown,
): Iterable<{ key: string; path: string; group: Loose; plan: Loose }> {
  for (const [index, plan] of listOf(looseOf(document), "plans").entries()) {
    for (const [limit, group] of listOf(plan, "limits").entries()) {
      const path = `plans[${index}].limits[${limit}]`;
      yield { key: JSON.stringify([plan.id, group.id]), path, group, plan };
    }
  }
}
