// Reserve: hold quota before the work. All or nothing: every limit group that covers the event must have enough left, and
// credits pay what the plan lacks. "Not allowed" is an answer, not an error, and changes nothing. An event that no group
// covers, or a user without a subscription, is not allowed unless credits pay for all of it.

import { knownRuns, moveRuns, runOfCall, runsOf } from "../accounts/run.ts";
import type { Millis } from "../values/period.ts";
import { type Metadata, patternCovers } from "../values/match.ts";
import type { Context } from "../state/context.ts";
import { offersOf, type PackOffer, takeCredits } from "../credits/wallet.ts";
import type { Draft } from "../state/draft.ts";
import { invalidField, type Refusal } from "../values/refusal.ts";
import { answered, refused, type Result } from "../state/result.ts";
import { isOfGuard } from "../values/period.ts";
import { counted } from "../state/counter.ts";
import { begun, counterIn } from "../plans/windows.ts";
import { type Retry, retryOf } from "./guards.ts";
import { type CallSize, heldUsage, knownCents, priceRowOf, reserveAmounts } from "../pricing/amounts.ts";
import { canRate, type CreditCost, creditCostOf, rateOf, tokenCost } from "../pricing/credits.ts";
import type { Unit } from "../catalog/plan.ts";
import type { PriceRow } from "../catalog/price_row.ts";
import { type Amount, ONE } from "../values/amount.ts";
import { mayLog } from "./prompt_log.ts";
import { refusedCall, type ReserveReason } from "../state/refused_call.ts";
import { holdStep, type Run } from "../state/run.ts";
import { type HeldRate, type Line, NO_PRICE_ROW, type Reservation } from "../state/reservation.ts";
import { noteSold } from "./overage.ts";
import type { Assessment, GroupReading, SizedCall } from "./availability.ts";
import { assessPath, type Level, partsIn, type PathAssessment } from "./levels.ts";
import { sharesOf, takeShares } from "../accounts/shares.ts";
import { countsCredits } from "./unrated.ts";
import { cutText } from "../values/texts.ts";

/** The input of `POST /v1/reserve`. */
export interface ReserveInput {
  readonly event: string;
  readonly metadata: Metadata | null;
  readonly size: CallSize;
  /** How long the hold lasts; null for the catalog's default. */
  readonly ttlMs: number | null;
  /** Uncut; kept until the settlement if texts are logged. */
  readonly prompt?: string | null;
  /**
   * The model that will do the work, if it is known from the call itself. It alone decides the price, regardless of event
   * and metadata, and it must have a price if the plan counts cents of the event.
   */
  readonly model?: string;
  /** The run in which the call counts; absent or null for none. */
  readonly runId?: string | null;
  /** How the call may be made smaller; absent or null for a call of one size. */
  readonly fit?: Fit | null;
}

/** How a call may be made smaller until it is allowed. */
export interface Fit {
  /** The fewest tokens of output that are of use: at least 1 and at most the call's `maxOutputTokens`. */
  readonly minOutputTokens: Amount;
  /** Models to try after that of the call, in order of preference. */
  readonly models: readonly string[];
}

/** A call without a hold. */
export type CanUseInput = Pick<ReserveInput, "event" | "metadata" | "size" | "runId">;

/** The answer of a reserve. */
export interface ReserveAnswer extends Retry {
  readonly allowed: boolean;
  /** Whether a limit group covers the event, or credits pay for it alone. */
  readonly matched: boolean;
  /** Why the call is not allowed; empty if it is. */
  readonly reasons: readonly ReserveReason[];
  /** The matched groups, after the hold if there is one. */
  readonly groups: readonly GroupReading[];
  /** Those of `groups` without room for a refused call. */
  readonly blocking: readonly GroupReading[];
  /** The users above, nearest first; null for a user without a parent. */
  readonly levels: readonly LevelReading[] | null;
  /** The ids of the users that refuse, in the order of the path, then those of runs, innermost first. */
  readonly refusedBy: readonly string[];
  /** The run of the call and those around it, innermost first; empty for a call without one. */
  readonly runs: readonly Run[];
  readonly hold: { readonly reservationId: string; readonly expiresAt: Millis } | null;
  readonly warnings: readonly HoldWarning[];
  /** What the call is held at in credits; null where the catalog has no rates. */
  readonly credits: CreditCost | null;
  /** The size to which the call was reduced; absent for a call without `fit`, or a refused one. */
  readonly fitted?: { readonly model: string | null; readonly maxOutputTokens: Amount };
}

/** A user above, with the limit groups that cover the call, as answers show it. */
export interface LevelReading<Group = GroupReading> {
  readonly userId: string;
  readonly groups: readonly Group[];
  readonly blocking: readonly GroupReading[];
}

/** A warning: no limit or balance counts the quantity, or credits are counted and no rate gives their number. */
type HoldWarning = "quantity_not_counted" | "unrated_event";

/** A matched group with the credits of its unit, by pack, in consumption order. */
export interface OfferedGroup extends GroupReading {
  readonly offers: readonly PackOffer[];
}

export interface CanUseAnswer extends Omit<ReserveAnswer, "hold" | "groups" | "blocking" | "levels"> {
  readonly groups: readonly OfferedGroup[];
  readonly levels: readonly LevelReading<OfferedGroup>[] | null;
}

/** Decides a reserve: a hold with an id, or the reasons against it. */
export function reserve(draft: Draft, input: ReserveInput, context: Context): Result<ReserveAnswer> {
  const found = runsOf(draft, input.runId, context.now);
  if (!found.ok) return found;
  const runs = found.answer;
  const call = sizedReserve(input, context);
  const { row: priceRow } = call;
  const assessment = assessPath(draft, context, call, "gate", null, runs);
  const warnings = holdWarnings(draft, context, input, call, assessment);
  const credits = creditCostOf(context.catalog, call);
  if (call.mustBePriced && assessment.reasons[0] === "unpriced_model") return refused(unpriced());
  if (assessment.reasons.length > 0) {
    draft.refusedCall = refusedCall(input.event, assessment, context.now);
    return answered({
      ...readingOf(assessment),
      blocking: assessment.blocking,
      levels: levelsOf(assessment, ({ groups }) => groups),
      hold: null,
      warnings,
      credits,
      ...retryOf(draft, assessment, call.amounts, context.now),
    });
  }

  const above = partsIn(assessment);
  const own: Reservation = {
    id: context.ids.nextOwned("reservation", draft.user.key),
    userKey: draft.user.key,
    status: "held",
    event: input.event,
    metadata: input.metadata?.text ?? null,
    quantity: input.size.quantity,
    count: input.size.count,
    amounts: call.amounts,
    perUnit: priceRow?.amountMode === "per_unit",
    priceRow: priceRow?.number ?? NO_PRICE_ROW,
    namesCents: input.size.inputCostCents !== null,
    lines: assessment.lines,
    credits: assessment.credits,
    prompt: mayLog(draft, context) ? cutText(input.prompt) : null,
    createdAt: context.now,
    expiresAt: context.now + (input.ttlMs ?? context.catalog.reservationTtlMs),
    settledAt: null,
  };
  const parts = above.length === 0 ? null : {
    parts: above.map((level) => holdPart(level, own, context)),
    ...sharesOf(above.map(({ draft: account, assessment: { lines } }) => ({ account, lines })), call.amounts),
  };
  const rate = heldRate(input.size, call);
  const row = parts === null && runs.length === 0 && rate === NO_RATE
    ? own
    : { ...own, ...parts, ...runOfCall(runs[0]?.id), ...rate };
  takeShares(draft, row.shares);
  const groups = hold(draft, context, row, assessment, row.id);
  if (row.runId !== undefined) moveRuns(draft, row.runId, holdStep(input.event, call.amounts));
  return answered({
    allowed: true,
    matched: true,
    reasons: [],
    refusedBy: [],
    runs: knownRuns(draft, row.runId),
    groups,
    levels: levelsOf(
      assessment,
      ({ groups }, level) => groups.map((group) => after(level, group, context.now)),
    ),
    blocking: [],
    hold: { reservationId: row.id, expiresAt: row.expiresAt },
    warnings,
    credits,
  });
}

/** Adds the amounts by unit to a reserve. */
export function sizedReserve(input: ReserveInput, context: Context): SizedCall {
  const { model } = input;
  const priceRow = model === undefined
    ? priceRowOf(context.catalog, input.event, input.metadata)
    : context.catalog.models.get(model) ?? null;
  return { ...sized(input, context, priceRow), mustBePriced: model !== undefined };
}

const NO_RATE: { readonly rate?: HeldRate } = {};

/** The rate that a hold keeps; nothing for a call without one. */
function heldRate(size: CallSize, { rate }: SizedCall): typeof NO_RATE {
  if (rate === null) return NO_RATE;
  return { rate: { number: rate.number, tokens: tokenCost(rate, heldUsage(size)) } };
}

/** Holds what a call takes from one user; returns the groups after it. */
function hold(
  draft: Draft,
  context: Context,
  row: Reservation,
  { groups }: Assessment,
  reservationId: string,
): GroupReading[] {
  const movement = { reason: "reservation_held", eventId: null, reservationId, at: context.now } as const;
  takeCredits(draft, context, row.credits, movement);
  const taken = groups.map((reading, index) => take(draft, reading, row.lines[index] as Line));
  draft.putReservation(row);
  return taken;
}

/** Holds the part of a user above; returns its id. The caller's texts stay with the caller. */
function holdPart({ draft, assessment }: Level, own: Reservation, context: Context): string {
  const { key: userKey } = draft.user;
  const { lines, credits } = assessment;
  const id = context.ids.nextOwned("reservation", userKey);
  const texts = { metadata: null, prompt: null };
  hold(draft, context, { ...own, ...texts, id, userKey, lines, credits, partOf: own.id }, assessment, own.id);
  return id;
}

/** The users above as an answer shows them; null for a user without a parent. */
function levelsOf<Group extends GroupReading>(
  { levels }: PathAssessment,
  groupsOf: (assessment: Assessment, draft: Draft) => readonly Group[],
): readonly LevelReading<Group>[] | null {
  if (levels.length === 0) return null;
  return levels.map(({ draft, assessment }) => ({
    userId: draft.user.id,
    groups: groupsOf(assessment, draft),
    blocking: assessment.blocking,
  }));
}

/** A group with its counter after the call. */
function after(draft: Draft, reading: GroupReading, now: Millis): GroupReading {
  const { planId, groupId } = reading.counter;
  const window = begun(reading.window);
  return { ...reading, window, counter: counterIn(draft, planId, groupId, window, now) };
}

/** Decides what reserve would answer now, headroom included. Changes nothing. */
export function canUse(draft: Draft, input: CanUseInput, context: Context): Result<CanUseAnswer> {
  const { event, metadata } = input;
  const runs = runsOf(draft, input.runId, context.now);
  if (!runs.ok) return runs;
  const priceRow = priceRowOf(context.catalog, event, metadata);
  const call = sized(input, context, priceRow);
  const assessment = assessPath(draft, context, call, "gate", null, runs.answer);
  const purchase = { event, metadata, now: context.now };
  const offered = ({ groups }: Assessment, level: Draft): OfferedGroup[] =>
    groups.map((reading) => {
      const offers = isOfGuard(reading.window) ? [] : offersOf(level, purchase, reading.group.unit, context);
      return { ...reading, offers };
    });
  return answered({
    ...readingOf(assessment),
    groups: offered(assessment, draft),
    levels: levelsOf(assessment, offered),
    warnings: holdWarnings(draft, context, input, call, assessment),
    credits: creditCostOf(context.catalog, call),
    ...retryOf(draft, assessment, call.amounts, context.now),
  });
}

const NO_WARNINGS: readonly HoldWarning[] = [];
const NOT_COUNTED: readonly HoldWarning[] = ["quantity_not_counted"];

/** The warnings about the size of a call, and of an event without a rate where credits are counted. */
function holdWarnings(
  draft: Draft,
  context: Context,
  input: CanUseInput,
  call: SizedCall,
  assessment: PathAssessment,
): readonly HoldWarning[] {
  const warnings = sizeWarnings(input, assessment, call);
  if (call.isRated || !countsCredits(draft, context, call, assessment)) return warnings;
  return [...warnings, "unrated_event"];
}

/**
 * Warns of a quantity above 1 that nothing counts. It counts in seconds, and in cents or credits where the price or the
 * rate is by the second: in a matched group, in a run, or in a balance that pays alone. An event that is not covered has nothing to count in.
 */
function sizeWarnings(
  { event, size: { quantity, inputCostCents } }: CanUseInput,
  { matched, quotas, credits, levels, runs }: PathAssessment,
  { row, rate }: SizedCall,
): readonly HoldWarning[] {
  if (quantity === null || quantity <= ONE || !matched) return NO_WARNINGS;
  const isInCents = row?.amountMode === "per_unit" && inputCostCents === null;
  const isInCredits = rate?.document.perSecond !== undefined || (isInCents && rate?.perCent != null);
  const counts = (unit: Unit) =>
    unit === "seconds" || (unit === "cents" && isInCents) || (unit === "credits" && isInCredits);
  const matching = [...quotas, ...levels.flatMap(({ assessment }) => assessment.quotas)];
  const isCounted = matching.length > 0
    ? matching.some(({ group }) => counts(group.unit))
    : credits.some(({ unit }) => counts(unit));
  const isCountedInRun = runs.some(({ limits }) =>
    limits.some(({ unit, event: pattern }) => counts(unit) && patternCovers(pattern, event))
  );
  return isCounted || isCountedInRun ? NO_WARNINGS : NOT_COUNTED;
}

/** Adds the amounts by unit to a call, for reserve, can-use and explain. */
export function sized(
  { event, metadata, size }: CanUseInput,
  { catalog }: Context,
  row: PriceRow | null,
): SizedCall {
  const isUnpriced = row === null && size.inputCostCents === null;
  const rate = rateOf(catalog, event, metadata);
  const amounts = reserveAmounts(size, { row, rate });
  const isRated = canRate(rate, knownCents(size, row, amounts.cents));
  return { event, metadata, amounts, isUnpriced, row, rate, isRated };
}

function unpriced(): Refusal {
  return invalidField("model", "has no price in the catalog, and the plan counts cents of this event");
}

/** Counts a line; returns the group after it. */
function take(draft: Draft, reading: GroupReading, line: Line): GroupReading {
  const { window, overage = 0n } = line;
  const counter = counted(reading.counter, line.taken, overage);
  if (!isOfGuard(window)) draft.putCounter(counter);
  else if (window.kind === "rate") draft.putCounter(counted(draft.counter(line), line.taken));
  noteSold(draft, line, overage);
  return { ...reading, window, counter };
}

function readingOf(
  { matched, reasons, refusedBy, runs, groups }: PathAssessment,
): Omit<ReserveAnswer, "hold" | "warnings" | "credits" | "blocking" | "levels"> {
  return { allowed: reasons.length === 0, matched, reasons, refusedBy, runs, groups };
}
