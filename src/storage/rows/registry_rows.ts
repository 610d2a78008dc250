// The rows of the registry: workspaces, apps, API keys, catalogs, realms, webhook endpoints and connections to Stripe.

import type { Mode } from "../../../actors/port.ts";
import type { CatalogDocument } from "../../domain/catalog/catalog.ts";
import type { ModelDocument } from "../../domain/catalog/price_row.ts";
import type { RateDocument } from "../../domain/catalog/rate_row.ts";
import type { Millis } from "../../domain/values/period.ts";

/** A workspace with its caps; null means no limit. */
export interface Workspace {
  readonly workspaceId: string;
  readonly name: string;
  readonly operationCap: number | null;
  readonly testOperationCap: number | null;
  readonly aiBudgetCents: number | null;
  readonly testCreditBalanceCap: number | null;
}

/** An identity secret that was replaced. */
interface OldIdentitySecret {
  readonly secret: string;
  /** Real time. */
  readonly validUntil: Millis;
}

/** An app. */
export interface AppRecord {
  readonly appId: string;
  readonly workspaceId: string;
  readonly name: string;
  readonly identitySecret: string;
  readonly oldIdentitySecrets: readonly OldIdentitySecret[];
  readonly createdAt: Millis;
}

/** An API key; only its hash is stored. */
export interface ApiKey {
  readonly keyId: string;
  readonly appId: string;
  /** A `reader` may make every call that only reads, and sees no texts of prompts and responses. */
  readonly class: "secret" | "public" | "reader";
  readonly mode: Mode;
  readonly hash: string;
  readonly prefix: string;
  readonly name: string | null;
  readonly createdAt: Millis;
  /** The operator who created it; null if that is not known. */
  readonly createdBy: string | null;
  /** Real time from which it is invalid; null for a key without an end. */
  readonly validUntil: Millis | null;
  readonly revokedAt: Millis | null;
}

/** A catalog in force. */
export interface AppliedCatalog {
  readonly appId: string;
  /** "live" is also that of test mode, unless test mode has its own. */
  readonly mode: Mode;
  /** Both modes number their catalogs in one sequence. */
  readonly version: number;
  readonly document: CatalogDocument;
  /** Every plan id ever added, oldest first. */
  readonly planOrder: readonly string[];
  /** Every price row that the app's catalogs ever had, indexed by its number. */
  readonly priceRows: readonly ModelDocument[];
  /** Every rate that the app's catalogs ever had, indexed by its number. */
  readonly rateRows: readonly RateDocument[];
  /** Whether a catalog of test mode was promoted or dropped; only the row with its version and numbers is left. */
  readonly removed: boolean;
}

/** The SQL for app_id and document of the catalogs in force: of live mode, and of test mode where it has its own. */
export const LIVE_AND_TEST_CATALOGS = `(select app_id, document from catalogs
  union all select app_id, document from test_catalogs where not removed)`;

/** The same for the catalog that each app uses in test mode. */
export const CATALOGS_OF_TEST_MODE = `(select c.app_id, coalesce(t.document, c.document) as document
  from (select app_id, document from catalogs) c
  full join (select app_id, document from test_catalogs where not removed) t using (app_id))`;

/** A catalog document that is or was in force. */
export interface CatalogVersion {
  readonly appId: string;
  readonly version: number;
  /** "test": applied to test mode alone. */
  readonly mode: Mode;
  readonly at: Millis;
  /** The name of an operator, or "api"; null where it is not known. */
  readonly who: string | null;
  /** The differences to the catalog before, not all of a long list. */
  readonly changes: readonly {
    readonly path: string;
    readonly id: string;
    readonly change: "added" | "changed" | "removed";
  }[];
}

/** A realm. Its clock is not here: only the owner of its cell knows and moves it. */
export interface RealmRecord {
  readonly realm: number;
  readonly appId: string;
  readonly mode: Mode;
}

/** A secret that signs messages; `validUntil` is in real time, null for the current secret. */
export interface WebhookSecret {
  readonly secret: string;
  readonly validUntil: Millis | null;
}

/** A webhook endpoint of a customer. */
export interface Webhook {
  readonly webhookId: string;
  readonly appId: string;
  readonly mode: Mode;
  readonly url: string;
  /** Types, prefixes that end in ".*", or "*". */
  readonly events: readonly string[];
  readonly description: string | null;
  readonly disabled: boolean;
  /** Newest first. */
  readonly secrets: readonly WebhookSecret[];
  readonly createdAt: Millis;
  /** Whether it was deleted; only this row is left. */
  readonly removed: boolean;
}

/** The secret of the endpoint to which Stripe sends the messages of an app and mode. */
export interface StripeConnection {
  readonly appId: string;
  readonly mode: Mode;
  readonly webhookSecret: string;
  readonly setAt: Millis;
  /** Whether it was deleted; only this row is left. */
  readonly removed: boolean;
}

/** Rows of the registry: all, or those of a change. */
export interface RegistryRows {
  readonly workspaces: readonly Workspace[];
  readonly apps: readonly AppRecord[];
  readonly keys: readonly ApiKey[];
  readonly catalogs: readonly AppliedCatalog[];
  readonly realms: readonly RealmRecord[];
  readonly webhooks: readonly Webhook[];
  readonly stripe: readonly StripeConnection[];
  /** Every cell that another store serves since a split. */
  readonly moved: readonly MovedCell[];
}

/** A cell that another store serves. */
export interface MovedCell {
  readonly cell: number;
  /** The name of that store. */
  readonly store: string;
}
