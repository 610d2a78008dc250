// Reads members of Stripe's objects, which are foreign JSON: an invalid member is read as absent.

import type { Millis } from "../values/period.ts";

/** The members of an object. */
export type Fields = Readonly<Record<string, unknown>>;

/** An amount in the smallest unit of its currency. */
export interface Money {
  readonly amount: number;
  readonly currency: string;
}

const NONE: Fields = {};
const NAME_LENGTH_MAX = 200;
const QUANTITY_MAX = 1_000_000_000;

/** Returns the members of an object; none of any other value. */
export function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value as Fields : NONE;
}

/** Reads an id or a name: 1 to 200 characters, without U+0000 and replaced characters. */
export function nameOf(value: unknown): string | null {
  if (typeof value !== "string" || value === "" || /[\0\uFFFD]/.test(value) || !value.isWellFormed()) {
    return null;
  }
  return value.length <= NAME_LENGTH_MAX || [...value].length <= NAME_LENGTH_MAX ? value : null;
}

/** Reads the id of an object, which Stripe gives alone or within the object. */
export function idOf(value: unknown): string | null {
  return nameOf(typeof value === "string" ? value : fieldsOf(value).id);
}

/** Reads a time, which Stripe gives in seconds. */
export function timeOf(value: unknown): Millis | null {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 && value <= LAST_S
    ? value * 1000
    : null;
}

/** The last second of the year 9999. */
const LAST_S = 253_402_300_799;

/** Reads a positive integer, also as text, the form of metadata. */
export function wholeOf(value: unknown): number | null {
  const number = typeof value === "string" && /^\d{1,10}$/.test(value) ? Number(value) : value;
  const isWhole = typeof number === "number" && Number.isInteger(number) && number > 0 &&
    number <= QUANTITY_MAX;
  return isWhole ? number : null;
}

/** Returns the metadata of an object. */
export function metadataOf(object: Fields): Fields {
  return fieldsOf(object.metadata);
}

/** Returns the objects of a list. */
export function linesOf(list: unknown): readonly Fields[] {
  const { data } = fieldsOf(list);
  return Array.isArray(data) ? data.map(fieldsOf) : [];
}

/** Reads the price of a subscription's item or an invoice's line, in each place that versions of Stripe's API use. */
export function priceOf(line: Fields): string | null {
  const details = fieldsOf(fieldsOf(line.pricing).price_details);
  return idOf(line.price) ?? idOf(details.price) ?? idOf(line.plan);
}

/** Lists the payments and charges that a session, an invoice or an invoice's payment names. */
export function paymentsOf(object: Fields): readonly string[] {
  const own = [idOf(object.payment_intent), idOf(object.charge)];
  const listed = linesOf(object.payments).filter(({ status }) => status === undefined || status === "paid")
    .flatMap((each) => paymentsOf(fieldsOf(each.payment)));
  return [...new Set([...own.filter((id) => id !== null), ...listed])];
}

/** Whether a line of an invoice adjusts an earlier one, in each place that versions of Stripe's API use. */
export function isProration(line: Fields): boolean {
  const parent = fieldsOf(line.parent);
  const places = [line, fieldsOf(parent.subscription_item_details), fieldsOf(parent.invoice_item_details)];
  return places.some(({ proration }) => proration === true);
}

/**
 * Whether a line of amount 0 was sold for nothing, because its price is 0 or a discount took all of it. False for a price
 * above 0, as in a trial. Null if no member has the price's own amount: newer versions of Stripe's API give 0 as the unit
 * amount of a trial's line, so a 0 there explains nothing.
 */
export function isFreeSale({ price, plan, pricing, discount_amounts: discounts }: Fields): boolean | null {
  if (Array.isArray(discounts) && discounts.some((each) => (numberOf(fieldsOf(each).amount) ?? 0) > 0)) {
    return true;
  }
  const own = unitAmountOf({ price, plan });
  if (own !== null) return own === 0;
  return decimalOf(fieldsOf(pricing).unit_amount_decimal) ? false : null;
}

/** Reads the price's own amount of an item or a line; null if unknown. */
export function unitAmountOf({ price, plan }: Fields): number | null {
  const { unit_amount: whole, unit_amount_decimal: exact } = fieldsOf(price);
  return decimalOf(whole) ?? decimalOf(exact) ?? decimalOf(fieldsOf(plan).amount);
}

/** Reads a number, also as text; null for any other value. */
function decimalOf(value: unknown): number | null {
  return numberOf(typeof value === "string" && /^\d+(\.\d+)?$/.test(value) ? Number(value) : value);
}

/** Reads a number; null for any other value. */
export function numberOf(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

/** Reads an amount of money; null if a member is invalid. */
export function moneyOf(amount: unknown, currency: unknown): Money | null {
  const name = nameOf(currency);
  return Number.isSafeInteger(amount) && (amount as number) >= 0 && name !== null
    ? { amount: amount as number, currency: name.toLowerCase() }
    : null;
}
