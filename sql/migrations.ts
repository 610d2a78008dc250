// The migrations in order, as text modules, so that they are inside a compiled binary. A landed file is never
// edited, renamed or removed; a change of the schema is a new file at the end of this list.

import core from "./0001_core.sql" with { type: "text" };
import credits from "./0002_credits.sql" with { type: "text" };
import aliases from "./0003_aliases.sql" with { type: "text" };
import logs from "./0004_logs.sql" with { type: "text" };
import people from "./0005_people.sql" with { type: "text" };
import compose from "./0006_compose.sql" with { type: "text" };
import largeTables from "./0007_large_tables.sql" with { type: "text" };
import movedRows from "./0008_moved_rows.sql" with { type: "text" };
import charges from "./0009_charges.sql" with { type: "text" };
import identitySecrets from "./0010_identity_secrets.sql" with { type: "text" };
import prices from "./0011_prices.sql" with { type: "text" };
import members from "./0012_members.sql" with { type: "text" };
import refusals from "./0013_refusals.sql" with { type: "text" };
import webhooks from "./0014_webhooks.sql" with { type: "text" };
import console from "./0015_console.sql" with { type: "text" };
import dailyUse from "./0016_daily_use.sql" with { type: "text" };
import references from "./0017_references.sql" with { type: "text" };
import stripe from "./0018_stripe.sql" with { type: "text" };
import lessLog from "./0019_less_log.sql" with { type: "text" };
import openHolds from "./0020_open_holds.sql" with { type: "text" };
import personLinks from "./0021_person_links.sql" with { type: "text" };
import failedSignIns from "./0022_failed_sign_ins.sql" with { type: "text" };
import gatewaySpend from "./0023_gateway_spend.sql" with { type: "text" };
import stripeMoney from "./0024_stripe_money.sql" with { type: "text" };
import carriedCounters from "./0025_carried_counters.sql" with { type: "text" };
import accounts from "./0026_accounts.sql" with { type: "text" };
import runs from "./0027_runs.sql" with { type: "text" };
import userKeys from "./0028_user_keys.sql" with { type: "text" };
import shares from "./0029_shares.sql" with { type: "text" };
import windows from "./0030_windows.sql" with { type: "text" };
import features from "./0031_features.sql" with { type: "text" };
import trials from "./0032_trials.sql" with { type: "text" };
import rates from "./0033_rates.sql" with { type: "text" };
import includedCredits from "./0034_included_credits.sql" with { type: "text" };
import topUps from "./0035_top_ups.sql" with { type: "text" };
import overage from "./0036_overage.sql" with { type: "text" };
import readers from "./0037_readers.sql" with { type: "text" };
import views from "./0038_views.sql" with { type: "text" };
import userLists from "./0039_user_lists.sql" with { type: "text" };
import dailyParts from "./0040_daily_parts.sql" with { type: "text" };
import agentGrants from "./0041_agent_grants.sql" with { type: "text" };
import failedRequests from "./0042_failed_requests.sql" with { type: "text" };
import keyUse from "./0043_key_use.sql" with { type: "text" };
import attempts from "./0044_attempts.sql" with { type: "text" };
import catalogVersions from "./0045_catalog_versions.sql" with { type: "text" };
import work from "./0046_work.sql" with { type: "text" };
import stores from "./0048_stores.sql" with { type: "text" };
import overageEnds from "./0049_overage_ends.sql" with { type: "text" };
import splits from "./0050_splits.sql" with { type: "text" };
import consoleLists from "./0051_console_lists.sql" with { type: "text" };
import parentsInViews from "./0052_parents_in_views.sql" with { type: "text" };

/** A migration: a name that says its place, and its SQL. */
export interface Migration {
  readonly name: string;
  readonly sql: string;
}

export const MIGRATIONS: readonly Migration[] = [
  { name: "0001_core", sql: core },
  { name: "0002_credits", sql: credits },
  { name: "0003_aliases", sql: aliases },
  { name: "0004_logs", sql: logs },
  { name: "0005_people", sql: people },
  { name: "0006_compose", sql: compose },
  { name: "0007_large_tables", sql: largeTables },
  { name: "0008_moved_rows", sql: movedRows },
  { name: "0009_charges", sql: charges },
  { name: "0010_identity_secrets", sql: identitySecrets },
  { name: "0011_prices", sql: prices },
  { name: "0012_members", sql: members },
  { name: "0013_refusals", sql: refusals },
  { name: "0014_webhooks", sql: webhooks },
  { name: "0015_console", sql: console },
  { name: "0016_daily_use", sql: dailyUse },
  { name: "0017_references", sql: references },
  { name: "0018_stripe", sql: stripe },
  { name: "0019_less_log", sql: lessLog },
  { name: "0020_open_holds", sql: openHolds },
  { name: "0021_person_links", sql: personLinks },
  { name: "0022_failed_sign_ins", sql: failedSignIns },
  { name: "0023_gateway_spend", sql: gatewaySpend },
  { name: "0024_stripe_money", sql: stripeMoney },
  { name: "0025_carried_counters", sql: carriedCounters },
  { name: "0026_accounts", sql: accounts },
  { name: "0027_runs", sql: runs },
  { name: "0028_user_keys", sql: userKeys },
  { name: "0029_shares", sql: shares },
  { name: "0030_windows", sql: windows },
  { name: "0031_features", sql: features },
  { name: "0032_trials", sql: trials },
  { name: "0033_rates", sql: rates },
  { name: "0034_included_credits", sql: includedCredits },
  { name: "0035_top_ups", sql: topUps },
  { name: "0036_overage", sql: overage },
  { name: "0037_readers", sql: readers },
  { name: "0038_views", sql: views },
  { name: "0039_user_lists", sql: userLists },
  { name: "0040_daily_parts", sql: dailyParts },
  { name: "0041_agent_grants", sql: agentGrants },
  { name: "0042_failed_requests", sql: failedRequests },
  { name: "0043_key_use", sql: keyUse },
  { name: "0044_attempts", sql: attempts },
  { name: "0045_catalog_versions", sql: catalogVersions },
  { name: "0046_work", sql: work },
  { name: "0048_stores", sql: stores },
  { name: "0049_overage_ends", sql: overageEnds },
  { name: "0050_splits", sql: splits },
  { name: "0051_console_lists", sql: consoleLists },
  { name: "0052_parents_in_views", sql: parentsInViews },
];
