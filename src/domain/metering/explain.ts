// Explain: the answer of can-use with everything that the assessment saw, for people who answer customers. It uses the
// assessment of reserve and can-use, with every group of the plan, and decides nothing of its own.

import { runsOf } from "../accounts/run.ts";
import { type Amount, smaller } from "../values/amount.ts";
import type { Context } from "../state/context.ts";
import { type CreditLine, packNameOf, statusOf } from "../state/credit.ts";
import type { Draft } from "../state/draft.ts";
import { openHolds } from "../state/open_holds.ts";
import { matchesAny, nearestDifferences } from "../values/match.ts";
import { type ActivePlan, named } from "../plans/entitlement.ts";
import type { LimitGroup } from "../catalog/plan.ts";
import { addedBy, ownQuotaOf } from "../state/subscription.ts";
import { creditCostOf, ratedParts } from "../pricing/credits.ts";
import { heldUsage, priceRowOf } from "../pricing/amounts.ts";
import { answered, type Result } from "../state/result.ts";
import { isOfGuard, type Millis, type Window } from "../values/period.ts";
import { retryOf } from "./guards.ts";
import { counterKey, type CounterRef } from "../state/counter.ts";
import { explainCall } from "./explain_text.ts";
import type {
  ExplainAnswer,
  ExplainedBalance,
  ExplainedGroup,
  ExplainedLevel,
  ExplainedRate,
  Fit,
  Meeting,
  QuotaParts,
} from "./explanation.ts";
import { type CanUseInput, sized } from "./reserve.ts";
import {
  type Assessment,
  type GroupReading,
  hasRoom,
  leftIn,
  type SeenGroup,
  type SizedCall,
} from "./availability.ts";
import { assessPath } from "./levels.ts";

/** Explains what can-use would answer now. Changes nothing. */
export function explain(draft: Draft, input: CanUseInput, context: Context): Result<ExplainAnswer> {
  const runs = runsOf(draft, input.runId, context.now);
  if (!runs.ok) return runs;
  const call = sized(input, context, priceRowOf(context.catalog, input.event, input.metadata));
  const seen: SeenGroup[] = [];
  const assessment = assessPath(draft, context, call, "gate", seen, runs.answer);
  const { active, matched, reasons, refusedBy } = assessment;
  const isRefused = reasons.length > 0;
  const own = explainLevel(draft, context, call, { assessment, isRefused }, seen);
  const levels = assessment.levels.map(({ draft: level, assessment: ofLevel, seen: seenThere, ...more }) => ({
    userId: level.user.id,
    assessment: ofLevel,
    limited: more.limited,
    fullShares: more.fullShares,
    ...explainLevel(level, context, call, { assessment: ofLevel, isRefused }, seenThere ?? []),
  }));
  const caller = {
    userId: draft.user.id,
    assessment: assessment.own,
    ...own,
    limited: assessment.own.blocking,
  };
  return answered({
    allowed: !isRefused,
    matched,
    reasons,
    refusedBy,
    runs: runs.answer,
    text: explainCall([caller, ...levels], assessment.refusingRuns, call.amounts),
    subscription: active === null ? null : named(active.row, context.catalog),
    ...own,
    levels: levels.length === 0 ? null : levels,
    rate: explainRate(input, call, context),
    ...retryOf(draft, assessment, call.amounts, context.now),
  });
}

/** Adds up what a call costs in credits; null for a catalog without rates. */
function explainRate({ size }: CanUseInput, call: SizedCall, { catalog }: Context): ExplainedRate | null {
  const cost = creditCostOf(catalog, call);
  if (cost === null) return null;
  const { rate, amounts, isRated } = call;
  const parts = rate === null || !isRated ? [] : ratedParts(rate, heldUsage(size), amounts.cents);
  return { ...cost, row: rate, parts };
}

/** Explains one user of the path. */
function explainLevel(
  draft: Draft,
  context: Context,
  call: SizedCall,
  { assessment, isRefused }: { readonly assessment: Assessment; readonly isRefused: boolean },
  seen: readonly SeenGroup[],
): Omit<ExplainedLevel, "userId"> {
  const { active } = assessment;
  const paid = isRefused ? NOTHING_PAID : assessment.credits;
  const held = heldByCounter(draft, context.now);
  const groups = active === null ? [] : seen.map((group) => explainGroup(group, active, call, held));
  return { groups, credits: explainCredits(draft, paid, call, context) };
}

function explainGroup(
  { covers, ...reading }: SeenGroup,
  active: ActivePlan,
  call: SizedCall,
  held: ReadonlyMap<string, Amount>,
): ExplainedGroup {
  const { group, counter } = reading;
  return {
    ...reading,
    isCustom: Object.hasOwn(active.row.customLimits, group.id),
    parts: quotaParts(active, group),
    held: smaller(held.get(heldKey(counter, reading.window)) ?? 0n, counter.count),
    meeting: covers ? { why: "matched" } : meetingOf(reading, call),
    fit: covers ? fitOf(reading, call.amounts[group.unit]) : null,
  };
}

/** The parts of a quota; null for a single seat without add-ons. */
function quotaParts({ row, addOns }: ActivePlan, group: LimitGroup): QuotaParts | null {
  const added = addOns.flatMap((addOn) => {
    const quota = addedBy(addOn, group);
    return quota === null ? [] : [{ row: addOn.row, quota }];
  });
  if (row.quantity === 1 && added.length === 0) return null;
  return { own: ownQuotaOf(row, group), quantity: row.quantity, addOns: added };
}

function meetingOf({ group }: GroupReading, { event, metadata }: SizedCall): Meeting {
  const differences = nearestDifferences(group.matches, event, metadata);
  return differences === null ? { why: "event" } : { why: "metadata", metadata: differences };
}

function fitOf(reading: GroupReading, need: Amount): Fit {
  const room = leftIn(reading, "gate");
  return { need, room, fits: hasRoom(reading, need, "gate") };
}

/**
 * Adds up what open reservations hold of each counter, by its key: their lines on it, and lines that left it by a change of
 * plan, which it still contains.
 */
function heldByCounter(draft: Draft, now: Millis): ReadonlyMap<string, Amount> {
  const held = new Map<string, Amount>();
  const add = (ref: CounterRef, taken: Amount) => {
    const { window } = ref;
    if (window.kind === "rate" && window.end !== null && window.end <= now) return;
    const key = heldKey(ref, window);
    held.set(key, (held.get(key) ?? 0n) + taken);
  };
  for (const { lines } of openHolds(draft)) {
    for (const line of lines) {
      add(line, line.taken);
      for (const ref of line.left ?? []) add(ref, line.taken - (line.overage ?? 0n));
    }
  }
  return held;
}

/** The key of what is held: a guard counts all of its windows together. */
function heldKey({ planId, groupId }: Pick<CounterRef, "planId" | "groupId">, window: Window): string {
  return counterKey(planId, groupId, isOfGuard(window) ? 0 : window.start);
}

const NOTHING_PAID: readonly CreditLine[] = [];

function explainCredits(
  draft: Draft,
  credits: readonly CreditLine[],
  { event, metadata }: SizedCall,
  { catalog, now }: Context,
): ExplainedBalance[] {
  const shown: ExplainedBalance[] = [];
  for (const row of draft.balancesInOrder()) {
    if (statusOf(row, now) !== "active") continue;
    const line = credits.find(({ balanceId }) => balanceId === row.id);
    shown.push({
      row,
      packName: packNameOf(catalog, row),
      matches: matchesAny(row.matches, event, metadata),
      wouldPay: line?.taken ?? 0n,
    });
  }
  return shown;
}
