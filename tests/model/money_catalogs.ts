// Catalogs for how a product earns: credits with a rate card, and what is sold past quotas.

import { alerting, sharing } from "./catalogs.ts";
import type { CatalogDocument } from "./document.ts";
import { rated } from "./rated_catalog.ts";
import { Random } from "./random.ts";
import { selling } from "./selling_catalog.ts";

export const moneyCatalogs: Record<"rated" | "selling", CatalogDocument> = {
  rated: sharing(alerting(rated, new Random(8)), new Random(9)),
  selling: sharing(alerting(selling, new Random(10)), new Random(11)),
};
