// Metering events: the rows that the feed lists and that counters are the sum of. "Event" means nothing else in this
// code base; people's events are "analytics events".

import type { Amount } from "../values/amount.ts";
import type { CreditLine } from "./credit.ts";
import type { UserKey } from "../values/ids.ts";
import type { Millis } from "../values/period.ts";
import type { Unit } from "../catalog/plan.ts";
import type { Line } from "./reservation.ts";

export const MATCH_STATUSES = [
  "matched",
  "matched_credits_only",
  "unmatched",
  "blocked",
  "no_subscription",
  "released",
] as const;

export type MatchStatus = (typeof MATCH_STATUSES)[number];

/** A metering event; immutable. */
export interface MeteringEvent {
  readonly id: string;
  readonly userKey: UserKey;
  readonly realm: number;
  readonly type: string;
  readonly quantity: Amount;
  readonly costCents: Amount;
  readonly matchStatus: MatchStatus;
  readonly createdAt: Millis;
  /** As JSON text. */
  readonly metadata: string | null;
  readonly reservationId: string | null;
  readonly reason: string | null;
  readonly errorCode: string | null;
  /** What the event added to counters; also names the matched groups. Empty unless it was counted. */
  readonly lines: readonly Line[];
  /** What credits paid of it, each part above zero. */
  readonly credits: readonly CreditLine[];
  /** What a commit could charge nowhere, by unit. */
  readonly uncovered: Readonly<Partial<Record<Unit, Amount>>>;
}

/** The texts of an event, kept apart from it for a limited time. */
export interface EventLog {
  readonly eventId: string;
  readonly userKey: UserKey;
  readonly realm: number;
  readonly prompt: string | null;
  readonly response: string | null;
  /** The event's time, from which retention counts. */
  readonly at: Millis;
}

/** Whether an event of this status counts: as usage or against credits, and as a metering operation. */
export function isCounted(status: MatchStatus): boolean {
  return status === "matched" || status === "matched_credits_only";
}

/** The ids of the groups that a counted event matched, each once. */
export function matchedGroupIds(event: Pick<MeteringEvent, "matchStatus" | "lines">): string[] {
  return event.matchStatus === "matched" ? [...new Set(event.lines.map((line) => line.groupId))] : [];
}

/** What an event took from one limit group or from one credit balance. */
export type ChargedAmount =
  | { readonly groupId: string; readonly unit: Unit; readonly amount: Amount }
  | { readonly balanceId: string; readonly unit: Unit; readonly amount: Amount };

/** What an event was charged with, groups first; nothing that is 0. Section 13 of the decisions. */
export function chargedAmounts(
  { lines, credits }: Pick<MeteringEvent, "lines" | "credits">,
): ChargedAmount[] {
  const amounts: ChargedAmount[] = [
    ...lines.map(({ groupId, unit, taken }) => ({ groupId, unit, amount: taken })),
    ...credits.map(({ balanceId, unit, taken }) => ({ balanceId, unit, amount: taken })),
  ];
  return amounts.filter(({ amount }) => amount > 0n);
}
