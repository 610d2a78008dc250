// Parts that the catalogs of the model share.

import type { CatalogDocument, LimitGroup, Pack, Plan, Unit } from "./document.ts";

/** A model of each kind of price. */
export const MODELS: NonNullable<CatalogDocument["models"]> = [
  {
    id: "small",
    modality: "text",
    amountMode: "per_token",
    inputCentsPerMillionTokens: 333333.3,
    outputCentsPerMillionTokens: 250000,
  },
  { id: "paint", modality: "image", amountMode: "per_call", centsPerImage: 0.7 },
  { id: "film", modality: "video", amountMode: "per_unit", centsPerSecond: 1.1 },
];

export function group(
  id: string,
  unit: Unit,
  quota: number,
  events: string[],
  more: Partial<LimitGroup> = {},
): LimitGroup {
  const matches = events.map((event) => ({ event }));
  return { id: `lg_${id}`, label: `Label of ${id}`, unit, quota, matches, ...more };
}

/** A plan with a name made of its id. */
export function named(id: string, more: Omit<Plan, "id" | "name">): Plan {
  return { id: `plan_${id}`, name: id.charAt(0).toUpperCase() + id.slice(1), ...more };
}

export function pack(id: string, more: Partial<Pack>): Pack {
  return { id: `cpk_${id}`, name: id, kind: "generic", items: [], ...more };
}

/** A pack of one unit for some events. */
export function packOf(id: string, unit: Unit, events: string[], more: Partial<Pack> = {}): Pack {
  return pack(id, { unit, matches: events.map((event) => ({ event })), ...more });
}
