// An app's catalog: the document that an administrator applies, and the compiled form that decisions read (exact amounts
// and lookup tables). src/tenant/catalog has checked the document before.

import { type Amount, amountOf, larger } from "../values/amount.ts";
import type { MatchRule } from "../values/match.ts";
import { ModelRows } from "./model_rows.ts";
import {
  compileGateway,
  type GatewayDocument,
  type GatewaySettings,
  type OlderGatewayDocument,
} from "./gateway.ts";
import { compileRateRow, type RateDocument, type RateRow, rateText, withRateRows } from "./rate_row.ts";
import { compilePriceRow, type ModelDocument, type PriceRow, priceText, withPriceRows } from "./price_row.ts";
import type { GroupPeriod, Period } from "../values/period.ts";
import {
  type Alert,
  type Headroom,
  isGuard,
  type LimitGroup,
  type Overage,
  PACE,
  type Plan,
  type Unit,
} from "./plan.ts";
import { compileFeatures, type FeatureCatalog, type FeatureValues } from "./feature.ts";

/** What a seat of a plan costs its user a period, in the smallest unit of the currency. */
export interface PlanPrice {
  readonly amount: number;
  readonly currency: string;
}

export type PackKind = "per_type" | "generic";

export interface HeadroomDocument {
  readonly mode: "percent" | "multiplier";
  readonly value: number;
}

export interface LimitGroupDocument {
  readonly id: string;
  readonly label: string;
  readonly unit: Unit;
  readonly quota: number;
  readonly matches: readonly MatchRule[];
  readonly headroom?: HeadroomDocument | null | undefined;
  readonly overage?: { readonly max: number | null } | undefined;
  readonly alerts?: readonly (number | "pace")[] | undefined;
  readonly perMember?: { readonly quota: number } | undefined;
  readonly period?: GroupPeriodDocument | undefined;
}

/** A group's own period. Which members it has beside the type depends on the type. */
export interface GroupPeriodDocument {
  readonly type: GroupPeriod["type"];
  readonly anchor?: Period["anchor"] | undefined;
  readonly seconds?: number | undefined;
}

/** A pack that a plan includes in each window. */
interface IncludeDocument {
  readonly packId: string;
  /** How many packs, or the amount of a pack without items. */
  readonly quantity?: number | undefined;
  readonly period?: Period | undefined;
  readonly rollover?: { readonly max: number; readonly periods: number } | undefined;
}

export interface PlanDocument {
  readonly id: string;
  readonly name: string;
  readonly rank: number;
  readonly period: Period;
  readonly onPlanChange?: "carry" | "reset" | "block" | undefined;
  readonly archived?: boolean | undefined;
  readonly headroom?: HeadroomDocument | null | undefined;
  readonly stripePrices?: readonly string[] | undefined;
  readonly perSeat?: boolean | undefined;
  readonly addon?: boolean | undefined;
  readonly trial?: { readonly days: number; readonly thenPlanId?: string | null | undefined } | undefined;
  readonly limits: readonly LimitGroupDocument[];
  readonly includes?: readonly IncludeDocument[] | undefined;
  readonly features?: FeatureValues | undefined;
}

interface PackItemDocument {
  readonly id: string;
  readonly label: string;
  readonly unit: Unit;
  readonly amount: number;
  readonly matches: readonly MatchRule[];
  readonly lowAt?: number | undefined;
}

export interface PackDocument {
  readonly id: string;
  readonly name: string;
  readonly kind: PackKind;
  readonly priority?: number | undefined;
  readonly defaultExpiryDays?: number | null | undefined;
  readonly archived?: boolean | undefined;
  readonly unit?: Unit | undefined;
  readonly matches?: readonly MatchRule[] | undefined;
  readonly lowAt?: number | undefined;
  readonly stripePrices?: readonly string[] | undefined;
  readonly price?: PackPrice | undefined;
  readonly items: readonly PackItemDocument[];
}

/** What a pack costs, or a unit of a pack without items. */
interface PackPrice {
  /** In the smallest unit of the currency, as Stripe has it. */
  readonly amount: number;
  /** Three lower-case letters. */
  readonly currency: string;
}

export type DataSource = "user_usage" | "user_events" | "user_attributes" | "subscription" | "credits";

interface ComposeTypeDocument {
  readonly name: string;
  readonly model: string;
  readonly prompt: string;
  readonly dataSources?: readonly DataSource[] | undefined;
  readonly outputSchema: Readonly<Record<string, unknown>>;
  readonly maxOutputTokens?: number | undefined;
  readonly temperature?: number | undefined;
}

/** The rate limit of a key: a burst of calls at once, then so many a second. */
export interface RateLimit {
  /** More than 0. */
  readonly perSecond: number;
  /** At least 1. */
  readonly burst: number;
}

interface SettingsDocument {
  readonly promptLogging?: boolean | undefined;
  readonly promptLogRetentionDays?: number | undefined;
  readonly reservationTtlSeconds?: number | undefined;
  readonly corsOrigins?: readonly string[] | undefined;
  readonly rateLimit?: RateLimit | undefined;
  readonly unpricedModels?: "warn" | "refuse" | undefined;
  readonly gateway?: OlderGatewayDocument | undefined;
}

/** The parts of a catalog document that decisions read. */
export interface CatalogDocument {
  readonly settings?: SettingsDocument | undefined;
  readonly gateway?: GatewayDocument | undefined;
  readonly models?: readonly ModelDocument[] | undefined;
  readonly rates?: readonly RateDocument[] | undefined;
  readonly plans?: readonly PlanDocument[] | undefined;
  readonly planPrices?: Readonly<Record<string, PlanPrice>> | undefined;
  readonly featureDefaults?: FeatureValues | undefined;
  readonly packs?: readonly PackDocument[] | undefined;
  readonly composeTypes?: readonly ComposeTypeDocument[] | undefined;
}

/** An item of a pack: each grant makes a balance of it. `id` is null for a pack without items. */
export interface PackItem {
  readonly id: string | null;
  readonly unit: Unit;
  readonly amount: Amount;
  readonly matches: readonly MatchRule[];
  /** The remaining amount at which `credits.low` is sent; null for never. */
  readonly lowAt: Amount | null;
}

/** A credit pack. A pack without items has one bucket, and each grant names its amount. */
export interface Pack {
  readonly id: string;
  readonly name: string;
  readonly kind: PackKind;
  readonly priority: number;
  readonly defaultExpiryDays: number | null;
  readonly archived: boolean;
  readonly items: readonly PackItem[];
  readonly bucket: Omit<PackItem, "amount"> | null;
  /** What a top-up pays; null where it cannot be bought by itself. */
  readonly price: PackPrice | null;
}

/** A compose type as an administrator wrote it, with its model. */
export interface ComposeType extends Omit<ComposeTypeDocument, "model"> {
  readonly model: PriceRow;
}

/** A compiled catalog. */
export interface Catalog {
  readonly version: number;
  readonly promptLogging: boolean;
  readonly promptLogRetentionMs: number;
  readonly reservationTtlMs: number;
  /** The rate limit of each key; null for none. */
  readonly rateLimit: RateLimit | null;
  /** Origins of pages that may call with a public key. */
  readonly corsOrigins: ReadonlySet<string>;
  /** The price rows in force. */
  readonly models: ModelRows;
  /** Every price row that the app's catalogs ever had, each at its number. */
  readonly priceRows: readonly PriceRow[];
  /** The rates in force, in their order: the first that covers an event counts. */
  readonly rates: readonly RateRow[];
  /** Every rate that the app's catalogs ever had, each at its number. */
  readonly rateRows: readonly RateRow[];
  /** Whether an event that counts cents but has no price is allowed with a warning, or refused. */
  readonly unpricedModels: "warn" | "refuse";
  readonly gateway: GatewaySettings;
  readonly plans: ReadonlyMap<string, Plan>;
  /** What plans cost their users, by the plan's id. */
  readonly planPrices: ReadonlyMap<string, PlanPrice>;
  readonly features: FeatureCatalog;
  /** Whether any group of any plan has alerts. */
  readonly hasAlerts: boolean;
  /** Whether any plan is an add-on. */
  readonly hasAddOns: boolean;
  /** Whether any plan has a trial. */
  readonly hasTrials: boolean;
  /** Whether any plan includes a pack. */
  readonly hasIncludes: boolean;
  /** Whether a balance may have an origin, so that answers show it. */
  readonly hasOrigins: boolean;
  /** Whether any group of any plan, or any pack, is in credits. */
  readonly hasCredits: boolean;
  readonly packs: ReadonlyMap<string, Pack>;
  /** What each price in Stripe sells, by the price's id. */
  readonly stripePrices: ReadonlyMap<string, Sold>;
  readonly composeTypes: ReadonlyMap<string, ComposeType>;
}

/** What a price of a payment provider sells: a plan or a pack. */
type Sold = { readonly plan: Plan } | { readonly pack: Pack };

const TTL_SECONDS_DEFAULT = 600;
const RETENTION_DAYS_DEFAULT = 30;
const DAY_MS = 86_400_000;

/**
 * Compiles a well-formed document.
 *
 * @param everPriced the price rows that the app's catalogs ever had, including those of this document
 * @param everRated the rates that the app's catalogs ever had, including those of this document
 */
export function compileCatalog(
  document: CatalogDocument,
  version: number,
  everPriced: readonly ModelDocument[] = [],
  everRated: readonly RateDocument[] = [],
): Catalog {
  const documents = withPriceRows(everPriced, document.models ?? []);
  const priceRows = documents.map(compilePriceRow);
  const rowsByText = new Map(documents.map((row, number) => [priceText(row), priceRows[number] as PriceRow]));
  const models = new ModelRows(
    document.models ?? [],
    (model) => rowsByText.get(priceText(model)) as PriceRow,
  );
  const rateDocuments = withRateRows(everRated, document.rates ?? []);
  const rateRows = rateDocuments.map(compileRateRow);
  const ratesByText = new Map(
    rateDocuments.map((row, number) => [rateText(row), rateRows[number] as RateRow]),
  );
  const plans = (document.plans ?? []).map(compilePlan);
  const packs = (document.packs ?? []).map(compilePack);
  const hasIncludes = plans.some(({ includes }) => includes.length > 0);
  return {
    version,
    promptLogging: document.settings?.promptLogging ?? false,
    // Whole milliseconds: every time in the tables is one.
    promptLogRetentionMs: Math.round(
      (document.settings?.promptLogRetentionDays ?? RETENTION_DAYS_DEFAULT) * DAY_MS,
    ),
    reservationTtlMs: Math.round((document.settings?.reservationTtlSeconds ?? TTL_SECONDS_DEFAULT) * 1000),
    rateLimit: document.settings?.rateLimit ?? null,
    corsOrigins: new Set(document.settings?.corsOrigins ?? []),
    models,
    priceRows,
    rates: (document.rates ?? []).map((rate) => ratesByText.get(rateText(rate)) as RateRow),
    rateRows,
    unpricedModels: document.settings?.unpricedModels ?? "warn",
    gateway: compileGateway(document.gateway, document.settings?.gateway),
    plans: new Map(plans.map((plan) => [plan.id, plan])),
    planPrices: new Map(Object.entries(document.planPrices ?? {})),
    features: compileFeatures(document.featureDefaults ?? {}, plans.map((plan) => plan.features)),
    hasAlerts: plans.some(({ groups }) => groups.some(({ alerts }) => alerts.length > 0)),
    hasAddOns: plans.some(({ addon }) => addon),
    hasTrials: plans.some(({ trial }) => trial !== null),
    hasIncludes,
    hasOrigins: hasIncludes || packs.some(({ price }) => price !== null),
    hasCredits: plans.some(({ groups }) => groups.some(isInCredits)) ||
      packs.some(({ items, bucket }) => items.some(isInCredits) || (bucket !== null && isInCredits(bucket))),
    packs: new Map(packs.map((pack) => [pack.id, pack])),
    stripePrices: new Map([
      ...plans.flatMap((plan, place) => pricesOf(document.plans?.[place], { plan })),
      ...packs.flatMap((pack, place) => pricesOf(document.packs?.[place], { pack })),
    ]),
    composeTypes: compileTypes(document.composeTypes ?? [], models),
  };
}

function isInCredits({ unit }: { readonly unit: Unit }): boolean {
  return unit === "credits";
}

/** Finds a plan by its id, else by its name without regard to case. */
export function findPlan(catalog: Catalog, idOrName: string): Plan | null {
  return find(catalog.plans, idOrName);
}

/** Finds a pack by its id, else by its name without regard to case. */
export function findPack(catalog: Catalog, idOrName: string): Pack | null {
  return find(catalog.packs, idOrName);
}

function find<Part extends { readonly name: string }>(
  parts: ReadonlyMap<string, Part>,
  idOrName: string,
): Part | null {
  const byId = parts.get(idOrName);
  if (byId !== undefined) return byId;
  const name = foldName(idOrName);
  for (const part of parts.values()) {
    if (foldName(part.name) === name) return part;
  }
  return null;
}

/** Folds a name, so that names that differ only in case are equal. */
export function foldName(name: string): string {
  return name.normalize("NFC").toLowerCase();
}

function compilePlan(plan: PlanDocument): Plan {
  return {
    id: plan.id,
    name: plan.name,
    rank: plan.rank,
    period: plan.period,
    onPlanChange: plan.onPlanChange ?? "carry",
    archived: plan.archived ?? false,
    perSeat: plan.perSeat ?? false,
    addon: plan.addon ?? false,
    trial: plan.trial === undefined
      ? null
      : { lengthMs: plan.trial.days * DAY_MS, thenPlanId: plan.trial.thenPlanId ?? null },
    features: plan.features ?? {},
    hasLifetime: [plan, ...plan.limits, ...plan.includes ?? []].some(({ period }) =>
      period?.type === "lifetime"
    ),
    includes: (plan.includes ?? []).map(({ packId, quantity, period, rollover }) => ({
      packId,
      quantity: quantity === undefined ? null : amountOf(quantity),
      period: period ?? plan.period,
      rollover: rollover === undefined ? null : { max: amountOf(rollover.max), periods: rollover.periods },
    })),
    groups: plan.limits.map((limit) => compileGroup(limit, plan.headroom ?? null)),
  };
}

/** A group's own headroom replaces that of its plan, which passes guards by. */
function compileGroup(limit: LimitGroupDocument, ofPlan: HeadroomDocument | null): LimitGroup {
  const period = limit.period === undefined ? null : limit.period as GroupPeriod;
  const headroom = isGuard({ period }) ? null : limit.headroom ?? ofPlan;
  return {
    id: limit.id,
    label: limit.label,
    unit: limit.unit,
    quota: amountOf(limit.quota),
    matches: limit.matches,
    headroom: headroom === null ? null : compileHeadroom(headroom),
    overage: limit.overage === undefined ? null : compileOverage(limit.overage),
    alerts: compileAlerts(limit.alerts ?? []),
    perMember: limit.perMember === undefined ? null : amountOf(limit.perMember.quota),
    period,
  };
}

function compileAlerts(alerts: NonNullable<LimitGroupDocument["alerts"]>): Alert[] {
  const percents = alerts.filter((alert) => alert !== "pace");
  const compiled = percents.map((percent) => ({ percent, share: larger(amountOf(percent), 1n) }));
  return percents.length === alerts.length ? compiled : [...compiled, { percent: PACE, share: 0n }];
}

function compileOverage({ max }: NonNullable<LimitGroupDocument["overage"]>): Overage {
  return { max: max === null ? null : amountOf(max) };
}

function compileHeadroom(headroom: HeadroomDocument): Headroom {
  return { mode: headroom.mode, value: amountOf(headroom.value) };
}

const PRIORITY_DEFAULT: Readonly<Record<PackKind, number>> = { per_type: 100, generic: 0 };

function compilePack(pack: PackDocument): Pack {
  const { unit, matches } = pack;
  const lowAtOf = ({ lowAt }: { readonly lowAt?: number | undefined }) =>
    lowAt === undefined ? null : amountOf(lowAt);
  const isBucket = pack.items.length === 0 && unit !== undefined && matches !== undefined;
  return {
    id: pack.id,
    name: pack.name,
    kind: pack.kind,
    priority: pack.priority ?? PRIORITY_DEFAULT[pack.kind],
    defaultExpiryDays: pack.defaultExpiryDays ?? null,
    archived: pack.archived ?? false,
    price: pack.price ?? null,
    items: pack.items.map((item) => ({
      id: item.id,
      unit: item.unit,
      amount: positiveOf(item.amount),
      matches: item.matches,
      lowAt: lowAtOf(item),
    })),
    bucket: isBucket ? { id: null, unit, matches, lowAt: lowAtOf(pack) } : null,
  };
}

/** An amount above 0: catalogs of before may have amounts that round to 0, which no balance can have. */
function positiveOf(value: number): Amount {
  return larger(amountOf(value), 1n);
}

function pricesOf(part: PlanDocument | PackDocument | undefined, sold: Sold): [string, Sold][] {
  return (part?.stripePrices ?? []).map((price) => [price, sold]);
}

/** Leaves out types without a model, which a checked document does not have. */
function compileTypes(
  types: readonly ComposeTypeDocument[],
  models: ModelRows,
): Map<string, ComposeType> {
  const compiled = new Map<string, ComposeType>();
  for (const type of types) {
    const model = models.get(type.model);
    if (model !== undefined) compiled.set(type.name, { ...type, model });
  }
  return compiled;
}
