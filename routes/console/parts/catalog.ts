// Reads the catalog in force, for the names and options of pages and forms.

import type { AppMode } from "./ask.ts";
import type { PageRequest } from "./page_context.ts";
import type { AnswerOf } from "../../contract/definition.ts";
import { getCatalog } from "../../contract/catalogs.ts";

/** The catalog as the API returns it. */
export type ShownCatalog = AnswerOf<typeof getCatalog>;
type Plan = NonNullable<ShownCatalog["plans"]>[number];
type Pack = NonNullable<ShownCatalog["packs"]>[number];

/** Reads the catalog of an app and mode; an empty one where the call fails. */
export async function readCatalog({ ask }: PageRequest, { appId, mode }: AppMode): Promise<ShownCatalog> {
  const catalog = await ask.admin(getCatalog, { appId, mode });
  return catalog.ok ? catalog.data : { version: 0 };
}

/** A plan by its ID. */
export function planOf({ plans = [] }: ShownCatalog, planId: string): Plan | null {
  return plans.find(({ id }) => id === planId) ?? null;
}

/** The name of a plan; its ID where it is no longer in the catalog. */
export function planName(catalog: ShownCatalog, planId: string): string {
  return planOf(catalog, planId)?.name ?? planId;
}

/** The labels of the limit groups of all plans, by ID. A label that several plans use is followed by the plan's name. */
export function groupLabels({ plans = [] }: Pick<ShownCatalog, "plans">): ReadonlyMap<string, string> {
  const groups = plans.flatMap(({ name, limits }) => limits.map(({ id, label }) => ({ id, label, name })));
  const uses = Map.groupBy(groups, ({ label }) => label);
  return new Map(groups.map(({ id, label, name }) => {
    const isShared = uses.get(label)?.some((other) => other.name !== name) === true;
    return [id, isShared ? `${label} (${name})` : label];
  }));
}

/** A pack by its ID. */
export function packOf({ packs = [] }: ShownCatalog, packId: string): Pack | null {
  return packs.find(({ id }) => id === packId) ?? null;
}
