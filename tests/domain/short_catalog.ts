// Plans, groups and packs in short, so that a test states only what matters to it.

import type { PackDocument, PlanDocument } from "../../src/domain/catalog/catalog.ts";
import type { Unit } from "../../src/domain/catalog/plan.ts";

/** A plan in short: groups of unit count by id and quota, all for events "x.*". */
export function planOf(
  id: string,
  quotas: Record<string, number>,
  more: Partial<PlanDocument> = {},
): PlanDocument {
  return {
    id,
    name: id,
    rank: 1,
    period: { type: "monthly", anchor: "calendar" },
    limits: Object.entries(quotas).map(([group, quota]) => groupOf(group, quota)),
    ...more,
  };
}

/** A limit group in short. */
export function groupOf(id: string, quota: number, unit: Unit = "count", event = "x.*") {
  return { id, label: id, unit, quota, matches: [{ event }] };
}

/** A pack without items in short, named like its id. */
export function packOf(id: string, more: Partial<PackDocument> = {}): PackDocument {
  return { id, name: id, kind: "per_type", unit: "count", matches: [{ event: "x.*" }], items: [], ...more };
}

const ANY = [{ event: "*" }];

/** Packs without items: two for counts ("first" is spent first), a generic one, and one for each other unit. */
export const PACKS: readonly PackDocument[] = [
  packOf("first", { priority: 200 }),
  packOf("count"),
  packOf("wallet", { kind: "generic", matches: ANY }),
  packOf("tokens", { unit: "tokens", matches: ANY }),
  packOf("cents", { unit: "cents", matches: ANY }),
  packOf("seconds", { unit: "seconds", matches: ANY }),
];
