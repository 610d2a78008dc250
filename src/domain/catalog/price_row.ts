// Price rows: what a model's work costs, as an administrator writes it in the catalog and as decisions compute with
// it. A tier replaces members of its row for a whole call; defaults are resolved after that.

import { type Amount, amountOf } from "../values/amount.ts";

/** How a model is priced: by tokens, by the call (or image), or by the second of output. */
type AmountMode = "per_token" | "per_call" | "per_unit";

/** Prices of tokens, in cents a million; a member that is left out has the default that its comment names. */
interface TokenPriceDocument {
  readonly inputCentsPerMillionTokens?: number | undefined;
  /** Input read from the provider's prompt cache. Default: the input price. */
  readonly cachedInputCentsPerMillionTokens?: number | undefined;
  /** Input written to the provider's prompt cache. Default: the input price. */
  readonly cacheWriteCentsPerMillionTokens?: number | undefined;
  /** Input written to a cache that is kept for an hour. Default: the cache write price. */
  readonly cacheWrite1hCentsPerMillionTokens?: number | undefined;
  /** Default: 0. */
  readonly outputCentsPerMillionTokens?: number | undefined;
  /** Output that the model spent on reasoning. Default: the output price. */
  readonly reasoningCentsPerMillionTokens?: number | undefined;
}

/** Prices for all of a call that has more than `aboveInputTokens` of input. */
export interface PriceTierDocument extends TokenPriceDocument {
  readonly aboveInputTokens: number;
}

/** A model's price row as the catalog document has it. */
export interface ModelDocument extends TokenPriceDocument {
  readonly id: string;
  /** Further names of the model, and patterns of names: a prefix with one final "*". Not part of the prices. */
  readonly aliases?: readonly string[] | undefined;
  readonly modality: "text" | "image" | "audio" | "video";
  readonly amountMode: AmountMode;
  readonly tiers?: readonly PriceTierDocument[] | undefined;
  readonly centsPerCall?: number | undefined;
  /** In place of `centsPerCall`: calls are then images. */
  readonly centsPerImage?: number | undefined;
  readonly centsPerSecond?: number | undefined;
  /** Where the prices come from; not part of them. */
  readonly source?: string | undefined;
  /** When they were compared with their source, ISO 8601; not part of them. */
  readonly checkedAt?: string | undefined;
}

/** Exact prices of tokens in cents a million, every default resolved. */
export interface TokenPrices {
  readonly input: Amount;
  readonly cachedInput: Amount;
  readonly cacheWrite: Amount;
  readonly cacheWrite1h: Amount;
  readonly output: Amount;
  readonly reasoning: Amount;
}

interface PriceTier {
  readonly aboveInputTokens: Amount;
  readonly prices: TokenPrices;
}

/** A price row with exact prices. */
export interface PriceRow {
  /** The model's id. */
  readonly id: string;
  /** The row's place among all rows that the app's catalogs ever had; holds store it. */
  readonly number: number;
  readonly amountMode: AmountMode;
  /** The prices of a call below all tiers. */
  readonly prices: TokenPrices;
  /** The highest first. */
  readonly tiers: readonly PriceTier[];
  /** Cents a call, or an image; 0 unless the row is priced by calls. */
  readonly perCall: Amount;
  /** Cents a second; 0 unless the row is priced by seconds. */
  readonly perSecond: Amount;
}

/** Compiles a row of a well-formed document: the prices of its mode, all others being 0. */
export function compilePriceRow(document: ModelDocument, number: number): PriceRow {
  const { id, amountMode } = document;
  const row = { id, number, amountMode, prices: NO_PRICES, tiers: NO_TIERS, perCall: 0n, perSecond: 0n };
  switch (amountMode) {
    case "per_token":
      return { ...row, prices: tokenPrices(document), tiers: tiersOf(document) };
    case "per_call":
      return { ...row, perCall: amountOf(document.centsPerCall ?? document.centsPerImage ?? 0) };
    case "per_unit":
      return { ...row, perSecond: amountOf(document.centsPerSecond ?? 0) };
  }
}

const NO_TIERS: readonly PriceTier[] = [];

function tiersOf(document: ModelDocument): PriceTier[] {
  const tiers = (document.tiers ?? []).map((tier) => ({
    aboveInputTokens: amountOf(tier.aboveInputTokens),
    prices: tokenPrices({ ...document, ...definedMembers(tier) }),
  }));
  return tiers.sort((a, b) => (a.aboveInputTokens > b.aboveInputTokens ? -1 : 1));
}

function definedMembers(tier: PriceTierDocument): TokenPriceDocument {
  return Object.fromEntries(Object.entries(tier).filter(([, value]) => value !== undefined));
}

function tokenPrices(document: TokenPriceDocument): TokenPrices {
  const price = (value: number | undefined, fallback: Amount) =>
    value === undefined ? fallback : amountOf(value);
  const input = price(document.inputCentsPerMillionTokens, 0n);
  const output = price(document.outputCentsPerMillionTokens, 0n);
  const cacheWrite = price(document.cacheWriteCentsPerMillionTokens, input);
  return {
    input,
    cachedInput: price(document.cachedInputCentsPerMillionTokens, input),
    cacheWrite,
    cacheWrite1h: price(document.cacheWrite1hCentsPerMillionTokens, cacheWrite),
    output,
    reasoning: price(document.reasoningCentsPerMillionTokens, output),
  };
}

const NO_PRICES = tokenPrices({});

/** The token prices of a call with this much input in all: those of the highest tier that it is above. */
export function pricesFor(row: PriceRow, inputTokens: Amount): TokenPrices {
  for (const { aboveInputTokens, prices } of row.tiers) {
    if (inputTokens > aboveInputTokens) return prices;
  }
  return row.prices;
}

/**
 * Adds the price rows of a new catalog to all that an app's catalogs ever had. Known rows keep their places, since holds
 * store them; changed prices are a new row.
 */
export function withPriceRows(
  known: readonly ModelDocument[],
  models: readonly ModelDocument[],
): readonly ModelDocument[] {
  return withRows(known, models, priceText);
}

/** Adds the rows whose text none of the known rows has; known rows keep their places. */
export function withRows<Row>(
  known: readonly Row[],
  rows: readonly Row[],
  textOf: (row: Row) => string,
): readonly Row[] {
  const texts = new Set(known.map(textOf));
  const added = rows.filter((row) => !texts.has(textOf(row)));
  return added.length === 0 ? known : [...known, ...added];
}

/** The members of a row that price, as one text that does not depend on their order. */
export function priceText(document: ModelDocument): string {
  const {
    source: _source,
    checkedAt: _checkedAt,
    modality: _modality,
    aliases: _aliases,
    tiers = [],
    ...rest
  } = document;
  const sorted = (members: object) =>
    Object.entries(members).filter(([, value]) => value !== undefined).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([sorted(rest), tiers.map(sorted)]);
}
