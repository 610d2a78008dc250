// What the gateway allows the keys of an app: models, test keys, stored objects, tools of the server, a budget.

import { type Amount, amountOf } from "../values/amount.ts";
import { patternCovers } from "../values/match.ts";
import type { PriceRow } from "./price_row.ts";

/** The model server of some models: one of `HOLDFAST_UPSTREAMS`. */
interface UpstreamRule {
  readonly models: readonly string[];
  readonly upstream: string;
}

/** What the gateway allows the keys of an app. */
export interface GatewayDocument {
  readonly models?: readonly string[] | undefined;
  readonly allowTestMode?: boolean | undefined;
  readonly allowStoredObjects?: boolean | undefined;
  readonly allowServerTools?: boolean | undefined;
  readonly budgetCents?: number | undefined;
  readonly upstreams?: readonly UpstreamRule[] | undefined;
}

/** The form of these settings within `settings`, which stored documents may have. */
export interface OlderGatewayDocument {
  readonly models?: readonly string[] | undefined;
  readonly testMode?: boolean | undefined;
  readonly budgetCents?: number | undefined;
  readonly storedObjects?: boolean | undefined;
}

/** What the gateway allows an app. */
export interface GatewaySettings {
  /** Patterns of the models that may be called; null for all of the model server. */
  readonly models: readonly string[] | null;
  /** Whether test keys may call models, which costs real money. */
  readonly allowTestMode: boolean;
  /** Cents of both modes in a UTC month, at which calls are refused; null for no limit. */
  readonly budgetCents: Amount | null;
  /** Whether calls may store objects at the model server, and name stored ones: every app shares its account. */
  readonly allowStoredObjects: boolean;
  /** Whether calls may use tools that Anthropic runs: no price row has their prices. */
  readonly allowServerTools: boolean;
  /** The model servers of some models; the first rule that covers a model counts. */
  readonly upstreams: readonly UpstreamRule[];
}

/** What a catalog says of models. */
interface ModelCatalog {
  readonly gateway: GatewaySettings;
  readonly models: { get(name: string): PriceRow | undefined };
}

/**
 * Whether the gateway may call a model under a name: one of the patterns covers it, or the id of its price row, so that
 * each further name of an allowed row may be called too.
 */
export function allowsModel({ gateway, models }: ModelCatalog, name: string): boolean {
  if (gateway.models === null) return true;
  const id = models.get(name)?.id ?? name;
  return gateway.models.some((pattern) => patternCovers(pattern, name) || patternCovers(pattern, id));
}

/** Without these settings nothing is refused but tools of the server, because they have no price. */
const NO_GATEWAY: GatewayDocument = { allowTestMode: true, allowStoredObjects: true };

/** Compiles the settings of the gateway, of a new document or of an older one. */
export function compileGateway(
  newer: GatewayDocument | undefined,
  older: OlderGatewayDocument | undefined,
): GatewaySettings {
  const document = newer ?? sinceThen(older) ?? NO_GATEWAY;
  const { models = null, budgetCents, upstreams = [] } = document;
  const { allowTestMode = false, allowStoredObjects = false, allowServerTools = false } = document;
  return {
    models,
    allowTestMode,
    allowStoredObjects,
    allowServerTools,
    budgetCents: budgetCents === undefined ? null : amountOf(budgetCents),
    upstreams,
  };
}

/** The settings of a document in the older form. */
function sinceThen(older: OlderGatewayDocument | undefined): GatewayDocument | undefined {
  if (older === undefined) return undefined;
  const { testMode, storedObjects, ...same } = older;
  return { ...same, allowTestMode: testMode, allowStoredObjects: storedObjects };
}
