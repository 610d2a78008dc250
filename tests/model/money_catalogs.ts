// Catalogs for how a product earns: credits with a rate card, what is sold past quotas, and
// packs that come with plans.

import { alerting, sharing } from "./catalogs.ts";
import type { CatalogDocument } from "./document.ts";
import { rated } from "./rated_catalog.ts";
import { including } from "./including_catalog.ts";
import { Random } from "./random.ts";
import { selling } from "./selling_catalog.ts";

export const moneyCatalogs: Record<"rated" | "selling" | "including", CatalogDocument> = {
  rated: sharing(alerting(rated, new Random(8)), new Random(9)),
  selling: sharing(alerting(selling, new Random(10)), new Random(11)),
  including: sharing(alerting(including, new Random(12)), new Random(13)),
};
