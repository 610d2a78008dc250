// What forms offer to choose from, of the catalog in force.

import type { PackDocument, PlanDocument } from "../../../src/domain/catalog/catalog.ts";
import type { AppMode } from "../parts/ask.ts";
import type { PageRequest } from "../parts/page_context.ts";

/** The catalog as the API shows it; an app without one has no members but its version. */
export interface ShownCatalog {
  readonly version: number;
  readonly plans?: readonly PlanDocument[];
  readonly packs?: readonly PackDocument[];
  readonly settings?: { readonly promptLogging?: boolean };
}

/** The catalog in force of an app. */
export async function readCatalog({ ask }: PageRequest, { appId }: AppMode): Promise<ShownCatalog> {
  const catalog = await ask.admin<ShownCatalog>("getCatalog", { appId });
  return catalog.ok ? catalog.data : { version: 0 };
}

/** A plan by its id. */
export function planOf({ plans = [] }: ShownCatalog, planId: string): PlanDocument | null {
  return plans.find(({ id }) => id === planId) ?? null;
}

/** The name of a plan, or its id where the catalog has it no more. */
export function planName(catalog: ShownCatalog, planId: string): string {
  return planOf(catalog, planId)?.name ?? planId;
}

/** A pack by its id. */
export function packOf({ packs = [] }: ShownCatalog, packId: string): PackDocument | null {
  return packs.find(({ id }) => id === packId) ?? null;
}
