// The rows of the registry, as its tables store them: workspaces, apps, API keys, catalogs, realms, webhook endpoints and
// connections to Stripe.

import type { Mode } from "../../../actors/port.ts";
import type { CatalogDocument } from "../../domain/catalog/catalog.ts";
import type { ModelDocument } from "../../domain/catalog/price_row.ts";
import type { Millis } from "../../domain/values/period.ts";

/** A workspace with its caps; null = no limit. */
export interface Workspace {
  readonly workspaceId: string;
  readonly name: string;
  readonly operationCap: number | null;
  readonly testOperationCap: number | null;
  readonly aiBudgetCents: number | null;
  readonly testCreditBalanceCap: number | null;
}

/** An identity secret that was rotated away. */
export interface OldIdentitySecret {
  readonly secret: string;
  /** Real time. */
  readonly validUntil: Millis;
}

/** An app as its rows say. */
export interface AppRecord {
  readonly appId: string;
  readonly workspaceId: string;
  readonly name: string;
  readonly identitySecret: string;
  readonly oldIdentitySecrets: readonly OldIdentitySecret[];
  readonly createdAt: Millis;
}

/** An API key; only its hash is known. */
export interface ApiKey {
  readonly keyId: string;
  readonly appId: string;
  readonly class: "secret" | "public";
  readonly mode: Mode;
  readonly hash: string;
  readonly prefix: string;
  readonly createdAt: Millis;
  readonly revokedAt: Millis | null;
}

/** A catalog in force. */
export interface AppliedCatalog {
  readonly appId: string;
  readonly version: number;
  readonly document: CatalogDocument;
  /** Every plan id ever added, oldest first. */
  readonly planOrder: readonly string[];
  /** Every price row that the app's catalogs ever had, each at its number. */
  readonly priceRows: readonly ModelDocument[];
}

/** A realm's row. Its clock is moved, and known, at the owner of its cell alone. */
export interface RealmRecord {
  readonly realm: number;
  readonly appId: string;
  readonly mode: Mode;
}

/** A secret that signs messages, with the real time until which it does; null for the one in force. */
export interface WebhookSecret {
  readonly secret: string;
  readonly validUntil: Millis | null;
}

/** An address of a customer that is told what happens. */
export interface Webhook {
  readonly webhookId: string;
  readonly appId: string;
  readonly mode: Mode;
  readonly url: string;
  /** Types, prefixes that end in ".*", or "*". */
  readonly events: readonly string[];
  readonly description: string | null;
  readonly disabled: boolean;
  /** The newest first. */
  readonly secrets: readonly WebhookSecret[];
  readonly createdAt: Millis;
  /** Whether it was deleted: nothing of it is left but this row. */
  readonly removed: boolean;
}

/** The secret of the endpoint to which Stripe sends the messages of an app and mode. */
export interface StripeConnection {
  readonly appId: string;
  readonly mode: Mode;
  readonly webhookSecret: string;
  readonly setAt: Millis;
  /** Whether it was deleted: nothing of it is left but this row. */
  readonly removed: boolean;
}

/** Rows of the registry: all of them, or those that a change wrote. */
export interface RegistryRows {
  readonly workspaces: readonly Workspace[];
  readonly apps: readonly AppRecord[];
  readonly keys: readonly ApiKey[];
  readonly catalogs: readonly AppliedCatalog[];
  readonly realms: readonly RealmRecord[];
  readonly webhooks: readonly Webhook[];
  readonly stripe: readonly StripeConnection[];
}
