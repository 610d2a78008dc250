// Overage: what a limit group sells past its quota, after the plan and credits. How much a call takes is decided where it is
// assessed and settled; here is how much may be sold, and what is reported of it.
//
// What events took is reported once for each user, group and UTC hour, after the hour has ended or, if that is earlier, the
// window. The first unit sold in a window is reported at once, by a hold too, and so is the turn that sells the most in force.

import { type Amount, larger, smaller } from "../values/amount.ts";
import type { LimitGroup } from "../catalog/plan.ts";
import type { Context } from "../state/context.ts";
import { type Counter, keyOf } from "../state/counter.ts";
import type { Draft, Sale } from "../state/draft.ts";
import { overageData, overageSoldData } from "../state/message.ts";
import {
  addedOverage,
  emptyOverage,
  hourOf,
  type OverageWindow,
  settledMore,
  SOLD,
} from "../state/overage.ts";
import type { Line } from "../state/reservation.ts";
import type { User } from "../state/user.ts";
import type { Millis } from "../values/period.ts";
import { activePlanOf } from "../plans/entitlement.ts";

/** The most overage of a group in force for a user, null for no limit; undefined for a group that sells none. */
export function overageMaxOf(
  { spendCaps }: Pick<User, "spendCaps">,
  group: LimitGroup,
): Amount | null | undefined {
  if (group.overage === null) return undefined;
  const { max } = group.overage;
  if (spendCaps === null || !Object.hasOwn(spendCaps, group.id)) return max;
  const cap = spendCaps[group.id] as Amount;
  return max === null ? cap : smaller(max, cap);
}

/** The part of an amount that may still be sold past a quota. */
export function sellable(max: Amount | null | undefined, { overage = 0n }: Counter, amount: Amount): Amount {
  if (max === undefined) return 0n;
  return max === null ? amount : smaller(amount, larger(max - overage, 0n));
}

/** Counts the settled overage of an event's lines. */
export function settleOverage(draft: Draft, lines: readonly Line[], now: Millis): void {
  for (const line of lines) {
    if (line.overage === undefined) continue;
    draft.putOverage(settledMore(draft.overage(line), line.overage, now));
  }
}

/** Notes by how much a line changed the overage of its counter. */
export function noteSold(draft: Draft, line: Line, more: Amount): void {
  if (more !== 0n) draft.noteSale({ line, more });
}

/**
 * Records the messages that a turn began to sell past a quota, and that it sold the most in force: each once for each user,
 * group and window.
 * Several lines of one turn may have sold in one counter.
 */
export function reportSales(draft: Draft, context: Context): void {
  if (draft.sales.length === 0) return;
  const active = activePlanOf(draft, context);
  for (const sales of Map.groupBy(draft.sales, ({ line }) => keyOf(line)).values()) {
    const more = sales.reduce((sum, sale) => sum + sale.more, 0n);
    const { line } = sales[0] as Sale;
    const group = active?.plan.id === line.planId
      ? active.plan.groups.find(({ id }) => id === line.groupId)
      : undefined;
    const max = group === undefined ? undefined : overageMaxOf(draft.user, group);
    if (max !== undefined && more > 0n) reportSale(draft, { line, more }, max, context);
  }
}

function reportSale(draft: Draft, { line, more }: Sale, max: Amount | null, context: Context): void {
  const { overage = 0n } = draft.counter(line);
  const row = draft.overage(line);
  const data = () => overageSoldData(draft.user.id, { row, max, overage });
  let { notified } = row;
  // What a merge brought into the counter began to be sold before.
  if ((notified & SOLD.started) === 0 && overage === more) {
    notified |= SOLD.started;
    draft.recordMessage("usage.overage_started", context.now, data());
  }
  if (max !== null && overage >= max && (notified & SOLD.capReached) === 0) {
    notified |= SOLD.capReached;
    draft.recordMessage("usage.cap_reached", context.now, data());
  }
  if (notified !== row.notified) draft.putOverage({ ...row, notified });
}

/** Records what was settled in a window and not reported yet, as of the time at which that is due. */
export function reportSettled(draft: Draft, row: OverageWindow, at: Millis): void {
  const { key: _key, total: _total, pending: amount, dueAt: _due, notified: _notified, ...ref } = row;
  const hour = hourOf(at - 1);
  draft.putOverage({ ...row, pending: 0n, dueAt: null });
  draft.appendRecord({ verb: "append", table: "overage_hours", row: { ...ref, hour, at, amount } });
  draft.recordMessage("usage.overage", at, overageData(draft.user.id, { row, hour, amount }));
}

/** Moves the windows of a user to the one that it becomes part of. What was reported keeps its user. */
export function mergeOverage(from: Draft, to: Draft): void {
  for (const row of [...from.overages()]) {
    const { groupId, unit, windowStart: start, windowEnd: end } = row;
    const ref = { groupId, unit, window: { start, end } };
    to.putOverage(addedOverage(to.overage(ref), row));
    from.putOverage(emptyOverage(from.user.key, ref));
  }
}
