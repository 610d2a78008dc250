// Commit and release: the transition table of reservations. A commit charges the correction on each
// line's counter in the window of the hold, and on the credit balances; after expiry it charges the final
// amount anew.

import { type Input, type ModelReply, refusal, success, type Unit, type WireData } from "./document.ts";
import { atLeastZero, larger, type Micros, smaller, toNumber, ZERO } from "./decimal.ts";
import { finalAmount, finalCost, finalCredits, tellsCents } from "./final_amounts.ts";
import { book, changeLine, type LineChange, overageAnswer, overageRoom, wholeLine } from "./overage.ts";
import { settledBy } from "./prices.ts";
import { leaveRates, settleGuards } from "./guards.ts";
import { costAnswer } from "./reads.ts";
import { reportOf } from "./reports.ts";
import { leaveLeft } from "./includes.ts";
import { joined, settledCredits } from "./rated_answers.ts";
import type { Rated } from "./rates.ts";
import { addToRuns, runsCount } from "./runs.ts";
import { modelRowOf } from "./rules.ts";
import {
  type Charge,
  type Counter,
  type CreditLine,
  type EventRow,
  type Line,
  planShown,
  type Reservation,
  shownCount,
  type User,
  type World,
} from "./state.ts";
import { usersAbove } from "./tree.ts";
import { drain, giveBack, sumTaken, walletOf, writeRow } from "./wallet.ts";

export function commit(world: World, input: Input, now: number, realNow: number): ModelReply {
  const reservation = find(world, input);
  if (!reservation) return refusal("not_found");
  const { state, user } = reservation;
  if (state !== "held" && state !== "expired") return refusal("reservation_not_pending");
  world.cause = user.id;
  notePrices(world, reservation, input);
  const rated = finalCredits(reservation, input);
  const ofCredits = settledCredits(world, [reservation, ...reservation.parts], rated, input, now);
  const cost = finalCost(reservation, input);
  const charged = new Map<Counter, WireData>();
  const all = [reservation, ...reservation.parts];
  const settled = all.map((hold) => ({ hold, ...settle(world, hold, input, { cost, charged, now }) }));
  if (all.some((hold) => hold.of && !usersAbove(world, user).includes(hold.user))) {
    world.note("levels: a part settles where the user no longer is");
  }
  const quantity = reservation.perUnit ? finalAmount(reservation, "seconds", input) : reservation.quantity;
  // Choice: the event names the groups that were charged, so a carried hold names the new ones.
  const lines = all.flatMap((hold) => hold.lines);
  const matchedGroupIds = [...new Set(lines.map((line) => line.groupId))];
  const matchStatus = lines.length > 0 ? "matched" : "matched_credits_only";
  const amounts = settled.flatMap(({ hold, amounts }) =>
    hold.of === null ? amounts : amounts.map((each) => ({ ...each, user: hold.user }))
  );
  const uncovered = uncoveredIn(settled[0]!.corrections);
  const outcome = { matchStatus, quantity, cost, rated, matchedGroupIds, amounts, uncovered } as const;
  const event = record(world, reservation, now, outcome);
  for (const { hold, corrections } of settled) moveCredits(world, hold, corrections, event, now);
  const held = (unit: Unit) => state === "held" ? reservation.reserved[unit] : ZERO;
  if (reservation.runs.length > 0) world.note(`runs: a ${state === "held" ? "commit" : "late commit"}`);
  addToRuns(reservation.runs, reservation.event, {
    count: (unit) => finalAmount(reservation, unit, input) - held(unit),
    held: (unit) => -held(unit),
  });
  const isStale = world.shares.settle(
    String(reservation.no),
    (unit) => finalAmount(reservation, unit, input),
  );
  if (state === "expired" && reservation.parts.length > 0) world.note("shares: a late commit");
  if (isStale) world.note("shares: a hold from before a reset settles");
  if (state === "expired" && reservation.lapsedBeforeMerge) {
    world.note("merges: late commit of a hold that lapsed before the merge");
  }
  if (state === "expired" && all.length > 1) world.note("levels: a late commit at every level");
  for (const hold of all) hold.state = "committed";
  world.countOperation(realNow);
  const guards = settleGuards(world, all, (unit) => finalAmount(reservation, unit, input), state, now);
  const groupsOf = (each: User) => [
    ...[...charged].flatMap(([counter, group]) => counter.userId === each.id ? [group] : []),
    ...guards.get(each) ?? [],
  ];
  // Choice: the answer also names the event.
  return success({
    eventId: event.id,
    groups: groupsOf(user),
    ...(user.parentId === null ? {} : {
      levels: levelsOf(world, reservation).map((each) => ({
        userId: each.id,
        groups: groupsOf(each),
        uncovered: uncoveredAt(each, settled),
      })),
    }),
    ...(state === "expired" ? { recharged: true } : {}),
    ...joined(
      costAnswer(
        reservation.row,
        cost,
        (lines.some(({ unit }) => unit === "cents") ||
          runsCount(reservation.runs, "cents", reservation.event)) && !tellsCents(reservation, input),
        reportOf(input),
      ),
      ofCredits,
    ),
  });
}

/** Choice: the users above, then others at which the hold was taken. */
function levelsOf(world: World, { user, parts }: Reservation): User[] {
  const others = parts.map((part) => part.user).filter((each) => each !== user);
  return [...new Set([...usersAbove(world, user), ...others])];
}

type Uncovered = EventRow["uncovered"];

function uncoveredIn(corrections: Correction[]): Uncovered {
  const uncovered: Uncovered = {};
  for (const each of corrections) if (each.uncovered > ZERO) uncovered[each.unit] = each.uncovered;
  return uncovered;
}

function uncoveredAt(user: User, settled: { hold: Reservation; corrections: Correction[] }[]): WireData {
  const sums: Uncovered = {};
  for (const { hold, corrections } of settled) {
    if (hold.of === null || hold.user !== user) continue;
    for (const [unit, amount] of Object.entries(uncoveredIn(corrections)) as [Unit, Micros][]) {
      sums[unit] = (sums[unit] ?? ZERO) + amount;
    }
  }
  return Object.fromEntries(Object.entries(sums).map(([unit, amount]) => [unit, toNumber(amount)]));
}

/** Corrects the counters of one user by the final amounts. A counter gets the event's cost once, whatever meets on it. */
function settle(
  world: World,
  hold: Reservation,
  input: Input,
  { cost, charged, now }: { cost: Micros; charged: Map<Counter, WireData>; now: number },
): { corrections: Correction[]; amounts: Charge[] } {
  const { user, lines } = hold;
  const corrections = correctionsOf(world, hold, input, now);
  // A late commit leaves alone what was reset since the hold was made.
  const spared = hold.state === "held" ? [] : [...new Set(lines.flatMap((line) => [line, ...line.left]))]
    .map((place) => world.lineCounter(user, place))
    .filter(({ resetAt }) => resetAt !== null && resetAt > hold.madeAt);
  if (spared.length > 0) world.note("carry: a late commit spares a counter that was reset");
  for (const line of lines) {
    const counter = world.lineCounter(user, line);
    const isSpared = spared.includes(counter);
    // Choice: a group of a plan that is not in force shows overage only where it has sold any.
    const isCurrent = world.primary(user, now)?.planId === line.planId;
    const quota = world.lineQuota(user, line, now);
    const correction = corrections.find(({ unit }) => unit === line.unit);
    const change = lineChange(world, hold, line, correction, isSpared, now);
    changeLine(world, user, line, change, spared);
    bookLine(world, hold, line, change, now);
    const before = charged.get(counter);
    if (before === undefined && !isSpared) counter.cost += cost;
    // Choice: overflow says that this commit added something and the counter is now past its quota.
    const overflow = (change.plan > ZERO && planShown(counter) > quota) || before?.["overflow"] === true;
    charged.set(counter, {
      groupId: line.groupId,
      unit: line.unit,
      quota: toNumber(quota),
      current: toNumber(shownCount(counter)),
      ...(isCurrent || counter.overage > ZERO
        ? overageAnswer(world.group(line.planId, line.groupId), counter)
        : {}),
      overflow,
    });
  }
  const isSpared = (line: Line) => spared.includes(world.lineCounter(user, line));
  return { corrections, amounts: amountsCharged(hold, corrections, isSpared) };
}

/** What a commit changes in one line: it gives back what it sold first, and sells anew what the quota has no room for. */
function lineChange(
  world: World,
  { user }: Reservation,
  line: Line,
  correction: Correction | undefined,
  isSpared: boolean,
  now: number,
): LineChange {
  const { onLines = ZERO, overageBack = ZERO } = correction ?? {};
  if (isSpared) return { plan: ZERO, back: ZERO, sold: ZERO };
  const back = smaller(line.overage, overageBack);
  if (onLines <= ZERO) return { plan: larger(onLines + back, line.overage - line.amount), back, sold: ZERO };
  // Choice: a plan that is not in force sells nothing.
  const isCurrent = world.primary(user, now)?.planId === line.planId;
  const counter = world.lineCounter(user, line);
  const room = atLeastZero(world.lineQuota(user, line, now) - planShown(counter));
  const group = world.group(line.planId, line.groupId);
  const sold = isCurrent ? smaller(atLeastZero(onLines - room), overageRoom(user, group, counter)) : ZERO;
  if (sold > ZERO) world.note("overage: sold by a commit");
  if (sold > ZERO && onLines - sold > room) world.note("overage: a commit past the most that is sold");
  return { plan: onLines - sold, back, sold };
}

/** Settles what a line sold. */
function bookLine(
  world: World,
  hold: Reservation,
  line: Line,
  { back, sold }: LineChange,
  now: number,
): void {
  const { user } = hold;
  if (hold.state === "held") {
    if (back > ZERO) world.note("overage: a commit gives some back");
    book(world, user, line.soldAt, line.overage - back, now);
  }
  book(world, user, line, sold, now);
}

function notePrices(world: World, { row, event, metadata, reserved }: Reservation, input: Input): void {
  const report = reportOf(input);
  if (report === null) return;
  const inForce = modelRowOf(world.catalog, event, metadata);
  const [kept, changed] = [row, inForce].map((each) => settledBy(report, each, reserved).cents);
  if (kept !== changed) world.note("prices: a hold keeps prices that have changed");
  world.note(`prices: a commit with usage, ${row?.amountMode ?? "unpriced"}`);
}

/** What a commit changes in one unit. */
interface Correction {
  unit: Unit;
  /** What each line of the unit grows by; below zero: goes down by. */
  onLines: Micros;
  /** What held balances get back. */
  back: CreditLine[];
  /** What lines give back of what they sold, each as far as it sold any. */
  overageBack: Micros;
  /** What balances pay now. */
  drained: CreditLine[];
  uncovered: Micros;
}

/** The corrections of every unit that the hold has lines or credits in; drains the balances that pay. */
function correctionsOf(world: World, hold: Reservation, input: Input, now: number): Correction[] {
  const units = new Set([
    ...hold.lines.map((line) => line.unit),
    ...hold.credits.map(({ balance }) => balance.unit),
  ]);
  return [...units].map((unit) => {
    // A hold that has lapsed was given back, so everything is charged anew.
    const base = hold.state === "held" ? hold.reserved[unit] : ZERO;
    const delta = finalAmount(hold, unit, input) - base;
    return delta < ZERO ? lessThanHeld(hold, unit, -delta) : moreThanHeld(world, hold, unit, delta, now);
  });
}

/** Plan room first, then the balances that match now, then past the quota; without a line: uncovered. */
function moreThanHeld(world: World, hold: Reservation, unit: Unit, delta: Micros, now: number): Correction {
  const byPlan = smaller(delta, planRoom(world, hold, unit, now));
  const drained = drain(world, walletOf(world, hold, now, unit), delta - byPlan, now);
  const left = delta - byPlan - sumTaken(drained);
  const hasLine = hold.lines.some((line) => line.unit === unit);
  const kind = hold.state === "held" ? "extra" : "recharge";
  if (drained.length > 0) world.note(`credits: ${kind} paid by balances`);
  if (drained.length > 0 && byPlan > ZERO) world.note(`credits: ${kind} shared by plan and balances`);
  if (drained.length > 0 && left > ZERO) world.note(`credits: ${kind} past all balances`);
  if (left > ZERO && !hasLine) world.note(`credits: ${kind} uncovered`);
  const onLines = hasLine ? byPlan + left : ZERO;
  return { unit, onLines, back: [], overageBack: ZERO, drained, uncovered: hasLine ? ZERO : left };
}

/** What the hold's groups have left of their present quota; nothing once their plan is no longer held. */
function planRoom(world: World, hold: Reservation, unit: Unit, now: number): Micros {
  const planId = world.primary(hold.user, now)?.planId;
  const ofUnit = hold.lines.filter((line) => line.unit === unit);
  const current = ofUnit.filter((line) => line.planId === planId);
  if (current.length > 0 && current.length < ofUnit.length) {
    world.note("carry: a commit finds room in some groups of its hold");
  }
  const rooms = current.map((line) =>
    atLeastZero(world.lineQuota(hold.user, line, now) - planShown(world.lineCounter(hold.user, line)))
  );
  return rooms.length === 0 ? ZERO : rooms.reduce(smaller);
}

/** Choice: two lines of one part that met in one group are one amount. */
function metInGroups<Of extends { groupId: string; unit: string; amount: Micros }>(charges: Of[]): Of[] {
  const met: Of[] = [];
  for (const charge of charges) {
    const place = met.findIndex((each) => each.groupId === charge.groupId && each.unit === charge.unit);
    const before = met[place];
    if (before === undefined) met.push(charge);
    else met[place] = { ...before, amount: before.amount + charge.amount };
  }
  return met;
}

/** What the event was charged in the end: what was held, if it was still held, and the corrections. */
function amountsCharged(
  { state, lines, credits }: Reservation,
  corrections: Correction[],
  isSpared: (line: Line) => boolean,
): Charge[] {
  const isHeld = state === "held";
  const ofLines = metInGroups(lines.map((line) => {
    const delta = corrections.find(({ unit }) => unit === line.unit)?.onLines ?? ZERO;
    const amount = isSpared(line) ? ZERO : atLeastZero((isHeld ? line.amount : ZERO) + delta);
    return { groupId: line.groupId, unit: line.unit, amount };
  }));
  const held = isHeld ? credits : [];
  const moves = [
    ...held,
    ...corrections.flatMap(({ back }) => back.map(({ balance, taken }) => ({ balance, taken: -taken }))),
    ...corrections.flatMap(({ drained }) => drained),
  ];
  const balances = [...new Set(moves.map(({ balance }) => balance))];
  return [
    ...ofLines,
    ...balances.map((balance) => ({
      balance,
      unit: balance.unit,
      amount: sumTaken(moves.filter((move) => move.balance === balance)),
    })),
  ];
}

/** What was sold goes back first, then what credits paid, last taken first; the rest comes off every line. */
function lessThanHeld(hold: Reservation, unit: Unit, amount: Micros): Correction {
  const back: CreditLine[] = [];
  const ofUnit = hold.lines.filter((line) => line.unit === unit);
  const overageBack = smaller(amount, ofUnit.map(({ overage }) => overage).reduce(larger, ZERO));
  let left = amount - overageBack;
  for (const { balance, taken } of hold.credits.toReversed()) {
    if (balance.unit !== unit) continue;
    const part = smaller(left, taken);
    back.push({ balance, taken: part });
    left -= part;
  }
  return { unit, onLines: -left - overageBack, back, overageBack, drained: [], uncovered: ZERO };
}

/** Writes the rows of a commit: one for each held balance in the order of holding, then the new ones. */
function moveCredits(
  world: World,
  hold: Reservation,
  corrections: Correction[],
  event: EventRow,
  at: number,
): void {
  const movement = { reason: "event_committed", event, reservation: hold.of ?? hold, at } as const;
  const drained = corrections.flatMap((each) => each.drained);
  const back = corrections.flatMap((each) => each.back);
  const held = hold.state === "held" ? hold.credits.map(({ balance }) => balance) : [];
  for (const balance of held) {
    const more = sumTaken(drained.filter((line) => line.balance === balance));
    const less = sumTaken(back.filter((line) => line.balance === balance));
    if (more > ZERO) {
      world.note("credits: extra from a balance of the hold");
      writeRow(world, balance, -more, movement);
      leaveLeft(hold, balance, -more);
    } else {
      if (less === ZERO) world.note("credits: a held balance settled exactly");
      giveBack(world, balance, less, movement);
      leaveLeft(hold, balance, less);
    }
  }
  for (const { balance, taken } of drained) {
    if (!held.includes(balance)) writeRow(world, balance, -taken, movement);
  }
}

export function release(world: World, input: Input, now: number): ModelReply {
  const reservation = find(world, input);
  if (!reservation) return refusal("not_found");
  if (reservation.state !== "held") return refusal("reservation_not_pending");
  world.cause = reservation.user.id;
  for (const hold of [...reservation.parts, reservation]) {
    for (const line of hold.lines) changeLine(world, hold.user, line, wholeLine(line));
    for (const { balance, taken } of hold.credits) {
      giveBack(world, balance, taken, { reason: "reservation_released", reservation, at: now });
      leaveLeft(hold, balance, taken);
    }
    leaveRates(world, hold, now);
    hold.state = "released";
  }
  giveBackToRuns(reservation);
  world.shares.settle(String(reservation.no), () => ZERO);
  record(world, reservation, now, {
    matchStatus: "released",
    quantity: reservation.quantity,
    cost: ZERO,
    matchedGroupIds: [],
    reason: cut(input["reason"], 500),
    errorCode: cut(input["errorCode"], 100),
  });
  return success({});
}

/** Takes off its runs what an open hold has there. */
export function giveBackToRuns({ runs, event, reserved }: Reservation): void {
  const less = (unit: Unit) => -reserved[unit];
  addToRuns(runs, event, { count: less, held: less });
}

function find(world: World, input: Input): Reservation | undefined {
  return world.reservations.find((reservation) => reservation.id === input["reservationId"]);
}

type Outcome = Pick<EventRow, "matchStatus" | "quantity" | "cost" | "matchedGroupIds"> & {
  rated?: Rated;
  reason?: string | null;
  errorCode?: string | null;
  amounts?: Charge[];
  uncovered?: EventRow["uncovered"];
};

function record(world: World, reservation: Reservation, now: number, outcome: Outcome): EventRow {
  const event = world.name<EventRow>("evt_", {
    userId: reservation.user.id,
    eventType: reservation.event,
    createdAt: now,
    metadata: reservation.metadata,
    reservation,
    run: reservation.runs[0] ?? null,
    reason: null,
    errorCode: null,
    amounts: [],
    uncovered: {},
    ...outcome,
  });
  world.events.push(event);
  return event;
}

/** The first code points of a text, or null. */
function cut(value: unknown, length: number): string | null {
  return typeof value === "string" ? [...value].slice(0, length).join("") : null;
}
