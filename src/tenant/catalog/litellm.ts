// Converts rows of LiteLLM's public price file, model_prices_and_context_window.json. Its prices are dollars a token, an
// image or a second; ours are cents, and cents for a million tokens.

import { numberOf, parseAmount } from "../../domain/values/amount.ts";
import { listOf, type Loose } from "./loose.ts";

/** Our members by LiteLLM's; each may also end in `_above_200k_tokens` or another number of thousands. */
const TOKEN_PRICES: ReadonlyMap<string, string> = new Map([
  ["input_cost_per_token", "inputCentsPerMillionTokens"],
  ["cache_read_input_token_cost", "cachedInputCentsPerMillionTokens"],
  ["cache_creation_input_token_cost", "cacheWriteCentsPerMillionTokens"],
  ["cache_creation_input_token_cost_above_1hr", "cacheWrite1hCentsPerMillionTokens"],
  ["output_cost_per_token", "outputCentsPerMillionTokens"],
  ["output_cost_per_reasoning_token", "reasoningCentsPerMillionTokens"],
]);
const TIER_NAME = /^(\w+?)(?:_above_(\d+)k_tokens)?$/;
const DECIMAL = /^(\d+(?:\.\d+)?)(?:e([+-]?\d{1,3}))?$/i;

/** A dollar is 10^2 cents, and a dollar a token is 10^8 cents a million tokens. */
const CENTS = 2;
const CENTS_A_MILLION = 8;

const MODALITIES: ReadonlyMap<unknown, string> = new Map([
  ["image_generation", "image"],
  ["image_edit", "image"],
  ["video_generation", "video"],
  ["audio_transcription", "audio"],
  ["audio_speech", "audio"],
]);

/** A figure of a price file that is no price. */
export interface FigureFault {
  /** The member in the file. */
  readonly member: string;
  readonly message: string;
}

/** Whether a member of LiteLLM's rows has a price that is read here. */
function isPrice(name: string): boolean {
  const [, stem = ""] = TIER_NAME.exec(name) ?? [];
  return TOKEN_PRICES.has(stem) || WORK_PRICES.has(name);
}

const WORK_PRICES: ReadonlySet<string> = new Set([
  "output_cost_per_image",
  "input_cost_per_image",
  "output_cost_per_second",
  "input_cost_per_second",
]);

/** The figures of LiteLLM's row that are no prices: negative ones, and what is no number. */
export function figureFaults(theirs: Loose): FigureFault[] {
  return Object.entries(theirs).flatMap(([member, value]) =>
    isPrice(member) && value !== null && shifted(value, CENTS) === null
      ? [{ member, message: "must be a number of at least 0" }]
      : []
  );
}

/**
 * The members of a model's row that LiteLLM has a figure for; null where it has none that such a row needs. Rates of
 * batches, of priority and of flexible processing are not prices of ordinary calls, and are left out.
 *
 * @param theirs LiteLLM's row, its numbers as text
 * @param ours the row in the catalog, with the `amountMode` to keep; null for a model to add
 */
export function membersOfLiteLlm(theirs: Loose, ours: Loose | null): Loose | null {
  const { amountMode, modality } = ours ?? kindOf(theirs);
  const prices = pricesOf(theirs, amountMode, ours ?? {});
  if (ours !== null) return Object.keys(prices).length === 0 ? null : prices;
  const needed = amountMode === "per_token" ? prices.inputCentsPerMillionTokens : Object.values(prices)[0];
  return needed === undefined ? null : { modality, amountMode, ...prices };
}

/** The modality and `amountMode` of a model that is not in the catalog. */
function kindOf(theirs: Loose): Loose {
  const modality = MODALITIES.get(theirs.mode) ?? "text";
  if (modality === "image" && workPrice(theirs, "image") !== null) {
    return { modality, amountMode: "per_call" };
  }
  const isTimed = modality === "video" || modality === "audio";
  if (isTimed && workPrice(theirs, "second") !== null) return { modality, amountMode: "per_unit" };
  return { modality, amountMode: "per_token" };
}

function pricesOf(theirs: Loose, amountMode: unknown, ours: Loose): Loose {
  switch (amountMode) {
    case "per_token":
      return tokenPricesOf(theirs, ours);
    case "per_call":
      // Both are the price of one piece of work, and a row has only one of them.
      return priced(
        ours.centsPerCall === undefined ? "centsPerImage" : "centsPerCall",
        workPrice(theirs, "image"),
      );
    case "per_unit":
      return priced("centsPerSecond", workPrice(theirs, "second"));
    default:
      return {};
  }
}

function priced(member: string, cents: number | null): Loose {
  return cents === null ? {} : { [member]: cents };
}

/** The price of an image or a second in cents: that of the output, else of the input, as transcriptions have it. */
function workPrice(theirs: Loose, work: "image" | "second"): number | null {
  const [output, input] = ["output", "input"].map((end) => shifted(theirs[`${end}_cost_per_${work}`], CENTS));
  return output || input || (output ?? input ?? null);
}

/** Prices of tokens; tiers and members of tiers that the file has no figure for stay. */
function tokenPricesOf(theirs: Loose, ours: Loose): Loose {
  const base: Record<string, unknown> = {};
  const known = listOf(ours, "tiers");
  const tiers = new Map(known.map((tier) => [tier.aboveInputTokens, { ...tier }]));
  let hasTier = false;
  for (const [name, value] of Object.entries(theirs)) {
    const [, stem = "", thousands] = TIER_NAME.exec(name) ?? [];
    const member = TOKEN_PRICES.get(stem);
    const price = shifted(value, CENTS_A_MILLION);
    if (member === undefined || price === null) continue;
    if (thousands === undefined) {
      base[member] = price;
    } else {
      const aboveInputTokens = Number(thousands) * 1_000;
      tiers.set(aboveInputTokens, {
        ...tiers.get(aboveInputTokens) ?? { aboveInputTokens },
        [member]: price,
      });
      hasTier = true;
    }
  }
  return hasTier ? { ...base, tiers: [...tiers.values()] } : base;
}

/** Moves the point of a decimal text by some places, exactly; null when the text is not a decimal number. */
function shifted(text: unknown, places: number): number | null {
  const [, digits, exponent = "0"] = typeof text === "string" ? DECIMAL.exec(text) ?? [] : [];
  return digits === undefined ? null : numberOf(parseAmount(`${digits}e${Number(exponent) + places}`));
}
