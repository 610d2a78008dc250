// Metering events: the rows of the feed, which counters add up. "Event" has no other meaning in this code base; the events
// of people are "analytics events".

import type { Amount } from "../values/amount.ts";
import type { CreditLine } from "./credit.ts";
import type { UserKey } from "../values/ids.ts";
import { isOfGuard, type Millis } from "../values/period.ts";
import type { Unit } from "../catalog/plan.ts";
import type { Amounts } from "../pricing/amounts.ts";
import type { Line } from "./reservation.ts";
import type { ShareLine } from "./share.ts";
import type { Work } from "./work.ts";

export const MATCH_STATUSES = [
  "matched",
  "matched_credits_only",
  "unmatched",
  "blocked",
  "no_subscription",
  "released",
] as const;

export type MatchStatus = (typeof MATCH_STATUSES)[number];

/** What an event took from one user: its lines, its balances, and what neither covers. */
export interface Charge {
  /** What the event added to counters, a line for each matched group. Empty unless the event was counted. */
  readonly lines: readonly Line[];
  /** What each credit balance paid of the event; above zero. */
  readonly credits: readonly CreditLine[];
  /** The part of a commit that neither a group nor a balance covers, by unit. */
  readonly uncovered: Readonly<Partial<Record<Unit, Amount>>>;
}

/** What an event took from a user above its own. */
export interface LevelCharge extends Charge {
  readonly userKey: UserKey;
}

/** A metering event; immutable. */
export interface MeteringEvent extends Charge {
  readonly id: string;
  readonly userKey: UserKey;
  readonly realm: number;
  readonly type: string;
  readonly quantity: Amount;
  readonly costCents: Amount;
  /** The plan of the user, or of the nearest account above that has one, at the event; absent for none. */
  readonly planId?: string;
  /** The id of its price row, else the model that the call names; absent for none. */
  readonly model?: string;
  /** Whether it names a model, and neither a price row nor the caller says what it costs. */
  readonly isUnpriced?: true;
  /** What it costs in credits; absent where neither a rate nor the caller says it. */
  readonly costCredits?: Amount;
  readonly matchStatus: MatchStatus;
  readonly createdAt: Millis;
  /** As JSON text. */
  readonly metadata: string | null;
  readonly reservationId: string | null;
  readonly reason: string | null;
  readonly errorCode: string | null;
  /** What it took from users above, nearest first; absent where it took nothing from any. */
  readonly levels?: readonly LevelCharge[];
  /** What it took of the user's shares of groups above; absent for nothing. */
  readonly shares?: readonly ShareLine[];
  /** The run of the call; absent for none. */
  readonly runId?: string;
  /** What it counts in its run, and in those around it; absent where it counts nothing there. */
  readonly runAmounts?: Amounts;
  /** By what it can be decided anew. */
  readonly work: Work;
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

/** Whether an event of this status counts as usage or against credits, and as a metering operation. */
export function isCounted(status: MatchStatus): boolean {
  return status === "matched" || status === "matched_credits_only";
}

/** The ids of the quota groups that a counted event matched, each once. */
export function matchedGroupIds(
  { matchStatus, lines }: Pick<MeteringEvent, "matchStatus" | "lines">,
): string[] {
  return matchStatus === "matched" ? [...new Set(linesOfQuotas(lines).map(({ groupId }) => groupId))] : [];
}

function linesOfQuotas(lines: readonly Line[]): Line[] {
  return lines.filter(({ window }) => !isOfGuard(window));
}

/** The amount that an event took from one limit group or one credit balance. */
export type ChargedAmount =
  | { readonly groupId: string; readonly unit: Unit; readonly amount: Amount }
  | { readonly balanceId: string; readonly unit: Unit; readonly amount: Amount };

/** Lists what an event was charged, groups first, without amounts of 0. Several lines of one group are one amount. */
export function chargedAmounts(
  { lines, credits }: Pick<MeteringEvent, "lines" | "credits">,
): ChargedAmount[] {
  const groups = new Map<string, { groupId: string; unit: Unit; amount: Amount }>();
  for (const { groupId, unit, taken } of linesOfQuotas(lines)) {
    const name = `${groupId} ${unit}`;
    const known = groups.get(name);
    if (known === undefined) groups.set(name, { groupId, unit, amount: taken });
    else known.amount += taken;
  }
  const amounts: ChargedAmount[] = [
    ...groups.values(),
    ...credits.map(({ balanceId, unit, taken }) => ({ balanceId, unit, amount: taken })),
  ];
  return amounts.filter(({ amount }) => amount > 0n);
}
