// Catalogs for how a product earns: credits with a rate card.

import { alerting, sharing } from "./catalogs.ts";
import type { CatalogDocument } from "./document.ts";
import { rated } from "./rated_catalog.ts";
import { Random } from "./random.ts";

export const moneyCatalogs: Record<"rated", CatalogDocument> = {
  rated: sharing(alerting(rated, new Random(8)), new Random(9)),
};
