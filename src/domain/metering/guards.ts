// When a call that guards alone refuse would pass: the earliest moment at which all guards of all levels let the same call
// through, unless another call or a settlement comes first. Slots of a rate leave it at their time, and open holds free what they
// took when they lapse.

import type { Amount } from "../values/amount.ts";
import type { Millis, Window } from "../values/period.ts";
import { isGuard } from "../catalog/plan.ts";
import { countingSlots, lastsOf } from "../plans/windows.ts";
import type { Amounts } from "../pricing/amounts.ts";
import type { Draft } from "../state/draft.ts";
import { endOf } from "../state/passing.ts";
import type { ReserveReason } from "../state/refused_call.ts";
import type { Assessment, GroupReading } from "./availability.ts";
import type { PathAssessment } from "./levels.ts";

const OF_GUARDS: ReadonlySet<ReserveReason> = new Set(["rate_limit_reached", "concurrency_limit_reached"]);

/** When a refused call may be tried again; absent where not guards alone refused it. */
export interface Retry {
  /** Null where the need is above what a guard ever allows. */
  readonly retryAfterMs?: number | null;
}

const NO_RETRY: Retry = {};

/** Finds when a call that guards alone refused would pass. */
export function retryOf(draft: Draft, path: PathAssessment, amounts: Amounts, now: Millis): Retry {
  const { reasons, own, levels } = path;
  if (reasons.length === 0 || !reasons.every((reason) => OF_GUARDS.has(reason))) return NO_RETRY;
  let passesAt = now;
  for (const level of [{ draft, assessment: own }, ...levels]) {
    for (const reading of level.assessment.blocking) {
      if (!isGuard(reading.group)) continue;
      const at = guardPassesAt(level.draft, level.assessment, reading, amounts[reading.group.unit], now);
      if (at === null) return { retryAfterMs: null };
      passesAt = Math.max(passesAt, at);
    }
  }
  return { retryAfterMs: passesAt - now };
}

/** An amount that a guard stops to count at a moment. */
interface Freed {
  readonly at: Millis;
  readonly amount: Amount;
}

function guardPassesAt(
  draft: Draft,
  { active }: Assessment,
  { group, quota, counter, window }: GroupReading,
  need: Amount,
  now: Millis,
): Millis | null {
  // A need of 0 passes below the quota, and amounts have a smallest step.
  const most = need === 0n ? quota - 1n : quota - need;
  if (active === null || most < 0n) return null;
  const freed = window.kind === "rate"
    ? freedOfRate(draft, active.plan.id, group.id, window, now)
    : freedOfHolds(draft, active.plan.id, group.id);
  freed.sort((a, b) => a.at - b.at);
  let { count } = counter;
  for (const { at, amount } of freed) {
    count -= amount;
    if (count <= most) return at;
  }
  return null;
}

function freedOfHolds(draft: Draft, planId: string, groupId: string): Freed[] {
  const freed: Freed[] = [];
  for (const { expiresAt, lines } of draft.guardedHolds()) {
    for (const line of lines) {
      if (line.planId !== planId || line.groupId !== groupId) continue;
      freed.push({ at: expiresAt, amount: line.taken });
    }
  }
  return freed;
}

/** Slots at their end, without what holds free before. */
function freedOfRate(draft: Draft, planId: string, groupId: string, slot: Window, now: Millis): Freed[] {
  const slots = new Map(
    countingSlots(draft, planId, groupId, slot, now).map((row) => [
      row.windowStart,
      { at: endOf(row, lastsOf(slot)), amount: row.count },
    ]),
  );
  const freed: Freed[] = [];
  for (const { expiresAt, lines } of draft.guardedHolds()) {
    for (const line of lines) {
      const held = slots.get(line.window.start);
      if (line.planId !== planId || line.groupId !== groupId || held === undefined) continue;
      if (line.window.kind !== "rate" || expiresAt >= held.at) continue;
      freed.push({ at: expiresAt, amount: line.taken });
      slots.set(line.window.start, { ...held, amount: held.amount - line.taken });
    }
  }
  return [...freed, ...slots.values()];
}
