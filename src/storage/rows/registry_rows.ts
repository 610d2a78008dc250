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
export interface OldIdentitySecret {
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
  readonly version: number;
  readonly document: CatalogDocument;
  /** Every plan id ever added, oldest first. */
  readonly planOrder: readonly string[];
  /** Every price row that the app's catalogs ever had, indexed by its number. */
  readonly priceRows: readonly ModelDocument[];
  /** Every rate that the app's catalogs ever had, indexed by its number. */
  readonly rateRows: readonly RateDocument[];
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
}
