// Credit balances: what a grant of a pack gives a user, the ledger of every balance, and the order in which balances
// are spent. A balance keeps the rules, unit and priority of its grant. Its status follows from its amounts and the time,
// so an expiry needs no write.

import type { Amount } from "../values/amount.ts";
import type { Catalog, PackItem, PackKind } from "../catalog/catalog.ts";
import type { UserKey } from "../values/ids.ts";
import { matchesAny, type MatchRule, type Metadata, patternCovers } from "../values/match.ts";
import type { Millis } from "../values/period.ts";
import type { Unit } from "../catalog/plan.ts";

/** Where a grant came from. */
export type CreditSource = "purchase" | "grant" | "refund" | "manual";

/** What granted a balance, where no caller and no operator did: a plan, a rollover of it, or a top-up. */
type CreditOrigin = "plan" | "rollover" | "topup";

type CreditStatus = "active" | "expired" | "depleted" | "revoked";

/** Credits of one grant and pack item. */
export interface CreditBalance {
  readonly id: string;
  readonly userKey: UserKey;
  readonly realm: number;
  readonly packId: string;
  /** The pack's name at the grant. */
  readonly packName: string;
  /** null for a pack without items. */
  readonly packItemId: string | null;
  readonly kind: PackKind;
  readonly unit: Unit;
  readonly matches: readonly MatchRule[];
  readonly priority: number;
  readonly initial: Amount;
  readonly grantedAt: Millis;
  /** null for evergreen. */
  readonly expiresAt: Millis | null;
  readonly externalRef: string | null;
  readonly source: CreditSource;
  readonly notes: string | null;
  /** The sum of the balance's ledger; never below zero. */
  readonly remaining: Amount;
  /** What open holds have taken; not part of `remaining`. */
  readonly held: Amount;
  /** What revoking took, refunds that came after it included. */
  readonly revokedAmount: Amount;
  readonly revokedAt: Millis | null;
  /** What two merged copies had used beyond the grant; a refund reduces it first. */
  readonly overage: Amount;
  /** The messages that were sent of it, as a sum of NOTIFIED bits: each is sent once, `expired` once for each expiry. */
  readonly notified: number;
  /** null for a grant of a caller or an operator. */
  readonly origin: CreditOrigin | null;
  /**
   * Names what made it, where that is no caller: exactly one balance of a user has it, but for several levels or users
   * it may be the same. null for a grant of a caller or an operator. It never meets an `externalRef`.
   */
  readonly ownRef: string | null;
  /** Of credits that a plan includes and of their rollovers: the window that they were included in. Else null. */
  readonly included: Included | null;
}

/** The window of a plan that included credits. */
export interface Included {
  readonly planId: string;
  /** The row that had the plan. */
  readonly subscriptionId: string;
  readonly isAddOn: boolean;
  readonly windowStart: Millis;
  /** null for a lifetime. */
  readonly windowEnd: Millis | null;
  /**
   * "open" while it is the user's balance of the window, "left" when its plan ended before the window did, "taken_over"
   * when another balance then took its use along.
   */
  readonly state: "open" | "left" | "taken_over";
  /** Once the window has ended: until when what is left of it goes on as a rollover; null for no rollover. */
  readonly rollsUntil: Millis | null;
}

/** The messages that a balance sends once. */
export const NOTIFIED = { low: 1, depleted: 2, expired: 4 } as const;

export type LedgerReason =
  | "event_committed"
  | "reservation_held"
  | "reservation_released"
  | "reservation_expired"
  | "grant"
  | "admin_adjust"
  | "merged_from_alias"
  | "merge_dedupe";

/** One movement of a balance; immutable. */
export interface LedgerEntry {
  readonly id: string;
  readonly userKey: UserKey;
  readonly balanceId: string;
  readonly packId: string;
  /** Below zero: consumed or revoked; above: granted or refunded. */
  readonly delta: Amount;
  readonly reason: LedgerReason;
  readonly eventId: string | null;
  readonly reservationId: string | null;
  readonly notes: string | null;
  readonly at: Millis;
}

/** What a hold took from one balance. */
export interface CreditLine {
  readonly balanceId: string;
  readonly unit: Unit;
  readonly taken: Amount;
  /** Balances of a plan's windows that the line left, because its user changed plan; absent for none. */
  readonly left?: readonly string[];
}

/** What events and open holds took of a balance, or revoking did; above `initial` where its overage is above 0. */
export function goneOf({ initial, remaining, overage }: CreditBalance): Amount {
  return initial - remaining + overage;
}

/** Returns the pack's present name, else its name at the grant. */
export function packNameOf(catalog: Catalog, row: CreditBalance): string {
  return catalog.packs.get(row.packId)?.name ?? row.packName;
}

/** Returns the present item of a balance's pack; null where the catalog no longer has it in the balance's unit. */
export function presentItemOf({ packs }: Catalog, row: CreditBalance): Omit<PackItem, "amount"> | null {
  const pack = packs.get(row.packId);
  const item = row.packItemId === null ? pack?.bucket : pack?.items.find(({ id }) => id === row.packItemId);
  return item?.unit === row.unit ? item : null;
}

/** The status of a balance at a moment: revoked before expired before depleted before active. */
export function statusOf(row: CreditBalance, now: Millis): CreditStatus {
  if (row.revokedAt !== null) return "revoked";
  if (row.expiresAt !== null && row.expiresAt <= now) return "expired";
  return row.remaining === 0n ? "depleted" : "active";
}

/**
 * When the expiry of a balance is to be settled; null for a balance with nothing left, or without an expiry. Windows of
 * plans never make a user due: they are settled when it comes.
 */
export function expiryDueOf(row: CreditBalance): Millis | null {
  if (row.included !== null) return null;
  const hasLeft = row.remaining > 0n || row.held > 0n;
  return hasLeft && row.revokedAt === null && (row.notified & NOTIFIED.expired) === 0 ? row.expiresAt : null;
}

/** Whether a balance can be spent on an event now. */
export function isSpendable(
  row: CreditBalance,
  event: string,
  metadata: Metadata | null,
  now: Millis,
): boolean {
  return row.remaining > 0n && statusOf(row, now) === "active" && matchesAny(row.matches, event, metadata);
}

/**
 * Consumption order: priority descending, earliest expiry (evergreen last), rollovers first, oldest grant, then id. A total
 * order.
 */
export function compareBalances(a: CreditBalance, b: CreditBalance): number {
  if (a.priority !== b.priority) return b.priority - a.priority;
  const expiryA = a.expiresAt ?? Infinity;
  const expiryB = b.expiresAt ?? Infinity;
  if (expiryA !== expiryB) return expiryA < expiryB ? -1 : 1;
  const [rolledA, rolledB] = [a.origin === "rollover", b.origin === "rollover"];
  if (rolledA !== rolledB) return rolledA ? -1 : 1;
  if (a.grantedAt !== b.grantedAt) return a.grantedAt - b.grantedAt;
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}

/** Where a balance stands, or would stand, in a list in the order of consumption. */
export function placeOf(order: readonly CreditBalance[], row: CreditBalance): number {
  let low = 0;
  let high = order.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compareBalances(order[middle] as CreditBalance, row) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Narrows a list of balances. */
export interface CreditFilter {
  /** An event name or pattern that a rule must cover, by its name alone; null for all. */
  readonly event: string | null;
  /** Whether to include expired and revoked balances. */
  readonly includeExpired: boolean;
}

/** Lists balances in consumption order. */
export function listBalances(
  rows: Iterable<CreditBalance>,
  { event, includeExpired }: CreditFilter,
  now: Millis,
): CreditBalance[] {
  const shown: CreditBalance[] = [];
  for (const row of rows) {
    const status = statusOf(row, now);
    if (!includeExpired && (status === "expired" || status === "revoked")) continue;
    if (event !== null && !row.matches.some((rule) => patternCovers(rule.event, event))) continue;
    shown.push(row);
  }
  return shown.sort(compareBalances);
}
