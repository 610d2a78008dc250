// What one call means in each unit: the amounts of reserve and track, with cents derived from the model's price
// row where the caller names none. Section 5 of the decisions, "Amounts by unit" and "Model row".

import { type Amount, multiply, ONE } from "../amount.ts";
import type { Catalog, Model } from "../plans/catalog.ts";
import type { Metadata } from "../match.ts";
import type { Unit } from "../plans/plan.ts";

/** An amount for each unit. */
export type Amounts = Readonly<Record<Unit, Amount>>;

/** What a caller says of a call's size; absent members are null. */
export interface CallSize {
  readonly quantity: Amount | null;
  readonly count: Amount | null;
  readonly inputTokens: Amount | null;
  readonly inputCostCents: Amount | null;
}

const MILLION = 1_000_000n;

/** The price row of an event: the one `metadata.model` names, else the one named after the event's first dot. */
export function modelOf(catalog: Catalog, event: string, metadata: Metadata | null): Model | null {
  const named = metadata?.members.model;
  if (typeof named === "string") {
    const model = catalog.models.get(named);
    if (model !== undefined) return model;
  }
  const dot = event.indexOf(".");
  return dot < 0 ? null : catalog.models.get(event.slice(dot + 1)) ?? null;
}

/** The amounts that reserve and can-use hold: `quantity` sizes seconds only. */
export function reserveAmounts(size: CallSize, model: Model | null): Amounts {
  const tokens = size.inputTokens ?? 0n;
  const seconds = size.quantity ?? ONE;
  return {
    tokens,
    seconds,
    count: size.count ?? ONE,
    cents: size.inputCostCents ?? derivedCents(model, size.inputTokens, seconds),
  };
}

/**
 * The amounts that track counts: tokens and count fall back to `quantity`, and for a per_unit model the real
 * cost counts toward cents.
 */
export function trackAmounts(size: CallSize, costCents: Amount | null, model: Model | null): Amounts {
  const amounts = reserveAmounts(size, model);
  return {
    ...amounts,
    tokens: size.inputTokens ?? size.quantity ?? 0n,
    count: size.count ?? size.quantity ?? ONE,
    cents: model?.amountMode === "per_unit" ? costCents ?? amounts.cents : amounts.cents,
  };
}

/** What a model's own report of a generation costs; rounded once, at the end. */
export function generationCents(model: Model, inputTokens: Amount, outputTokens: Amount): Amount {
  const exact = multiply(inputTokens, model.price) + multiply(outputTokens, model.outputPrice);
  return multiply(exact, ONE, MILLION);
}

/** Choice: a per_token row derives from `inputTokens` alone, never from a quantity that stands in for tokens. */
function derivedCents(model: Model | null, inputTokens: Amount | null, seconds: Amount): Amount {
  switch (model?.amountMode) {
    case "per_token":
      return multiply(inputTokens ?? 0n, model.price, MILLION);
    case "per_unit":
      return multiply(seconds, model.price);
    case "per_call":
      return model.price;
    case undefined:
      return 0n;
  }
}
