// Rollovers: what is left of a plan's window at its end goes on for some windows more, within a maximum over all live
// rollovers of its kind. They never roll again. What a hold gives back to a window after its end goes to its rollover.

import { type Amount, larger, smaller } from "../values/amount.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import type { Catalog } from "../catalog/catalog.ts";
import { creditsData } from "../state/message.ts";
import { type CreditBalance, presentItemOf } from "../state/credit.ts";
import type { Millis } from "../values/period.ts";
import { type BalanceTerms, issueBalance } from "./issue.ts";
import { writeEntry } from "./ledger.ts";

/** What says which rollovers share a maximum. */
export type ItemOfPack = Pick<CreditBalance, "packId" | "packItemId" | "unit">;

/** Whether two balances are of one pack item. What a catalog puts back under an id in another unit is another item. */
export function isSameItem(a: ItemOfPack, b: ItemOfPack): boolean {
  return a.packId === b.packId && a.packItemId === b.packItemId && a.unit === b.unit;
}

/** Returns how much may roll over of a balance that a plan included; 0 where the plan no longer includes its item. */
function rolloverMax(catalog: Catalog, row: CreditBalance): Amount {
  if (presentItemOf(catalog, row) === null) return 0n;
  const { includes = [] } = catalog.plans.get(row.included?.planId ?? "") ?? {};
  return includes.find(({ packId }) => packId === row.packId)?.rollover?.max ?? 0n;
}

/** The terms of the rollover of an included balance. */
export function rolloverTerms(of: BalanceTerms, initial: Amount, expiresAt: Millis): BalanceTerms {
  const { included, ownRef } = of;
  if (included === null || ownRef === null) throw new Error("Only what a plan includes rolls over");
  const window = { ...included, state: "open", rollsUntil: null } as const;
  return { ...of, initial, expiresAt, origin: "rollover", ownRef: rolloverRef(ownRef), included: window };
}

const ROLLOVER = "rollover:";

function rolloverRef(ownRef: string): string {
  return ROLLOVER + ownRef;
}

/** Returns the reference of the window that a reference of a window or a rollover names. */
export function windowRefOf(ownRef: string): string {
  return ownRef.startsWith(ROLLOVER) ? ownRef.slice(ROLLOVER.length) : ownRef;
}

/** Gives what came back to a window after its end to its rollover, as far as the maximum allows. */
export function rollRefund(
  draft: Draft,
  context: Context,
  row: CreditBalance,
  back: Amount,
  at: Millis,
): void {
  const until = row.included?.rollsUntil ?? null;
  if (row.origin !== "plan" || row.ownRef === null || row.revokedAt !== null) return;
  if (until === null || until <= at) return;
  const ref = rolloverRef(row.ownRef);
  let rollover: CreditBalance | null = null;
  let live = 0n;
  for (const each of draft.balancesInOrder()) {
    if (!isLiveRollover(each, row, at)) continue;
    live += each.remaining;
    if (each.ownRef === ref) rollover = each;
  }
  const amount = smaller(back, larger(rolloverMax(context.catalog, row) - live, 0n));
  if (amount === 0n) return;
  if (rollover === null) {
    issueBalance(draft, rolloverTerms(row, amount, until), { ...context, now: at });
    return;
  }
  const { initial, remaining } = rollover;
  const grown = { ...rollover, initial: initial + amount, remaining: remaining + amount };
  draft.putBalance(grown);
  writeEntry(draft, context, grown, amount, { reason: "grant", eventId: null, reservationId: null, at });
  draft.recordMessage("credits.granted", at, creditsData(draft.user.id, grown));
}

/** Whether a balance is a rollover of a pack item that can be used at a moment. */
export function isLiveRollover(row: CreditBalance, kind: ItemOfPack, at: Millis): boolean {
  return row.origin === "rollover" && row.revokedAt === null && (row.expiresAt ?? Infinity) > at &&
    isSameItem(row, kind);
}
