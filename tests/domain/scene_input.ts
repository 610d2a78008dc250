// Inputs of a scene's commands in plain values.

import { amountOf } from "../../src/domain/values/amount.ts";
import type { Metadata } from "../../src/domain/values/match.ts";
import type { Correction } from "../../src/domain/metering/commit.ts";
import type { CallSize } from "../../src/domain/pricing/amounts.ts";
import type { Unit } from "../../src/domain/catalog/plan.ts";
import { NO_USAGE, type Usage } from "../../src/domain/pricing/usage.ts";

/** Amounts as plain numbers. */
export type Size = Partial<Record<keyof CallSize, number>>;

/** A call's size from plain numbers. */
export function sizeOf(members: Size = {}): CallSize {
  const amount = (value: number | undefined) => value === undefined ? null : amountOf(value);
  const { quantity, count, inputTokens, inputCostCents, maxOutputTokens } = members;
  return {
    quantity: amount(quantity),
    count: amount(count),
    inputTokens: amount(inputTokens),
    inputCostCents: amount(inputCostCents),
    maxOutputTokens: amount(maxOutputTokens),
  };
}

/** A reported usage in plain numbers. */
export type Reported = Partial<Record<keyof Usage, number>>;

export function usageOf(members: Reported | undefined): Usage | null {
  if (members === undefined) return null;
  const amounts = Object.entries(members).map(([name, value]) => [name, amountOf(value)]);
  return { ...NO_USAGE, ...Object.fromEntries(amounts) };
}

/** What a call is about, in plain values; a number is a count. */
export interface Call {
  readonly event?: string | undefined;
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
}

export function callOf(size: Size | number, { event = "x.make", metadata }: Call) {
  const members: Metadata | null = metadata === undefined
    ? null
    : { text: JSON.stringify(metadata), members: metadata };
  return { event, metadata: members, size: sizeOf(typeof size === "number" ? { count: size } : size) };
}

export function correctionOf(members: Partial<Record<Unit, number>> = {}): Correction {
  return Object.fromEntries(Object.entries(members).map(([unit, value]) => [unit, amountOf(value)]));
}

/** What a commit adds to or sets in place of what was reserved, in plain numbers. */
export interface Final {
  readonly extra?: Partial<Record<Unit, number>>;
  readonly actual?: Partial<Record<Unit, number>>;
  readonly costCents?: number;
  readonly usage?: Reported;
}
