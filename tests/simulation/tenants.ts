// The workspaces of a world: one app each, in cells of their own. Most have traffic that the model answers too.
// Canaries are for changes of the registry; the model is not asked about them.

import type { Mode } from "../../actors/port.ts";
import { hashOf } from "../../src/process/secrets/hash.ts";
import { catalogs, offers } from "../model/catalogs.ts";
import type { CatalogDocument } from "../model/document.ts";
import { moneyCatalogs } from "../model/money_catalogs.ts";
import { Random } from "../model/random.ts";
import type { SimTables } from "./database/tables.ts";
import { CELLS } from "../../actors/doors.ts";
import { REALMS_PER_STORE } from "../../src/storage/nodes/store_numbers.ts";
import { WINDOWS_CATALOG } from "./windows.ts";

/** What a workspace may do in the one mode that is used; null = no limit. */
interface Caps {
  readonly mode: Mode;
  readonly operationCap: number | null;
  readonly testCreditBalanceCap: number | null;
}

/** An address that receives messages. */
export interface SimWebhook {
  readonly webhookId: string;
  readonly url: string;
  readonly events: readonly string[];
  wants(type: string): boolean;
}

/** A workspace with its app and key. */
export interface Tenant {
  readonly no: number;
  /** The place of its database among those of the world. */
  readonly store: number;
  readonly workspaceId: string;
  readonly appId: string;
  readonly keyId: string;
  /** The secret key of the mode. */
  readonly key: string;
  /** The realm of the mode. */
  readonly realm: number;
  readonly catalog: CatalogDocument;
  readonly caps: Caps;
  /** Of the mode; the first one, where there is any, wants everything. */
  readonly webhooks: readonly SimWebhook[];
  readonly isCanary: boolean;
  /** Whether Stripe sells its plans and packs. */
  readonly isSold: boolean;
  /** Whether its limit groups have periods of their own. */
  readonly hasWindows: boolean;
}

/** Of each six tenants two are of test mode, and two have caps, one in each mode: so low that a month may reach them. */
function capsOf(seed: number): Caps {
  const mode = seed % 6 >= 4 ? "test" : "live";
  const isCapped = seed % 6 === 3 || seed % 6 === 5;
  return {
    mode,
    operationCap: isCapped ? 20 + seed % 7 * 5 : null,
    testCreditBalanceCap: isCapped && mode === "test" ? 4 + seed % 5 : null,
  };
}

/** What differs from world to world. */
interface TenantOptions {
  readonly hasStripe: boolean;
  /** The share of workspaces whose limit groups have periods of their own. */
  readonly windowsShare: number;
  /** The share of workspaces that sell credits, past quotas, or plans that include packs. */
  readonly moneyShare: number;
  readonly hasOverage: boolean;
  /** Over how many databases they are spread. */
  readonly databases: number;
}

/** The tenants of a world: so many with traffic, and so many canaries. */
export function tenantsOf(
  seed: number,
  random: Random,
  [count, canaries]: readonly [number, number],
  { hasStripe, windowsShare, moneyShare, hasOverage, databases }: TenantOptions,
): Tenant[] {
  return Array.from({ length: count + canaries }, (_, index): Tenant => {
    const no = index + 1;
    const isCanary = index >= count;
    const store = (no + seed) % databases;
    const caps = isCanary
      ? { mode: canaryMode(seed, index - count), operationCap: null, testCreditBalanceCap: null } as const
      : capsOf(seed + 5 * index);
    // Drawn last, and only where there may be any, so that worlds without them are unchanged.
    const known = catalogOf(seed, isCanary ? "example" : random.pick(["example", "tiny", "ladder"] as const));
    const hasWindows = !isCanary && windowsShare > 0 && random.chance(windowsShare);
    const catalog = isCanary
      ? known
      : moneyOf(seed, no, { share: moneyShare, isCapped: caps.operationCap !== null }) ??
        (hasWindows ? WINDOWS_CATALOG : known);
    return {
      no,
      store,
      workspaceId: `ws_${no}`,
      appId: `app_${no}`,
      keyId: `key_${no}`,
      key: `sk_${caps.mode}_simulation${String(no).padStart(22, "0")}`,
      realm: realmsOf({ no, store })[caps.mode],
      catalog: catalogSelling(catalog, hasOverage && !isCanary),
      caps,
      webhooks: isCanary ? [] : webhooksOf(no, random),
      isCanary,
      // What is refused at a cap depends on what came before: the checker of Stripe knows nothing of that.
      isSold: hasStripe && !isCanary && caps.operationCap === null,
      hasWindows: catalog === WINDOWS_CATALOG,
    };
  });
}

/** The realms of a tenant, in the range of its database. */
function realmsOf({ no, store }: Pick<Tenant, "no" | "store">): Readonly<Record<Mode, number>> {
  const live = store * REALMS_PER_STORE + 2 * no - 1;
  return { live, test: live + 1 };
}

/** In every third world the canary whose catalog changes is in test mode, and changes a catalog of test mode alone. */
function canaryMode(seed: number, place: number): "live" | "test" {
  return seed % 3 === 1 && place === 0 ? "test" : "live";
}

/**
 * By a random of their own, so that worlds without them are unchanged. No capped workspace includes packs: how many
 * balances the product has issued depends on when it looked.
 */
function moneyOf(
  seed: number,
  no: number,
  { share, isCapped }: { share: number; isCapped: boolean },
): CatalogDocument | null {
  const random = new Random(seed * 100 + no);
  if (!random.chance(share)) return null;
  const name = random.pick(["rated", "selling", "including"] as const);
  return moneyCatalogs[isCapped && name === "including" ? "rated" : name];
}

/** Lets each quota group without headroom sell half of its quota more, and every fourth without a limit. */
function catalogSelling(catalog: CatalogDocument, isSelling: boolean): CatalogDocument {
  if (!isSelling) return catalog;
  const plans = catalog.plans.map((plan) => ({
    ...plan,
    limits: plan.limits.map((limit, place) => {
      const type = limit.period?.type;
      const isGuard = type === "rolling" || type === "concurrent";
      if (isGuard || limit.overage !== undefined || (limit.headroom ?? plan.headroom ?? null) !== null) {
        return limit;
      }
      return { ...limit, overage: { max: place % 4 === 3 ? null : limit.quota / 2 } };
    }),
  }));
  return { ...catalog, plans };
}

/** Some worlds have what plans offer beside quotas in place of the smallest catalog. */
function catalogOf(seed: number, name: keyof typeof catalogs): CatalogDocument {
  return name === "tiny" && seed % 10 === 3 ? offers : catalogs[name];
}

function webhooksOf(no: number, random: Random): SimWebhook[] {
  const lists = [["*"], ["usage.*", "credits.*", "user.merged"], ["subscription.*", "reservation.expired"]];
  return lists.slice(0, random.whole(0, 3)).map((events, place) => {
    const webhookId = `whk_${no}${"abc"[place]}`;
    const wants = (type: string) =>
      events.some((each) => each === "*" || each === type || each === `${type.split(".")[0]}.*`);
    return { webhookId, url: `https://${webhookId}.test/`, events, wants };
  });
}

/** The price by which Stripe sells a plan or pack. */
export function priceOf(id: string): string {
  return `price_of_${id}`;
}

/** A catalog whose plans and packs have prices of Stripe. */
function priced(catalog: CatalogDocument): CatalogDocument {
  const withPrice = <Sold extends { readonly id: string }>(sold: Sold) => ({
    ...sold,
    stripePrices: [priceOf(sold.id)],
  });
  return { ...catalog, plans: catalog.plans.map(withPrice), packs: (catalog.packs ?? []).map(withPrice) };
}

/** Writes what the simulated database holds before the first process starts. */
export function seedTenants(tables: SimTables, tenants: readonly Tenant[], createdAt: number): void {
  for (let cell = 0; cell < CELLS; cell++) {
    tables.put("cells", String(cell), { cell, term: null, clock_ms: 0, side: null });
  }
  for (const tenant of tenants) seed(tables, tenant, createdAt);
}

function seed(tables: SimTables, tenant: Tenant, createdAt: number): void {
  const { workspaceId, appId, keyId, key, catalog, caps, webhooks, isSold } = tenant;
  const { mode, operationCap, testCreditBalanceCap } = caps;
  const row = { createdAt, changedIn: 0 };
  tables.put("workspaces", workspaceId, {
    ...row,
    workspaceId,
    name: "Simulated",
    operationCap: mode === "live" ? operationCap : null,
    testOperationCap: mode === "test" ? operationCap : null,
    aiBudgetCents: null,
    testCreditBalanceCap,
  });
  tables.put("apps", appId, {
    ...row,
    appId,
    workspaceId,
    name: "Simulated",
    identitySecret: "identity-secret",
    oldIdentitySecrets: "[]",
  });
  const hash = hashOf(key);
  const prefix = key.slice(0, 12);
  tables.put("keys", keyId, {
    ...row,
    keyId,
    appId,
    class: "secret",
    mode,
    hash,
    prefix,
    name: null,
    createdBy: null,
    validUntil: null,
    revokedAt: null,
  });
  tables.put("catalogs", appId, {
    ...row,
    appId,
    version: 1,
    document: JSON.stringify(isSold ? priced(catalog) : catalog),
    planOrder: JSON.stringify(catalog.plans.map(({ id }) => id)),
    priceRows: JSON.stringify(catalog.models ?? []),
    rateRows: catalog.rates === undefined ? null : JSON.stringify(catalog.rates),
  });
  if (isSold) {
    const connection = { appId, mode, webhookSecret: "whsec_simulated", setAt: createdAt, removed: false };
    tables.put("stripe_connections", JSON.stringify([appId, mode]), { ...connection, changedIn: 0 });
  }
  for (const { webhookId, url, events } of webhooks) {
    tables.put("webhooks", webhookId, {
      ...row,
      ...{ webhookId, appId, mode, url, events: JSON.stringify(events), description: null, disabled: false },
      secrets: JSON.stringify([{ secret: "whsec_c2ltdWxhdGVk", validUntil: null }]),
      ...{ removed: false, lastSuccessAt: null, failingSince: null },
    });
  }
  for (const [each, realm] of Object.entries(realmsOf(tenant))) {
    tables.put("realms", String(realm), { realm, appId, mode: each, clockOffsetMs: 0 });
  }
}
