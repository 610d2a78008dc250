// Commit: settle a reservation after the work. The final amount of a unit is the reserved one plus `extra`, or `actual`. It
// replaces the reserved amount in the window of the hold, past the quota if need be, since the work is done. A hold that
// had lapsed is charged again, once, as a new decision: what the plan has left, then balances that match now, then past
// the quota; but a counter that was reset meanwhile is left unchanged. `costCents` is analytics, except for models priced
// by the second, where it also counts toward cents.

import { allAmounts, knownRuns, moveRuns, runsCount } from "../accounts/run.ts";
import { type Amount, larger } from "../values/amount.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import { metadataOf } from "../values/match.ts";
import { type Unit, UNITS } from "../catalog/plan.ts";
import { isOfGuard, type Millis } from "../values/period.ts";
import { answered, refused, type Result } from "../state/result.ts";
import type { Charge, MeteringEvent } from "../state/event.ts";
import type { PriceRow } from "../catalog/price_row.ts";
import { canRate, type CreditCost, creditCostOf, creditsOf, eventCredits } from "../pricing/credits.ts";
import type { Pricing } from "../pricing/amounts.ts";
import { type Cost, costOf, eventModel, type Warning, warningsOf } from "../pricing/cost.ts";
import { finalAmounts, NO_USAGE, saysTokens, type Usage, workOfUsage } from "../pricing/usage.ts";
import type { Work } from "../state/work.ts";
import { eventStep, settleStep } from "../state/run.ts";
import { levelCharges } from "./levels.ts";
import { eventQuantity, recordEvent } from "./record_event.ts";
import {
  notPending,
  priceRowOfHold,
  rateOfHold,
  requireTexts,
  type Reservation,
  TRANSITIONS,
  unknownReservation,
} from "../state/reservation.ts";
import { settleShares } from "../accounts/shares.ts";
import { type ChargedCounters, type ChargedGroup, settleCharge, type Settlement } from "./settle_charge.ts";
import { callersReservation, type Part, partsOf } from "./settle_lines.ts";
import { hasCreditsFor } from "./unrated.ts";
import { cutText } from "../values/texts.ts";

/** Absolute or added final amounts of a commit, by unit; absent units keep what was reserved. */
export type Correction = Readonly<Partial<Record<Unit, Amount>>>;

/** The input of `POST /v1/commit`. */
export interface CommitInput {
  readonly reservationId: string;
  /** Added to what was reserved; a unit is in `extra` or in `actual`, not in both. */
  readonly extra: Correction;
  /** In place of what was reserved. */
  readonly actual: Correction;
  /** The event's whole cost; null keeps the cost that the reservation carries. */
  readonly costCents: Amount | null;
  /** What the model server reported; final like `actual`, and never together with it in one unit. */
  readonly usage?: Usage | null;
  /** Whether the usage is the gateway's estimate: the event's metadata then have `estimated: true`. */
  readonly isEstimate?: boolean;
  /** The model's answer, uncut; kept only if texts are logged. */
  readonly response?: string | null;
}

export interface CommitAnswer {
  readonly cost: Cost;
  /** What the event costs in credits; null where the catalog has no rates. */
  readonly credits: CreditCost | null;
  readonly warnings: readonly Warning[];
  readonly eventId: string;
  /** Whether the hold had lapsed and was charged again. */
  readonly recharged: boolean;
  /** The counters of the hold's window after the commit. */
  readonly groups: readonly ChargedGroup[];
  /** The users above, nearest first; null for a user without a parent. */
  readonly levels: readonly ChargedLevel[] | null;
}

/** A user above with its counters after the commit; empty where it was silent. */
interface ChargedLevel {
  readonly userId: string;
  readonly groups: readonly ChargedGroup[];
  readonly uncovered: Charge["uncovered"];
}

/** Decides a commit of a reservation of this user. */
export function commit(draft: Draft, input: CommitInput, context: Context): Result<CommitAnswer> {
  const row = callersReservation(draft, input.reservationId);
  if (row === undefined) return refused(unknownReservation());
  const transition = TRANSITIONS[row.status].commit;
  if (typeof transition === "string") return refused(notPending(row));

  requireTexts(row);
  const isRecharge = transition.effect === "recharge";
  const metadata = metadataOf(row.metadata);
  const priceRow = priceRowOfHold(context.catalog, row, metadata);
  const rate = rateOfHold(context.catalog, row);
  const final = withCredits(row, input, withUsage(row, input, priceRow), { row: priceRow, rate });
  const credits = finalAmount(row, "credits", final);
  const isRated = canRate(rate, centsOfRate(row, final, priceRow));
  const costCents = finalCost(row, final);
  const namesCents = row.namesCents || namesFinalCents(input);
  const eventId = context.ids.next("event");
  const settlement: Settlement = {
    status: transition.next,
    isRecharge,
    metadata,
    costCents,
    eventId,
    finalOf: (unit) => finalAmount(row, unit, final),
  };
  const own: ChargedCounters = new Map();
  const charge = settleCharge(draft, row, settlement, context, own);
  const parts = settleParts(draft, row, own, settlement, context);
  const inRun = countInRun(draft, row, settlement);
  const shares = settleShares(draft, row.shares, settlement);
  const isMatched = isOfQuota(row) || parts.some((part) => isOfQuota(part.row)) ||
    parts.length < (row.parts?.length ?? 0);
  recordEvent(
    draft,
    {
      id: eventId,
      userKey: row.userKey,
      realm: draft.user.realm,
      type: row.event,
      quantity: eventQuantity(row, finalAmount(row, "seconds", final)),
      costCents,
      ...eventCredits(credits, isRated),
      ...eventModel(priceRow, metadata, namesCents),
      matchStatus: isMatched ? "matched" : "matched_credits_only",
      createdAt: context.now,
      metadata: input.isEstimate === true ? estimated(row.metadata) : row.metadata,
      reservationId: row.id,
      reason: null,
      errorCode: null,
      work: workOf(row, input, { now: context.now, costCents, isRated, finalOf: settlement.finalOf }),
      ...charge,
      ...levelCharges(parts.map((part) => ({ userKey: part.draft.user.key, ...part.charge }))),
      ...inRun,
      ...shares,
    },
    { prompt: keptPrompt(row, context), response: cutText(input.response) },
    context,
  );
  draft.operations += 1;
  const runs = knownRuns(draft, row.runId);
  const holds = [row, ...parts.map((part) => part.row)];
  const countsCents = holdIn(holds, "cents") || runsCount(runs, row.event, "cents");
  const call = { event: row.event, metadata };
  const lacksRate = !isRated && !corrects(input, "credits") && (holdIn(holds, "credits") ||
    hasCreditsFor(draft, context, call) ||
    parts.some((part) => isOfQuota(part.row) && hasCreditsFor(part.draft, context, call)));
  const warnings = warningsOf(priceRow, { countsCents, namesCents, usage: input.usage ?? null, lacksRate });
  const levels = levelsOf(draft, parts);
  const groups = [...own.values()];
  const cost = costOf(costCents, priceRow);
  const shown = creditCostOf(context.catalog, { amounts: { credits }, isRated });
  return answered({ eventId, recharged: isRecharge, groups, levels, cost, credits: shown, warnings });
}

/** Whether a quota group of one of the holds counts a unit. */
function holdIn(holds: readonly Reservation[], unit: Unit): boolean {
  return holds.some(({ lines }) => lines.some((line) => line.unit === unit && !isOfGuard(line.window)));
}

/** Whether a hold took from a quota group, and not from guards alone. */
function isOfQuota({ lines }: Reservation): boolean {
  return lines.some(({ window }) => !isOfGuard(window));
}

/** Counts a commit in the run of its reservation; returns what the event keeps of it. */
function countInRun(
  draft: Draft,
  { runId, event, amounts }: Reservation,
  { isRecharge, finalOf }: Settlement,
): Pick<MeteringEvent, "runId" | "runAmounts"> {
  if (runId === undefined) return NOT_IN_RUN;
  const runAmounts = allAmounts(finalOf);
  moveRuns(draft, runId, isRecharge ? eventStep(event, runAmounts) : settleStep(event, amounts, runAmounts));
  return { runId, runAmounts };
}

const NOT_IN_RUN = {};

/** A part of the hold, settled. */
interface SettledPart extends Part {
  /** All counters charged at its user, also by other parts. */
  readonly charged: ChargedCounters;
  readonly charge: Charge;
}

const NO_PARTS: readonly SettledPart[] = [];

/**
 * Settles what the hold took from users above.
 *
 * @param own the counters charged at the caller, who may be one of these users since a merge
 */
function settleParts(
  draft: Draft,
  row: Reservation,
  own: ChargedCounters,
  settlement: Settlement,
  context: Context,
): readonly SettledPart[] {
  if (row.parts === undefined) return NO_PARTS;
  const byUser = new Map([[draft, own]]);
  return partsOf(draft, row).map((part) => {
    const charged = byUser.get(part.draft) ?? new Map();
    byUser.set(part.draft, charged);
    return { ...part, charged, charge: settleCharge(part.draft, part.row, settlement, context, charged) };
  });
}

/** The users above the caller, then others at which the call was held, as the answer shows them. */
function levelsOf(
  { user, above }: Draft,
  parts: readonly SettledPart[],
): readonly ChargedLevel[] | null {
  if (user.parentKey === null) return null;
  return above.map((level) => {
    const ofLevel = parts.filter((part) => part.draft === level);
    const groups = [...ofLevel[0]?.charged.values() ?? []];
    return { userId: level.user.id, groups, uncovered: sumOf(ofLevel.map(({ charge }) => charge.uncovered)) };
  });
}

function sumOf(parts: readonly Charge["uncovered"][]): Charge["uncovered"] {
  const sums: Partial<Record<Unit, Amount>> = {};
  for (const [unit, amount] of parts.flatMap((part) => Object.entries(part) as [Unit, Amount][])) {
    sums[unit] = (sums[unit] ?? 0n) + amount;
  }
  return sums;
}

/**
 * Adds the final amounts of the reported usage to `actual`. Without a usage the final count multiplies the price of a
 * call, unless the caller named cents.
 */
function withUsage(row: Reservation, input: CommitInput, priceRow: PriceRow | null): CommitInput {
  const isCounted = priceRow?.amountMode === "per_call" && !row.namesCents && !corrects(input, "cents");
  const usage = input.usage ?? (isCounted ? NO_USAGE : null);
  if (usage === null) return input;
  const amounts = { seconds: row.amounts.seconds, count: finalAmount(row, "count", input) };
  return { ...input, actual: { ...input.actual, ...finalAmounts(usage, priceRow, amounts) } };
}

/**
 * Adds the final credits to `actual`, unless the caller corrects them: those of the reported usage, or of corrected cents
 * where the rate counts cents. Nothing else changes the credits of a hold.
 *
 * @param final the input with the amounts of the usage
 */
function withCredits(
  row: Reservation,
  input: CommitInput,
  final: CommitInput,
  { row: priceRow, rate }: Pricing,
): CommitInput {
  const { usage = null } = input;
  const isRecounted = usage !== null || (rate?.perCent != null && corrects(input, "cents"));
  if (rate === null || !isRecounted || corrects(input, "credits")) return final;
  const { seconds, count } = row.amounts;
  const work = usage === null
    ? { ...NO_USAGE, seconds, calls: count }
    : workOfUsage(usage, { seconds, count: finalAmount(row, "count", input) });
  const credits = creditsOf(rate, work, centsOfRate(row, final, priceRow), row.rate?.tokens);
  return { ...final, actual: { ...final.actual, credits } };
}

/** The final cents that a rate counts, whatever `costCents` says; null where no source has them. */
function centsOfRate(row: Reservation, input: CommitInput, priceRow: PriceRow | null): Amount | null {
  if (priceRow === null && !row.namesCents && !corrects(input, "cents")) return null;
  return correctedAmount(row, "cents", input);
}

/** The work of a commit: its final amounts, priced anew only by a reported usage. */
function workOf(
  row: Reservation,
  { usage = null, costCents: named }: CommitInput,
  { now, costCents, isRated, finalOf }: {
    readonly now: Millis;
    readonly costCents: Amount;
    readonly isRated: boolean;
    readonly finalOf: (unit: Unit) => Amount;
  },
): Work {
  const [cents, credits] = [finalOf("cents"), finalOf("credits")];
  const inputTokens = finalOf("tokens");
  return {
    size: { quantity: finalOf("seconds"), count: finalOf("count"), inputTokens, inputCostCents: cents },
    costCents: costCents === cents ? null : costCents,
    // Where the caller's cost counts as cents, the usage must not price them.
    usage: row.perUnit && named !== null ? null : usage,
    credits: (isRated || credits > 0n) && (usage === null || !saysTokens(usage)) ? credits : null,
    heldForMs: now - row.createdAt,
    held: UNITS.some((unit) => finalOf(unit) > row.amounts[unit]) ? row.amounts : null,
  };
}

function estimated(metadata: string | null): string {
  return JSON.stringify({ ...metadataOf(metadata)?.members, estimated: true });
}

/** Whether the caller named the cents. */
function namesFinalCents(input: CommitInput): boolean {
  return input.costCents !== null || corrects(input, "cents");
}

function corrects({ extra, actual }: CommitInput, unit: Unit): boolean {
  return extra[unit] !== undefined || actual[unit] !== undefined;
}

/** Returns the prompt, unless the hold expired longer ago than logs are kept. */
function keptPrompt({ prompt, status, expiresAt }: Reservation, { now, catalog }: Context): string | null {
  return status === "expired" && now >= expiresAt + catalog.promptLogRetentionMs ? null : prompt;
}

/**
 * The final amount of a unit: `actual`, or reserved plus `extra`. Only models priced by the second have their seconds
 * corrected, and only there `costCents` counts toward cents.
 */
function finalAmount(row: Reservation, unit: Unit, input: CommitInput): Amount {
  if (unit === "seconds" && !row.perUnit) return row.amounts.seconds;
  if (unit === "cents" && row.perUnit && input.costCents !== null) return input.costCents;
  return correctedAmount(row, unit, input);
}

function finalCost(row: Reservation, input: CommitInput): Amount {
  return input.costCents ?? correctedAmount(row, "cents", input);
}

function correctedAmount({ amounts }: Reservation, unit: Unit, { actual, extra }: CommitInput): Amount {
  return actual[unit] ?? larger(amounts[unit] + (extra[unit] ?? 0n), 0n);
}
