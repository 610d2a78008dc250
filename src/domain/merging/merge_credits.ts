// Credits in a merge: every balance moves. Two copies of one grant (same pack, item and external reference) become one: the
// survivor, that of the canonical user unless it is expired and the other neither expired nor revoked, pays for what both
// used. Usage beyond the grant is its overage, which later refunds reduce first. The other copy is closed.

import { type Amount, larger, numberOf } from "../values/amount.ts";
import type { Context } from "../state/context.ts";
import { type CreditBalance, NOTIFIED, statusOf } from "../state/credit.ts";
import { writeEntry } from "../credits/ledger.ts";
import { repointCredits } from "../credits/wallet.ts";
import type { Draft } from "../state/draft.ts";
import type { CreditConflict } from "./merge_report.ts";

/** The result for balances. */
export interface MergedCredits {
  readonly moved: number;
  readonly conflicts: readonly CreditConflict[];
}

/** Moves all balances of a user to another. Both states must have every balance in memory. */
export function mergeCredits(from: Draft, to: Draft, context: Context): MergedCredits {
  const conflicts: CreditConflict[] = [];
  const closed = new Map<string, string>();
  const rows = [...from.balancesInOrder()].sort((a, b) => (a.id < b.id ? -1 : 1));
  const own = new Map([...to.balancesInOrder()].map((row) => [grantKey(row), row]));
  for (const row of rows) {
    const moved: CreditBalance = { ...row, userKey: to.user.key };
    const twin = row.externalRef === null ? undefined : own.get(grantKey(row));
    if (twin === undefined) {
      to.adoptBalance(moved);
      writeMoved(to, moved, context);
      continue;
    }
    const conflict = mergeCopies(to, moved, twin, context);
    closed.set(conflict.droppedId, conflict.survivorId);
    conflicts.push(conflict);
  }
  if (closed.size > 0) {
    for (const side of [from, to]) repointCredits(side, closed);
  }
  return { moved: rows.length, conflicts };
}

function grantKey({ packId, packItemId, externalRef, id }: CreditBalance): string {
  return externalRef === null ? id : JSON.stringify([packId, packItemId, externalRef]);
}

function mergeCopies(to: Draft, moved: CreditBalance, own: CreditBalance, context: Context): CreditConflict {
  const { now } = context;
  const isLive = !["expired", "revoked"].includes(statusOf(moved, now));
  const movedSurvives = isLive && statusOf(own, now) === "expired";
  const [survivor, dropped] = movedSurvives ? [moved, own] : [own, moved];
  const next = combined(survivor, dropped, now);
  const over: CreditBalance = {
    ...dropped,
    remaining: 0n,
    held: 0n,
    overage: 0n,
    revokedAmount: dropped.revokedAmount + dropped.remaining,
    revokedAt: dropped.revokedAt ?? now,
    externalRef: null,
  };
  to.adoptBalance(next);
  to.adoptBalance(over);
  if (movedSurvives) writeMoved(to, next, context);
  for (const [after, before] of [[next, survivor], [over, dropped]] as const) {
    const movement = { reason: "merge_dedupe", eventId: null, reservationId: null, at: now } as const;
    writeEntry(to, context, after, after.remaining - before.remaining, movement);
  }
  to.operations += 2;
  return {
    externalRef: survivor.externalRef as string,
    survivorId: survivor.id,
    droppedId: dropped.id,
    remaining: numberOf(next.remaining),
    overage: numberOf(next.overage),
  };
}

/** Makes the surviving copy, which pays for what both used. If either copy was revoked, nothing remains. */
function combined(survivor: CreditBalance, dropped: CreditBalance, now: number): CreditBalance {
  const used = usedOf(survivor) + usedOf(dropped);
  const held = survivor.held + dropped.held;
  // A message about either copy was about the grant; but each copy has an expiry of its own.
  const notified = survivor.notified | (dropped.notified & ~NOTIFIED.expired);
  const left = larger(survivor.initial - used, 0n);
  const revokedAt = survivor.revokedAt ?? (dropped.revokedAt === null ? null : now);
  if (revokedAt !== null) {
    return { ...survivor, notified, held, remaining: 0n, overage: 0n, revokedAmount: left, revokedAt };
  }
  return { ...survivor, notified, held, remaining: left, overage: larger(used - survivor.initial, 0n) };
}

/** The amount that events and open holds have taken. */
function usedOf({ initial, remaining, revokedAmount, overage }: CreditBalance): Amount {
  return initial - remaining - revokedAmount + overage;
}

function writeMoved(to: Draft, row: CreditBalance, context: Context): void {
  const movement = {
    reason: "merged_from_alias",
    eventId: null,
    reservationId: null,
    at: context.now,
  } as const;
  writeEntry(to, context, row, 0n, movement);
  to.operations += 1;
}
