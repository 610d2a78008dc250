// Top-ups, and the setting of a user's row.

import type { TopUp, TopUpIntent, TopUpTerms } from "../../domain/state/top_up.ts";
import { decimalOf, parseAmount } from "../../domain/values/amount.ts";
import type { ColumnValue } from "../database.ts";
import { column, mapped, table } from "./columns.ts";

export const TOP_UPS = table<TopUpIntent>("top_ups", 1, {
  id: column("id"),
  userKey: column("user_key", { mutable: true }),
  realm: column("realm"),
  status: column("status", { mutable: true }),
  packId: column("pack_id"),
  quantity: column("quantity"),
  amount: column("amount"),
  currency: column("currency"),
  terms: mapped("terms", textOfTerms, termsOf),
  customerId: column("customer_id"),
  paymentMethodId: column("payment_method_id"),
  paymentIntentId: column("payment_intent_id", { mutable: true }),
  attempt: column("attempt", { mutable: true }),
  attemptedAt: column("attempted_at_ms", { mutable: true }),
  isConfirmed: column("confirmed", { mutable: true }),
  isCalledOff: column("called_off", { mutable: true }),
  reason: column("reason", { mutable: true }),
  month: column("month"),
  createdAt: column("created_at_ms"),
  settledAt: column("settled_at_ms", { mutable: true }),
});

function textOfTerms({ units, ...terms }: TopUpTerms): string {
  return JSON.stringify({ ...terms, units: decimalOf(units) });
}

function termsOf(value: ColumnValue): TopUpTerms {
  const { units, ...terms } = JSON.parse(value as string);
  return { ...terms, units: parseAmount(units) };
}

/** Encodes what a user buys by itself as JSON; null for none. */
export function encodeTopUp(topUp: TopUp | null): string | null {
  if (topUp === null) return null;
  const { setting } = topUp;
  const shown = setting === null ? null : { ...setting, below: decimalOf(setting.below) };
  return JSON.stringify({ ...topUp, setting: shown });
}

export function decodeTopUp(value: ColumnValue): TopUp | null {
  if (value === null) return null;
  const topUp = JSON.parse(value as string);
  const { setting } = topUp;
  return { ...topUp, setting: setting === null ? null : { ...setting, below: parseAmount(setting.below) } };
}
