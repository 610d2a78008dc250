// Reads the catalog in force, for the names and options of pages and forms.

import type { PackDocument, PlanDocument } from "../../../src/domain/catalog/catalog.ts";
import type { AppMode } from "./ask.ts";
import type { PageRequest } from "./page_context.ts";

/** The catalog as the API returns it; of an app without a catalog only the version. */
export interface ShownCatalog {
  readonly version: number;
  readonly plans?: readonly PlanDocument[];
  readonly packs?: readonly PackDocument[];
  readonly settings?: { readonly promptLogging?: boolean };
}

/** Reads an app's catalog; an empty one where the call fails. */
export async function readCatalog({ ask }: PageRequest, { appId }: AppMode): Promise<ShownCatalog> {
  const catalog = await ask.admin<ShownCatalog>("getCatalog", { appId });
  return catalog.ok ? catalog.data : { version: 0 };
}

/** A plan by its ID. */
export function planOf({ plans = [] }: ShownCatalog, planId: string): PlanDocument | null {
  return plans.find(({ id }) => id === planId) ?? null;
}

/** The name of a plan; its ID where it is no longer in the catalog. */
export function planName(catalog: ShownCatalog, planId: string): string {
  return planOf(catalog, planId)?.name ?? planId;
}

/** A pack by its ID. */
export function packOf({ packs = [] }: ShownCatalog, packId: string): PackDocument | null {
  return packs.find(({ id }) => id === packId) ?? null;
}
