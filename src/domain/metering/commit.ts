// Commit: settle a reservation after the work. The final amount of a unit is the reserved one plus `extra`, or `actual`. It
// replaces the reserved amount in the window of the hold, past the quota if need be, since the work is done. A hold that
// had lapsed is charged again, once, as a new decision: what the plan has left, then balances that match now, then past
// the quota; but a counter that was reset meanwhile is left unchanged. `costCents` is analytics, except for models priced by the second, where it also counts toward cents.

import { type Amount, larger } from "../values/amount.ts";
import type { Context } from "../state/context.ts";
import type { CreditLine } from "../state/credit.ts";
import { moveCredit, type Movement } from "../credits/wallet.ts";
import type { Draft } from "../state/draft.ts";
import { metadataOf } from "../values/match.ts";
import type { Unit } from "../catalog/plan.ts";
import { answered, refused, type Result } from "../state/result.ts";
import { finalParts } from "./final_parts.ts";
import type { PriceRow } from "../catalog/price_row.ts";
import { type Cost, costOf, type Warning, warningsOf } from "../pricing/cost.ts";
import { finalAmounts, NO_USAGE, type Usage } from "../pricing/usage.ts";
import { eventQuantity, recordEvent } from "./record_event.ts";
import {
  type HoldLine,
  type Line,
  notPending,
  priceRowOfHold,
  requireTexts,
  type Reservation,
  TRANSITIONS,
  unknownReservation,
} from "../state/reservation.ts";
import {
  chargeLine,
  correctLeft,
  keyOfLine,
  limitsOf,
  type LineLimit,
  NONE_SPARED,
  resetSince,
  type SparedCounters,
} from "./settle_lines.ts";
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
  readonly warnings: readonly Warning[];
  readonly eventId: string;
  /** Whether the hold had lapsed and was charged again. */
  readonly recharged: boolean;
  /** The counters of the hold's window after the commit; `overflow`: this commit took the counter past its quota. */
  readonly groups: readonly {
    readonly groupId: string;
    readonly unit: Unit;
    readonly quota: Amount;
    readonly current: Amount;
    readonly overflow: boolean;
  }[];
}

/** Decides a commit of a reservation of this user. */
export function commit(draft: Draft, input: CommitInput, context: Context): Result<CommitAnswer> {
  const row = draft.reservation(input.reservationId);
  if (row === undefined) return refused(unknownReservation());
  const transition = TRANSITIONS[row.status].commit;
  if (typeof transition === "string") return refused(notPending(row));

  requireTexts(row);
  const isRecharge = transition.effect === "recharge";
  const metadata = metadataOf(row.metadata);
  const priceRow = priceRowOfHold(context.catalog, row, metadata);
  const final = withUsage(row, input, priceRow);
  const costCents = finalCost(row, final);
  const limits = limitsOf(draft, context, row.lines);
  const purchase = { event: row.event, metadata, now: context.now };
  const finalOf = (unit: Unit) => finalAmount(row, unit, final);
  const parts = finalParts(draft, { row, isRecharge, limits, purchase, finalOf });
  const { credits, uncovered } = parts;
  const spared = isRecharge ? resetSince(draft, row) : NONE_SPARED;
  const groups = chargeLines(draft, { row, isRecharge, limits, costCents, spared }, parts.lines);
  const settled = parts.lines.map(settledLine);
  const lines = spared.size === 0 ? settled : settled.map((line) => sparing(line, spared));
  const eventId = context.ids.next("event");
  chargeCredits(draft, context, isRecharge ? [] : row.credits, credits, {
    reason: "event_committed",
    eventId,
    reservationId: row.id,
    at: context.now,
  });
  recordEvent(
    draft,
    {
      id: eventId,
      userKey: row.userKey,
      realm: draft.user.realm,
      type: row.event,
      quantity: eventQuantity(row, finalAmount(row, "seconds", final)),
      costCents,
      matchStatus: row.lines.length > 0 ? "matched" : "matched_credits_only",
      createdAt: context.now,
      metadata: input.isEstimate === true ? estimated(row.metadata) : row.metadata,
      reservationId: row.id,
      reason: null,
      errorCode: null,
      lines,
      credits: credits.filter(({ taken }) => taken > 0n),
      uncovered,
    },
    { prompt: keptPrompt(row, context), response: cutText(input.response) },
    context,
  );
  draft.operations += 1;
  draft.putReservation({
    ...row,
    lines,
    credits,
    prompt: null,
    status: transition.next,
    settledAt: context.now,
  });
  const countsCents = row.lines.some(({ unit }) => unit === "cents");
  const toldCents = row.toldCents || tellsCents(input);
  const warnings = warningsOf(priceRow, { countsCents, toldCents, usage: input.usage ?? null });
  return answered({ eventId, recharged: isRecharge, groups, cost: costOf(costCents, priceRow), warnings });
}

/**
 * Adds the final amounts of the reported usage to `actual`. Without a usage the final count multiplies the price of a
 * call, unless the caller named cents.
 */
function withUsage(row: Reservation, input: CommitInput, priceRow: PriceRow | null): CommitInput {
  const isCounted = priceRow?.amountMode === "per_call" && !row.toldCents && !correctsCents(input);
  const usage = input.usage ?? (isCounted ? NO_USAGE : null);
  if (usage === null) return input;
  const amounts = { seconds: row.amounts.seconds, count: finalAmount(row, "count", input) };
  return { ...input, actual: { ...input.actual, ...finalAmounts(usage, priceRow, amounts) } };
}

function estimated(metadata: string | null): string {
  return JSON.stringify({ ...metadataOf(metadata)?.members, estimated: true });
}

/** Whether the caller named the cents. */
function tellsCents(input: CommitInput): boolean {
  return input.costCents !== null || correctsCents(input);
}

function correctsCents({ extra, actual }: CommitInput): boolean {
  return extra.cents !== undefined || actual.cents !== undefined;
}

/** Removes the counters that a line left: an event is counted in one place. */
function settledLine(line: HoldLine): Line {
  if (line.left === undefined) return line;
  const { left: _, ...settled } = line;
  return settled;
}

/** An event takes nothing from a counter that is left unchanged. */
function sparing(line: Line, spared: SparedCounters): Line {
  return spared.has(keyOfLine(line)) ? { ...line, taken: 0n } : line;
}

/** Returns the prompt, unless the hold expired longer ago than logs are kept. */
function keptPrompt({ prompt, status, expiresAt }: Reservation, { now, catalog }: Context): string | null {
  return status === "expired" && now >= expiresAt + catalog.promptLogRetentionMs ? null : prompt;
}

interface LineCharge {
  readonly row: Reservation;
  readonly isRecharge: boolean;
  readonly limits: readonly LineLimit[];
  readonly costCents: Amount;
  readonly spared: SparedCounters;
}

/** Changes the counters from the held to the final amounts; returns them, each once. */
function chargeLines(
  draft: Draft,
  { row, isRecharge, limits, costCents, spared }: LineCharge,
  lines: readonly Line[],
): CommitAnswer["groups"] {
  const groups = new Map<string, CommitAnswer["groups"][number]>();
  const heldBy = (place: number) => isRecharge ? 0n : (row.lines[place] as HoldLine).taken;
  lines.forEach(({ taken }, place) => {
    correctLeft(draft, row.lines[place] as HoldLine, taken - heldBy(place), spared);
  });
  lines.forEach((line, place) => {
    const before = heldBy(place);
    // Plan changes can carry two lines onto one counter, which gets the event's cost once and is listed once.
    const key = keyOfLine(line);
    const known = groups.get(key);
    const isSpared = spared.has(key);
    const cost = isSpared || known !== undefined ? 0n : costCents;
    const current = chargeLine(draft, line, isSpared ? 0n : line.taken - before, cost);
    const { quota } = limits[place] as LineLimit;
    const overflow = known?.overflow === true || (!isSpared && line.taken > before && current > quota);
    groups.set(key, { groupId: line.groupId, unit: line.unit, quota, current, overflow });
  });
  return [...groups.values()];
}

/** Changes balances from the held to the final amounts: those of the hold first, then new ones. */
function chargeCredits(
  draft: Draft,
  context: Context,
  held: readonly CreditLine[],
  credits: readonly CreditLine[],
  movement: Movement,
): void {
  credits.forEach(({ balanceId, taken }, place) => {
    const before = held[place]?.taken ?? 0n;
    moveCredit(draft, context, balanceId, { delta: before - taken, held: -before }, movement);
  });
}

/**
 * The final amount of a unit: `actual`, or reserved plus `extra`. Only models priced by the second have their seconds
 * corrected, and only there `costCents` counts toward cents.
 */
function finalAmount(row: Reservation, unit: Unit, input: CommitInput): Amount {
  const reserved = row.amounts[unit];
  if (unit === "seconds" && !row.perUnit) return reserved;
  if (unit === "cents" && row.perUnit && input.costCents !== null) return input.costCents;
  return input.actual[unit] ?? larger(reserved + (input.extra[unit] ?? 0n), 0n);
}

function finalCost(row: Reservation, input: CommitInput): Amount {
  if (input.costCents !== null) return input.costCents;
  return input.actual.cents ?? larger(row.amounts.cents + (input.extra.cents ?? 0n), 0n);
}
