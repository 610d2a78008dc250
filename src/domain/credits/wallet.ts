// The wallet: what a user's balances can pay for one event, in consumption order, and every movement of a balance with its
// ledger entry. Holds and events change balances only here. One need may drain several balances.

import { type Amount, smaller } from "../values/amount.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import { holdsToMove } from "../state/open_holds.ts";
import { type Movement, writeEntry } from "./ledger.ts";
import type { Metadata } from "../values/match.ts";
import { rollRefund } from "./rollover.ts";
import { creditsData } from "../state/message.ts";
import type { Amounts } from "../pricing/amounts.ts";
import type { Millis } from "../values/period.ts";
import type { Unit } from "../catalog/plan.ts";
import {
  type CreditBalance,
  type CreditLine,
  isSpendable,
  NOTIFIED,
  packNameOf,
  presentItemOf,
} from "../state/credit.ts";

/** What a pack has left for an event. */
export interface PackOffer {
  readonly packId: string;
  readonly packName: string;
  readonly available: Amount;
}

/** The event to pay for. */
export interface Purchase {
  readonly event: string;
  readonly metadata: Metadata | null;
  readonly now: Millis;
}

/** What balances pay of a need, and the part that they do not cover. */
export interface Payment {
  readonly lines: readonly CreditLine[];
  readonly missing: Amount;
}

/** Covers a need with balances of its unit, as far as they go; changes nothing. */
export function pay(draft: Draft, purchase: Purchase, unit: Unit, need: Amount): Payment {
  const lines: CreditLine[] = [];
  let missing = need;
  const { event, metadata, now } = purchase;
  for (const row of draft.balancesInOrder()) {
    if (missing === 0n) break;
    if (row.unit !== unit || !isSpendable(row, event, metadata, now)) continue;
    const taken = smaller(row.remaining, missing);
    lines.push({ balanceId: row.id, unit, taken });
    missing -= taken;
  }
  return { lines, missing };
}

/** Whether a matching balance of the unit has something left. */
export function hasCredit(draft: Draft, purchase: Purchase, unit: Unit): boolean {
  for (const row of spendable(draft, purchase)) {
    if (row.unit === unit) return true;
  }
  return false;
}

/**
 * Pays for an event that no limit group covers, in one unit alone: that of the first matching balance for which the event
 * has a need, and all matching balances of the unit cover it in full. Null if no unit does.
 */
export function payAlone(draft: Draft, purchase: Purchase, amounts: Amounts): readonly CreditLine[] | null {
  const tried: Unit[] = [];
  for (const { unit } of spendable(draft, purchase)) {
    if (amounts[unit] === 0n || tried.includes(unit)) continue;
    tried.push(unit);
    const { lines, missing } = pay(draft, purchase, unit, amounts[unit]);
    if (missing === 0n) return lines;
  }
  return null;
}

/** Lists what each pack has left for an event, in consumption order. */
export function offersOf(draft: Draft, purchase: Purchase, unit: Unit, context: Context): PackOffer[] {
  const offers = new Map<string, PackOffer>();
  for (const row of spendable(draft, purchase)) {
    if (row.unit !== unit) continue;
    const before = offers.get(row.packId)?.available ?? 0n;
    const packName = packNameOf(context.catalog, row);
    offers.set(row.packId, { packId: row.packId, packName, available: before + row.remaining });
  }
  return [...offers.values()];
}

function* spendable(draft: Draft, { event, metadata, now }: Purchase): Iterable<CreditBalance> {
  for (const row of draft.balancesInOrder()) {
    if (isSpendable(row, event, metadata, now)) yield row;
  }
}

/** Takes the parts of a hold or an event from their balances. */
export function takeCredits(
  draft: Draft,
  context: Context,
  lines: readonly CreditLine[],
  movement: Movement,
): void {
  const isHold = movement.reason === "reservation_held";
  for (const line of lines) {
    moveCredit(draft, context, line, { delta: -line.taken, held: isHold ? line.taken : 0n }, movement);
  }
}

/** Gives the parts of a hold back to their balances. */
export function refundCredits(
  draft: Draft,
  context: Context,
  lines: readonly CreditLine[],
  movement: Movement,
): void {
  for (const line of lines) {
    moveCredit(draft, context, line, { delta: line.taken, held: -line.taken }, movement);
  }
}

/**
 * Moves a balance, and those of a plan's windows that the line left, which keep what was used in them. What comes back to
 * a window that has ended goes on as its rollover does.
 */
export function moveCredit(
  draft: Draft,
  context: Context,
  { balanceId, left = NONE_LEFT }: Pick<CreditLine, "balanceId" | "left">,
  change: { readonly delta: Amount; readonly held: Amount },
  movement: Movement,
): void {
  const { before, after } = moveBalance(draft, context, balanceId, change, movement);
  const back = after.remaining - before.remaining;
  if (back > 0n && after.included !== null) rollRefund(draft, context, after, back, movement.at);
  const { delta } = change;
  if (delta === 0n) return;
  for (const id of left) {
    const row = draft.balance(id);
    if (row === undefined || row.revokedAt !== null) continue;
    // A window that has ended is not found again, and may have left memory.
    const end = row.included?.windowEnd ?? null;
    if (end !== null && end <= movement.at) continue;
    moveBalance(draft, context, id, { delta, held: 0n }, movement);
  }
}

const NONE_LEFT: readonly string[] = [];

/**
 * Moves one balance and writes its ledger entry. A refund to a revoked balance is taken away again by a second entry, and
 * so is a refund to a balance that was used beyond its amount, up to its overage. What a hold that left the balance takes
 * beyond its amount becomes its overage.
 */
function moveBalance(
  draft: Draft,
  context: Context,
  balanceId: string,
  { delta, held }: { readonly delta: Amount; readonly held: Amount },
  movement: Movement,
): { readonly before: CreditBalance; readonly after: CreditBalance } {
  const before = draft.balance(balanceId);
  if (before === undefined) throw new Error(`Balance ${balanceId} is not in memory`);
  const row = { ...before, held: before.held + held };
  writeEntry(draft, context, row, delta, movement);
  const isRevoked = row.revokedAt !== null;
  const swallowed = delta <= 0n
    ? smaller(row.remaining + delta, 0n)
    : isRevoked
    ? delta
    : smaller(delta, row.overage);
  if (swallowed !== 0n) writeEntry(draft, context, row, -swallowed, { ...movement, reason: "admin_adjust" });
  const moved = {
    ...row,
    remaining: row.remaining + delta - swallowed,
    revokedAmount: isRevoked ? row.revokedAmount + swallowed : row.revokedAmount,
    overage: isRevoked ? row.overage : row.overage - swallowed,
  };
  const after = moved.remaining < row.remaining ? reportLittleLeft(draft, context, row, moved) : moved;
  draft.putBalance(after);
  return { before, after };
}

/** Records `credits.low` and `credits.depleted`, once each; returns the balance with its marks. */
function reportLittleLeft(
  draft: Draft,
  { catalog, now }: Context,
  before: CreditBalance,
  after: CreditBalance,
): CreditBalance {
  const lowAt = presentItemOf(catalog, after)?.lowAt ?? null;
  let { notified } = after;
  const record = (what: "low" | "depleted", limit: Amount) => {
    if (before.remaining <= limit || after.remaining > limit || (notified & NOTIFIED[what]) !== 0) return;
    notified |= NOTIFIED[what];
    draft.recordMessage(`credits.${what}`, now, creditsData(draft.user.id, after));
  };
  if (lowAt !== null) record("low", lowAt);
  record("depleted", 0n);
  return notified === after.notified ? after : { ...after, notified };
}

/** Settles the expiry of a balance, as of its own time. The remaining amount is kept, but cannot be spent. */
export function expireCredits(draft: Draft, row: CreditBalance, at: Millis): void {
  draft.putBalance({ ...row, notified: row.notified | NOTIFIED.expired });
  if (row.remaining > 0n) draft.recordMessage("credits.expired", at, creditsData(draft.user.id, row));
}

/** Points the parts of open holds in closed balances at those that took their place; the caller moves the amounts. */
export function repointCredits(draft: Draft, closed: ReadonlyMap<string, string>): void {
  for (const row of holdsToMove(draft)) {
    if (!row.credits.some(({ balanceId }) => closed.has(balanceId))) continue;
    const credits = row.credits.map((line) => {
      const balanceId = closed.get(line.balanceId);
      return balanceId === undefined ? line : { ...line, balanceId };
    });
    draft.putReservation({ ...row, credits });
  }
}
