// Reservations: amounts held before the work and settled after it. The table of states and triggers is here as data; the
// commands read it and move the amounts.

import type { Amount } from "../values/amount.ts";
import type { CreditLine } from "./credit.ts";
import type { UserKey } from "../values/ids.ts";
import { areEqualWindows, type Millis } from "../values/period.ts";
import type { Unit } from "../catalog/plan.ts";
import { type Refusal, refusal } from "../values/refusal.ts";
import type { CounterRef } from "./counter.ts";
import type { ShareLine } from "./share.ts";
import type { Metadata } from "../values/match.ts";
import type { Catalog } from "../catalog/catalog.ts";
import { type Amounts, priceRowOf } from "../pricing/amounts.ts";
import type { RateRow } from "../catalog/rate_row.ts";
import type { PriceRow } from "../catalog/price_row.ts";

export type ReservationStatus = "held" | "committed" | "released" | "expired";

/** What a hold or an event took from one counter, in the unit of its group. */
export interface Line extends CounterRef {
  readonly unit: Unit;
  readonly taken: Amount;
  /** The part of `taken` that was sold past the quota; absent for none. */
  readonly overage?: Amount;
}

/** A line of a hold, which can follow its user from plan to plan: see plans/carry.ts. */
export interface HoldLine extends Line {
  /** The counters that it left and that still contain it, each once, never its own; absent for none. */
  readonly left?: readonly CounterRef[];
  /**
   * Present for the overage of the line before it, which did not follow the user to another plan: all of it is overage, of
   * the counter where it was taken.
   */
  readonly isLeftBehind?: true;
}

/** Whether two lines are equal, and left no counter. */
export function areEqualLines(one: HoldLine, other: HoldLine): boolean {
  return one.groupId === other.groupId && one.planId === other.planId && one.taken === other.taken &&
    one.unit === other.unit && one.overage === other.overage && one.left === undefined &&
    other.left === undefined && one.isLeftBehind === other.isLeftBehind &&
    areEqualWindows(one.window, other.window);
}

/** The rate of a hold. */
export interface HeldRate {
  /** The number of the rate row. */
  readonly number: number;
  /** What the rate charges for the tokens of the hold, exactly. They count where a usage reports none. */
  readonly tokens: bigint;
}

/** A reservation, open or settled. */
export interface Reservation {
  readonly id: string;
  readonly userKey: UserKey;
  readonly status: ReservationStatus;
  readonly event: string;
  /** As JSON text. */
  readonly metadata: string | null;
  /** As sent. The event's quantity is this, else `count`, else 1. */
  readonly quantity: Amount | null;
  readonly count: Amount | null;
  /** What was reserved in each unit; `cents` is also the cost that the reservation carries. */
  readonly amounts: Amounts;
  /** Whether the price row meters output seconds (audio and video). */
  readonly perUnit: boolean;
  /** The number of the price row of the reserve; NO_PRICE_ROW for none, null for holds of versions that kept none. */
  readonly priceRow: number | null;
  /** Whether the caller named the cents, so that a model without a price is no cause for a warning. */
  readonly namesCents: boolean;
  readonly lines: readonly HoldLine[];
  /** What was taken from credit balances, in the order taken. */
  readonly credits: readonly CreditLine[];
  /** Kept until the settlement, if prompts are logged; null afterwards. */
  readonly prompt: string | null;
  readonly createdAt: Millis;
  readonly expiresAt: Millis;
  readonly settledAt: Millis | null;
  /**
   * The ids of the parts that users above hold of the same call, nearest first; absent for none. A part is a reservation of
   * that user, with its own lines and credits. It lapses at the same time and is settled with this one.
   */
  readonly parts?: readonly string[];
  /** The rate of the reserve; absent for an event without one, and for parts. */
  readonly rate?: HeldRate;
  /** What it took of the caller's shares of groups above; absent for nothing. */
  readonly shares?: readonly ShareLine[];
  /** Of a part: the id of the caller's reservation, by which alone callers settle it. Absent for any other. */
  readonly partOf?: string;
  /** The run in which the call counts, and in those around it; absent for none. Parts have none. */
  readonly runId?: string;
  /**
   * Present where memory lacks metadata and prompt: both are null here, and the tables have them. A commit and a release
   * need them, so they are read before its turn. No other decision does, and what it writes leaves them alone.
   */
  readonly isBare?: true;
}

/** Checks that the texts of a reservation are at hand. @throws Error where they were not read before the turn */
export function requireTexts({ id, isBare }: Reservation): void {
  if (isBare === true) throw new Error(`The texts of ${id} were not loaded`);
}

/** Whether a reservation may still become an event with its texts. */
export function mayNeedTexts({ status }: Pick<Reservation, "status">): boolean {
  return status === "held" || status === "expired";
}

/** The number of no price row: the event had no price. */
export const NO_PRICE_ROW = -1;

/**
 * Returns the price row of a reservation's reserve, or null for an event without a price. Holds of versions that kept no
 * row are priced by the present catalog.
 */
export function priceRowOfHold(
  catalog: Catalog,
  { priceRow, event }: Reservation,
  metadata: Metadata | null,
): PriceRow | null {
  if (priceRow === null) return priceRowOf(catalog, event, metadata);
  return catalog.priceRows[priceRow] ?? null;
}

/** Returns the rate of a reservation's reserve; null for an event without one. */
export function rateOfHold({ rateRows }: Catalog, { rate }: Reservation): RateRow | null {
  return rate === undefined ? null : rateRows[rate.number] ?? null;
}

/** Lists the counters that a settlement can change: those of the lines, and those that the lines left. */
export function countersOf({ lines }: Reservation): CounterRef[] {
  return lines.flatMap((line) => [line, ...line.left ?? []]);
}

export type ReservationTrigger = "commit" | "release" | "expire";

/** What a trigger does: the next state and how the amounts move, or a refusal, or nothing. */
type Transition =
  | { readonly next: ReservationStatus; readonly effect: "settle" | "refund" | "recharge" }
  | "reservation_not_pending"
  | "no_change";

/** Every state with every trigger; a missing pair does not compile. */
export const TRANSITIONS: Readonly<
  Record<ReservationStatus, Readonly<Record<ReservationTrigger, Transition>>>
> = {
  held: {
    commit: { next: "committed", effect: "settle" },
    release: { next: "released", effect: "refund" },
    expire: { next: "expired", effect: "refund" },
  },
  expired: {
    commit: { next: "committed", effect: "recharge" },
    release: "reservation_not_pending",
    expire: "no_change",
  },
  committed: {
    commit: "reservation_not_pending",
    release: "reservation_not_pending",
    expire: "no_change",
  },
  released: {
    commit: "reservation_not_pending",
    release: "reservation_not_pending",
    expire: "no_change",
  },
};

/** Refuses the settlement of an unknown reservation. */
export function unknownReservation(): Refusal {
  return refusal("not_found", "Reservation not found");
}

/** Refuses the settlement of a reservation that is already settled. */
export function notPending({ status }: Reservation): Refusal {
  return refusal("reservation_not_pending", `The reservation is already settled: ${status}`);
}
