// The cost that commit and track return, and the warnings about its price.

import type { Amount } from "../values/amount.ts";
import type { Metadata } from "../values/match.ts";
import type { PriceRow } from "../catalog/price_row.ts";
import type { Usage } from "./usage.ts";

/** What an event cost. */
export interface Cost {
  readonly cents: Amount;
  /** Whether the model has a price row. */
  readonly priced: boolean;
  /** The row's id; null for none. */
  readonly model: string | null;
}

/** What an event keeps of its model. */
interface EventModel {
  readonly model?: string;
  readonly isUnpriced?: true;
}

const NO_MODEL: EventModel = {};
/** Names that a table and a page can show. */
const MODEL_NAME = /^[^\p{Cc}\p{Cs}]{1,128}$/u;

/** The model of an event: that of its price row, else the one in `metadata.model`, if that can be a name. */
export function eventModel(row: PriceRow | null, metadata: Metadata | null, namesCents: boolean): EventModel {
  if (row !== null) return { model: row.id };
  const named = metadata?.members.model;
  if (typeof named !== "string" || !MODEL_NAME.test(named)) return NO_MODEL;
  return namesCents ? { model: named } : { model: named, isUnpriced: true };
}

/** What a caller should know of a call's price. */
export type Warning = "unpriced_model" | "unrated_event" | "tier_unpriced";

/** The cost of an event under a price row, null for none. */
export function costOf(cents: Amount, row: PriceRow | null): Cost {
  return { cents, priced: row !== null, model: row?.id ?? null };
}

/** The call that warnings are about. */
interface WarnedCall {
  /** Whether a matched limit group counts cents. */
  readonly countsCents: boolean;
  /** Whether the caller named the cents. */
  readonly namesCents: boolean;
  readonly usage: Usage | null;
  /** Whether credits are counted, and neither a rate nor the caller says how many. */
  readonly lacksRate: boolean;
}

/**
 * Warns of an event that counts cents or credits, where neither a row nor the caller says how many; and of a usage of
 * another service tier, which was priced as the standard one.
 */
export function warningsOf(
  row: PriceRow | null,
  { countsCents, namesCents, usage, lacksRate }: WarnedCall,
): readonly Warning[] {
  const warnings: Warning[] = [];
  if (row === null && countsCents && !namesCents) warnings.push("unpriced_model");
  if (lacksRate) warnings.push("unrated_event");
  if (usage?.isOtherTier === true) warnings.push("tier_unpriced");
  return warnings;
}
