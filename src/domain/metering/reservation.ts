// Reservations: amounts held before the work and settled after it. The transition table of the specification
// ("States and transitions, Reservation") stands here as data; the commands read it and add what moves with it.

import type { Amount } from "../amount.ts";
import type { CreditLine } from "../credits/credit.ts";
import type { UserKey } from "../ids.ts";
import type { Millis, Window } from "../plans/period.ts";
import type { Unit } from "../plans/plan.ts";
import type { Amounts } from "./pricing.ts";

export type ReservationStatus = "held" | "committed" | "released" | "expired";

/** What a hold or an event took from one counter. */
export interface Line {
  readonly planId: string;
  readonly groupId: string;
  readonly window: Window;
  readonly unit: Unit;
  readonly taken: Amount;
}

/** A reservation, open or settled. */
export interface Reservation {
  readonly id: string;
  readonly userKey: UserKey;
  readonly status: ReservationStatus;
  readonly event: string;
  /** As JSON text. */
  readonly metadata: string | null;
  /** As sent; the event's quantity falls back from here to `count`, then to 1. */
  readonly quantity: Amount | null;
  readonly count: Amount | null;
  /** What was reserved in each unit; `cents` is also the cost that the reservation carries. */
  readonly amounts: Amounts;
  /** Whether the price row meters output seconds (audio and video). */
  readonly perUnit: boolean;
  readonly lines: readonly Line[];
  /** What was taken from credit balances, in the order taken. */
  readonly credits: readonly CreditLine[];
  /** Waits for the settlement, where prompts are logged; null afterwards. */
  readonly prompt: string | null;
  readonly createdAt: Millis;
  readonly expiresAt: Millis;
  readonly settledAt: Millis | null;
}

export type ReservationTrigger = "commit" | "release" | "expire";

/** What a trigger does to a reservation: its next state and what moves, or a refusal. */
export type Transition =
  | { readonly next: ReservationStatus; readonly effect: "settle" | "refund" | "recharge" }
  | "reservation_not_pending"
  | "no_change";

/** Every state with every trigger: a missing pair would not compile. */
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
