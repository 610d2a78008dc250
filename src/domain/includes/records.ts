// Records: the balances of a plan's windows, running ones and those whose plan ended before their window did. A record is
// what remembers how much of a window was used, so each window has one, and one that is left is found again.

import { type Amount, larger } from "../values/amount.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import { holdsToMove } from "../state/open_holds.ts";
import { creditsData } from "../state/message.ts";
import { type CreditBalance, goneOf, type Included, NOTIFIED } from "../state/credit.ts";
import { isSameItem, type ItemOfPack } from "../credits/rollover.ts";
import { ruleText } from "../values/match.ts";
import { writeEntry } from "../credits/ledger.ts";
import type { Millis } from "../values/period.ts";
import { itemOf, type Source } from "./sources.ts";

/** A balance that a plan includes. */
export type IncludedBalance = CreditBalance & { readonly included: Included };

/** Lists the balances of windows, all but rollovers. */
export function recordsOf(draft: Draft): IncludedBalance[] {
  const records: IncludedBalance[] = [];
  for (const row of draft.balancesInOrder()) if (isRecord(row)) records.push(row);
  return records;
}

/** Whether a balance is that of a window, and no rollover. */
export function isRecord(row: CreditBalance): row is IncludedBalance {
  return row.origin === "plan" && row.included !== null;
}

/** Whether the window of a record still runs. */
export function isRunning({ included: { windowEnd } }: IncludedBalance, now: Millis): boolean {
  return windowEnd === null || windowEnd > now;
}

/** Puts a record in another state. */
export function stateOf(row: IncludedBalance, state: Included["state"]): IncludedBalance {
  return { ...row, included: { ...row.included, state } };
}

/** A record as its plan leaves it before its window ends. */
export function ended(row: IncludedBalance, state: "left" | "taken_over", now: Millis): IncludedBalance {
  const expiresAt = row.included.state === "open" ? now : row.expiresAt;
  return { ...stateOf(row, state), expiresAt, notified: row.notified | NOTIFIED.expired };
}

/**
 * Pairs sources with the records whose use they take along: of one pack item, else of the same unit and rules. Each record
 * is paired once; of several that fit, the most used one.
 */
export function pair<Wanted extends { readonly source: Source }>(
  wanted: readonly Wanted[],
  records: readonly IncludedBalance[],
  fitting = [isSameItem, paysTheSame],
): Map<Wanted, IncludedBalance> {
  const pairs = new Map<Wanted, IncludedBalance>();
  const free = new Set([...records].sort((a, b) => compareUse(b, a)));
  for (const fits of fitting) {
    for (const each of wanted) {
      if (pairs.has(each)) continue;
      const { item, isAddOn } = each.source;
      const kind = { ...itemOf(each.source), matches: item.matches };
      for (const record of free) {
        if (record.included.isAddOn !== isAddOn || !fits(record, kind)) continue;
        pairs.set(each, record);
        free.delete(record);
        break;
      }
    }
  }
  return pairs;
}

/**
 * Pairs sources with records of their pack item that others took over from, but whose windows still run: the one that took
 * over may have ended with a shorter window, and what was used of the longer one is not forgotten.
 */
export function pairOlder<Wanted extends { readonly source: Source }>(
  wanted: readonly Wanted[],
  records: readonly IncludedBalance[],
): Map<Wanted, IncludedBalance> {
  const older = records.filter(({ included: { state, windowEnd } }) =>
    state === "taken_over" && windowEnd !== null
  );
  return pair(wanted, older, [isSameItem]);
}

type CreditKind = ItemOfPack & Pick<CreditBalance, "matches">;

/** Whether two balances have the same unit and the same set of rules. */
function paysTheSame(a: CreditKind, b: CreditKind): boolean {
  return a.unit === b.unit && (a.matches === b.matches || ruleText(a.matches) === ruleText(b.matches));
}

/** The most that is gone of these records. */
export function mostGone(...records: readonly (IncludedBalance | undefined)[]): Amount {
  return records.reduce((most, row) => row === undefined ? most : larger(most, goneOf(row)), 0n);
}

function compareUse(a: IncludedBalance, b: IncludedBalance): number {
  const [goneA, goneB] = [goneOf(a), goneOf(b)];
  if (goneA !== goneB) return goneA < goneB ? -1 : 1;
  return a.id < b.id ? -1 : 1;
}

/** Sets how much of a record is gone and how much it had; the difference is an entry of its ledger. */
export function putUse(
  draft: Draft,
  { ids, now }: Context,
  row: IncludedBalance,
  { gone, initial }: { readonly gone: Amount; readonly initial: Amount },
): IncludedBalance {
  if (row.revokedAt !== null) {
    draft.adoptBalance(row);
    return row;
  }
  const [remaining, overage] = [larger(initial - gone, 0n), larger(gone - initial, 0n)];
  const next = { ...row, initial, remaining, overage };
  draft.adoptBalance(next);
  const delta = remaining - row.remaining;
  if (delta !== 0n) {
    const reason = delta > 0n ? "grant" : "admin_adjust";
    writeEntry(draft, { ids }, next, delta, { reason, eventId: null, reservationId: null, at: now });
  }
  if (delta > 0n) draft.recordMessage("credits.granted", now, creditsData(draft.user.id, next));
  return next;
}

/**
 * Lets a balance take over from a record: the record ends, and its open holds follow. They go on correcting the record
 * too, since it may be found again.
 */
export function takeOver(draft: Draft, from: IncludedBalance, toId: string, now: Millis): void {
  let moved = 0n;
  for (const hold of from.held === 0n ? [] : holdsToMove(draft)) {
    if (!hold.credits.some(({ balanceId }) => balanceId === from.id)) continue;
    const credits = hold.credits.map((line) => {
      if (line.balanceId !== from.id) return line;
      moved += line.taken;
      const { left = [], ...rest } = line;
      const behind = [...left, from.id].filter((id) => id !== toId);
      return { ...rest, balanceId: toId, left: behind };
    });
    draft.putReservation({ ...hold, credits });
  }
  draft.adoptBalance({ ...ended(from, "taken_over", now), held: from.held - moved });
  const to = draft.balance(toId) as CreditBalance;
  if (moved > 0n) draft.adoptBalance({ ...to, held: to.held + moved });
}
