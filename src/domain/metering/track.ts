// Track: count work that was done without a reservation. The decision is that of reserve with the quota as the limit, in
// place of the gate. The event is recorded in any case: at a limit as `blocked`, with the refusal `limit_reached`; without
// a matching group or a subscription as `unmatched` or `no_subscription`, with an answer.

import { knownRuns, moveRuns, type RefusingRun, runOfCall, runsCount, runsOf } from "../accounts/run.ts";
import type { Metadata } from "../values/match.ts";
import { type Amount, decimalOf, numberOf } from "../values/amount.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import { type Refusal, refusal } from "../values/refusal.ts";
import { answered, refused, type Result } from "../state/result.ts";
import { type CounterReading, shownCount } from "../state/counter.ts";
import { type Charge, isCounted, type MatchStatus } from "../state/event.ts";
import type { Unit } from "../catalog/plan.ts";
import { type Amounts, type CallSize, knownCents, priceRowOf, trackAmounts } from "../pricing/amounts.ts";
import { canRate, type CreditCost, creditCostOf, eventCredits, rateOf } from "../pricing/credits.ts";
import { type Cost, costOf, eventModel, type Warning, warningsOf } from "../pricing/cost.ts";
import type { Usage } from "../pricing/usage.ts";
import { eventStep, type Run } from "../state/run.ts";
import { eventQuantity, recordEvent } from "./record_event.ts";
import { refusedCall } from "../state/refused_call.ts";
import { type Assessment, countsUnit, type GroupReading } from "./availability.ts";
import { assessPath, levelCharges, partsIn, type PathAssessment, takesPart } from "./levels.ts";
import { type FullShare, readShare, sharesOf, takeShares } from "../accounts/shares.ts";
import { chargeEvent } from "./settle_charge.ts";
import { type Retry, retryOf } from "./guards.ts";
import { begun, counterIn } from "../plans/windows.ts";
import type { Millis } from "../values/period.ts";
import { countsCredits } from "./unrated.ts";
import { cutText } from "../values/texts.ts";

/** The input of `POST /v1/track`. */
export interface TrackInput {
  readonly event: string;
  readonly metadata: Metadata | null;
  readonly size: CallSize;
  /** The event's cost; null derives it from the model's price. */
  readonly costCents: Amount | null;
  /** What the model server reported, in place of `inputTokens`, `inputCostCents` and `costCents`. */
  readonly usage?: Usage | null;
  /** What it costs in credits, in place of the rate; only of recorded work. Absent or null for the rate. */
  readonly credits?: Amount | null;
  /** Prompt and response are uncut, and kept only if texts are logged. */
  readonly prompt?: string | null;
  readonly response?: string | null;
  /** The run in which the call counts; absent or null for none. */
  readonly runId?: string | null;
}

export interface TrackAnswer {
  readonly eventId: string;
  readonly matchStatus: Exclude<MatchStatus, "blocked" | "released">;
  /** The counters of the matched groups, after the event. */
  readonly counters: readonly CounterReading[];
  /** The users above with those counters, nearest first; null for a user without a parent. */
  readonly levels:
    | readonly { readonly userId: string; readonly counters: readonly CounterReading[] }[]
    | null;
  /** The run of the call and those around it after the event, innermost first; empty for a call without one. */
  readonly runs: readonly Run[];
  readonly cost: Cost;
  /** What the event costs in credits; null where the catalog has no rates. */
  readonly credits: CreditCost | null;
  readonly warnings: readonly Warning[];
}

/** Decides a track: records the event, and counts it if the plan or credits cover it. */
export function track(draft: Draft, input: TrackInput, context: Context): Result<TrackAnswer> {
  const { event, metadata, size, usage = null } = input;
  const found = runsOf(draft, input.runId, context.now);
  if (!found.ok) return found;
  const runs = found.answer;
  const priceRow = priceRowOf(context.catalog, event, metadata);
  const rate = rateOf(context.catalog, event, metadata);
  const priced = trackAmounts(size, { costCents: input.costCents, usage }, { row: priceRow, rate });
  const amounts = input.credits == null ? priced : { ...priced, credits: input.credits };
  const isRated = input.credits != null || canRate(rate, knownCents(size, priceRow, amounts.cents));
  const namesCents = input.costCents !== null || size.inputCostCents !== null;
  const isUnpriced = priceRow === null && !namesCents;
  const call = { event, metadata, amounts, isUnpriced, row: priceRow, rate, isRated };
  const assessment = assessPath(draft, context, call, "quota", null, runs);
  const matchStatus = statusOf(assessment, draft.user.id);
  const costCents = input.costCents ?? amounts.cents;
  const eventId = context.ids.next("event");
  const isTaken = assessment.reasons.length === 0;
  const charge = isTaken ? chargeOf(assessment) : NO_CHARGE;
  const charges = isTaken ? partsIn(assessment) : [];
  chargeEvent(draft, context, charge, { eventId, costCents });
  for (const level of charges) chargeEvent(level.draft, context, level.assessment, { eventId, costCents });
  const runId = runs[0]?.id;
  const countsInRun = runId !== undefined && isCounted(matchStatus);
  if (countsInRun) moveRuns(draft, runId, eventStep(event, amounts));
  const shares = sharesOf(
    charges.map(({ draft: account, assessment: { lines } }) => ({ account, lines })),
    amounts,
  );
  takeShares(draft, shares.shares, costCents);
  const { quantity, count } = size;
  const perUnit = priceRow?.amountMode === "per_unit";
  recordEvent(
    draft,
    {
      id: eventId,
      userKey: draft.user.key,
      realm: draft.user.realm,
      type: event,
      quantity: eventQuantity({ perUnit, quantity, count }, amounts.seconds),
      costCents,
      ...eventCredits(amounts.credits, isRated),
      ...eventModel(priceRow, metadata, namesCents),
      matchStatus,
      createdAt: context.now,
      metadata: metadata?.text ?? null,
      reservationId: null,
      reason: null,
      errorCode: null,
      work: { size, costCents: input.costCents, usage, credits: null, heldForMs: null, held: null },
      ...charge,
      ...levelCharges(charges.map((level) => ({
        userKey: level.draft.user.key,
        ...chargeOf(level.assessment),
      }))),
      ...countsInRun ? { runId, runAmounts: amounts } : runOfCall(runId),
      ...shares,
    },
    { prompt: cutText(input.prompt), response: cutText(input.response) },
    context,
  );
  if (matchStatus === "blocked") {
    draft.refusedCall = refusedCall(event, assessment, context.now);
    const retry = retryOf(draft, assessment, amounts, context.now);
    return refused(blocked(eventId, assessment, amounts, retry));
  }
  if (isCounted(matchStatus)) draft.operations += 1;
  const path = [assessment, ...assessment.levels.map((level) => level.assessment)];
  const countsCents = path.some(({ quotas }) => countsUnit(quotas, "cents")) ||
    runsCount(runs, event, "cents");
  const lacksRate = !isRated && countsCredits(draft, context, call, assessment);
  return answered({
    eventId,
    matchStatus,
    counters: readCounters(draft, assessment, context.now),
    levels: levelsOf(draft, assessment, context.now),
    runs: knownRuns(draft, runId),
    cost: costOf(costCents, priceRow),
    credits: creditCostOf(context.catalog, call),
    warnings: warningsOf(priceRow, { countsCents, namesCents, usage, lacksRate }),
  });
}

const NO_CHARGE: Charge = { lines: [], credits: [], uncovered: {} };

function chargeOf({ lines, credits }: Assessment): Charge {
  return { lines, credits, uncovered: NO_CHARGE.uncovered };
}

/** The users above with their counters after the event; null for a user without a parent. */
function levelsOf(draft: Draft, { levels }: PathAssessment, now: Millis): TrackAnswer["levels"] {
  if (levels.length === 0) return null;
  return levels.map(({ draft: level, assessment }) => ({
    userId: level.user.id,
    counters: readCounters(level, assessment, now).map((reading, place) => ({
      ...reading,
      member: readShare(draft, level, assessment.groups[place] as GroupReading),
    })),
  }));
}

/**
 * Refuses a blocked event, with the groups that have too little left; amounts as on the wire. With a parent or a run its
 * code is the first reason, and the details say who refuses.
 */
function blocked(eventId: string, assessment: PathAssessment, needs: Amounts, retry: Retry): Refusal {
  const { reasons, refusedBy, levels, runs, blocking } = assessment;
  const isUnpriced = reasons.includes("unpriced_model");
  const details = { eventId, groups: blocking.map((reading) => blockedGroup(reading)), ...retry };
  const message = isUnpriced ? unpricedText(assessment) : blockedText(assessment, needs);
  const [code = "limit_reached"] = reasons;
  if (levels.length === 0 && runs.length === 0) {
    const hasMore = isUnpriced || reasons.length > 1;
    return refusal(isUnpriced ? "limit_reached" : code, message, hasMore ? { ...details, reasons } : details);
  }
  const above = levels.map(({ draft, assessment: { blocking: groups }, fullShares }) => ({
    userId: draft.user.id,
    groups: groups.map((reading) => blockedGroup(reading, fullShares)),
  }));
  return refusal(code, message, {
    ...details,
    reasons,
    refusedBy,
    ...levels.length === 0 ? {} : { levels: above },
    ...runs.length === 0 ? {} : { runs: runs.map(blockedRun) },
  });
}

/** A run as the details of a refusal have it; amounts as on the wire. */
function blockedRun({ id, limits }: Run) {
  return {
    runId: id,
    limits: limits.map(({ id: limitId, unit, event, quota, count, held }) => ({
      limitId,
      unit,
      event,
      quota: numberOf(quota),
      count: numberOf(count),
      held: numberOf(held),
    })),
  };
}

/** A group without room, with the caller's share if that has none. */
function blockedGroup(
  { group, quota, counter, overageMax }: GroupReading,
  full: readonly FullShare[] = NONE_FULL,
) {
  const share = full.find((each) => each.group === group);
  return {
    groupId: group.id,
    unit: group.unit,
    quota: numberOf(quota),
    current: numberOf(shownCount(counter)),
    ...overageMax === undefined ? {} : { overage: numberOf(counter.overage ?? 0n) },
    ...share === undefined ? {} : { member: { count: numberOf(share.count), quota: numberOf(share.quota) } },
  };
}

const NONE_FULL: readonly FullShare[] = [];

/** Names what refuses: limits and shares in the order of the path, else runs, else accounts with an ended plan. */
function blockedText({ refusedBy, levels, refusingRuns, blocking }: PathAssessment, needs: Amounts): string {
  const limits = [
    ...blocking.map((reading) => limitText(reading, "", needs)),
    ...levels.flatMap(({ draft: { user }, limited, fullShares }) => [
      ...limited.map((reading) => limitText(reading, ` of "${user.id}"`, needs)),
      ...fullShares.map((share) => shareText(share, ` of "${user.id}"`, needs)),
    ]),
  ];
  if (limits.length > 0) return `Limit ${limits.join(", limit ")}`;
  if (refusingRuns.length > 0) return runsText(refusingRuns, needs);
  return `The plan of ${refusedBy.map((id) => `"${id}"`).join(", ")} has ended`;
}

/** Asks for a price, and names the account or run with the limit in cents, if it is not the plan of the call's user. */
function unpricedText({ levels, refusingRuns }: PathAssessment): string {
  const level = levels.find(({ assessment }) => assessment.reasons.includes("unpriced_model"));
  const refusing = refusingRuns.find(({ reason }) => reason === "unpriced_model");
  const by = level !== undefined
    ? `"${level.draft.user.id}"`
    : refusing !== undefined
    ? runName(refusing.run)
    : "the plan";
  return `metadata.model: must name a model with a price, because a limit of ${by} counts cents`;
}

/** `"Images a month" of "acme" reached (98 of 100 used, 5 needed)` */
function limitText({ group, quota, counter, overageMax }: GroupReading, by: string, needs: Amounts): string {
  // Without a most of overage no group is reached.
  const sold = overageMax == null
    ? ""
    : `, with ${decimalOf(counter.overage ?? 0n)} of ${decimalOf(overageMax)} sold past it`;
  return `"${group.label}"${by} ${reachedText(group.unit, shownCount(counter), quota, needs, sold)}`;
}

/** `"Images a month" of each member of "acme" reached (98 of 100 used, 5 needed)` */
function shareText({ group, count, quota }: FullShare, by: string, needs: Amounts): string {
  return `"${group.label}" of each member${by} ${reachedText(group.unit, count, quota, needs)}`;
}

function reachedText(unit: Unit, count: Amount, quota: Amount, needs: Amounts, sold = ""): string {
  return `reached (${decimalOf(count)} of ${decimalOf(quota)} used${sold}, ${decimalOf(needs[unit])} needed)`;
}

/** Names the runs: `Limit of the run "Nightly report" reached (8 of 10 count used, 5 needed)`. */
function runsText(refusing: readonly RefusingRun[], needs: Amounts): string {
  const texts = refusing.flatMap(({ run, limits }) =>
    limits.map(({ unit, quota, count }) =>
      `of ${runName(run)} reached (${decimalOf(count)} of ${decimalOf(quota)} ${unit} used, ${
        decimalOf(needs[unit])
      } needed)`
    )
  );
  return `Limit ${texts.join(", limit ")}`;
}

function runName({ id, name }: Run): string {
  return `the run "${name ?? id}"`;
}

function statusOf(
  { matched, quotas, reasons, levels, refusedBy }: PathAssessment,
  userId: string,
): Exclude<MatchStatus, "released"> {
  const isRefusedAbove = refusedBy.some((id) => id !== userId);
  if (isRefusedAbove) return "blocked";
  if (quotas.length > 0 || levels.some(({ assessment }) => takesPart(assessment))) {
    return reasons.length === 0 ? "matched" : "blocked";
  }
  if (matched) return reasons.length === 0 ? "matched_credits_only" : "blocked";
  return reasons.includes("no_subscription") ? "no_subscription" : "unmatched";
}

function readCounters(draft: Draft, { groups, active, reasons }: Assessment, now: Millis): CounterReading[] {
  if (active === null) return [];
  return groups.map(({ gate: _, ...reading }) => {
    const { group, window: before } = reading;
    // Where the call counted, a session has begun.
    const window = reasons.length === 0 ? begun(before) : before;
    return { ...reading, window, counter: counterIn(draft, active.plan.id, group.id, window, now) };
  });
}
