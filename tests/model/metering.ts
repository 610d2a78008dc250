// The calls that ask for quota: reserve, can-use and track. One decision serves all three (decision.ts, and levels.ts over
// the path of the user); they differ in the gate and in what they write. Settling a hold is in settlement.ts.

import { costAnswer, counterAnswer, memberAnswer } from "./reads.ts";
import {
  type Asked,
  type Decision,
  groupsOf,
  inCents,
  type MatchedGroup,
  readAsked,
  type Share,
  takenBy,
} from "./decision.ts";
import { type Micros, ONE, toNumber, ZERO } from "./decimal.ts";
import { type Input, type ModelReply, refusal, success, type Unit, type WireData } from "./document.ts";
import { countInRates, guardAnswer, guardLines } from "./guards.ts";
import { decidePath, type FullShare, type Level, levelsAnswer, type PathDecision } from "./levels.ts";
import { book, overageAnswer } from "./overage.ts";
import { askedCredits, joined } from "./rated_answers.ts";
import { addToRuns, countInRuns, runsAnswer, runsCount } from "./runs.ts";
import { reportOf } from "./reports.ts";
import { sent } from "./rules.ts";
import { beginSessions } from "./sessions.ts";
import type { SharedPart } from "./shares.ts";
import {
  type Balance,
  type Charge,
  type CreditLine,
  type EventRow,
  iso,
  isoOrNull,
  type Line,
  planShown,
  type Reservation,
  shownCount,
  type World,
} from "./state.ts";
import { drain, sumOf, walletOf, writeRow } from "./wallet.ts";

const DEFAULT_TTL_SECONDS = 600;

export function reserve(world: World, input: Input, now: number): ModelReply {
  const asked = readAsked(world, input, "reserve", now);
  if ("reply" in asked) return asked.reply;
  world.cause = asked.user.id;
  const path = decidePath(world, asked, "headroom", now);
  const told = joined(sizeWarnings(input, asked, path), askedCredits(world, path, now));
  if (path.reasons.length > 0) return success({ ...refusedAnswer(world, path, now), ...told });
  const setTtl = world.catalog.settings?.reservationTtlSeconds ?? DEFAULT_TTL_SECONDS;
  const ttlSeconds = typeof input["ttlSeconds"] === "number" ? input["ttlSeconds"] : setTtl;
  const expiresAt = now + Math.round(ttlSeconds * 1000);
  const own = hold(world, path.own, expiresAt, now);
  for (const level of path.above) {
    if (level.decision.matched.length === 0 && level.guards.length === 0) continue;
    own.parts.push(hold(world, level, expiresAt, now, own));
    world.note("levels: a part is held");
  }
  // Choice: the parts are written first. Only a merge brings their ledger rows into one list with those of the caller.
  for (const { credits } of [...own.parts, own]) {
    for (const { balance, taken } of credits) {
      writeRow(world, balance, -taken, { reason: "reservation_held", reservation: own, at: now });
    }
  }
  const take = (unit: Unit) => asked.amounts[unit];
  world.shares.take(String(own.no), asked.user.id, sharedBy(path), take, expiresAt);
  addToRuns(asked.runs, asked.event, { count: take, held: take });
  const groups = ({ decision, guards }: Level) => [
    ...decision.matched.map(groupAnswer),
    ...guards.map((each) => guardAnswer(world, each, now)),
  ];
  return success({
    allowed: true,
    matched: true,
    reservationId: own.id,
    expiresAt: iso(expiresAt),
    groups: groups(path.own),
    ...levelsAnswer(path, (level) => ({ groups: groups(level) })),
    ...told,
  });
}

/** Holds what one user of a path gives; `of` is the caller's hold, for a user above. */
function hold(
  world: World,
  { asked, decision, guards }: Level,
  expiresAt: number,
  now: number,
  of: Reservation | null = null,
): Reservation {
  const { matched, shares } = decision;
  const { user, row, rate, work, toldCents, event, metadata, amounts, perUnit, quantity } = asked;
  beginSessions(world, user, matched, now);
  countInRates(world, guards, now);
  const lines = matched.map((each): Line => {
    const { planId, group } = each;
    const { amount, overage } = takenBy(each, shares);
    each.counter.count += amount;
    each.counter.overage += overage;
    if (overage > ZERO) world.note("overage: held");
    const place = { planId, groupId: group.id, window: each.window! };
    return { ...place, unit: group.unit, amount, overage, soldAt: place, left: [] };
  });
  const credits = takeCredits(world, shares, now);
  if (shares.length > 0) noteShares(world, decision);
  const made = {
    user,
    runs: of === null ? asked.runs : [],
    madeFor: user.id,
    of,
    parts: [],
    row,
    rate,
    work,
    toldCents,
    event,
    metadata,
    state: "held" as const,
    madeAt: now,
    expiresAt,
    lines,
    guards: guardLines(guards, now),
    credits,
    reserved: amounts,
    perUnit,
    quantity,
  };
  const reservation = world.name<Reservation>("rsv_", made);
  world.reservations.push(reservation);
  return reservation;
}

/** Warns of a quantity above 1 where nothing that the call takes, or would take, is measured in seconds. */
function sizeWarnings(input: Input, asked: Asked, { matched, taking, own }: PathDecision): Input {
  const quantity = sent(input, "quantity");
  if (quantity === null || quantity <= ONE || !matched) return {};
  const groups = taking.flatMap(({ decision }) => decision.matched);
  const units = groups.length > 0
    ? groups.map(({ group }) => group.unit)
    : own.decision.shares.map(({ unit }) => unit);
  const byCents = asked.perUnit && sent(input, "inputCostCents") === null;
  const bySeconds = [
    "seconds",
    ...(byCents ? ["cents"] : []),
    ...(asked.rate?.perSecond !== undefined || (asked.rate?.perCent !== undefined && byCents)
      ? ["credits"]
      : []),
  ];
  const isInRun = bySeconds.some((unit) => runsCount(asked.runs, unit, asked.event));
  return isInRun || units.some((unit) => bySeconds.includes(unit))
    ? {}
    : { warnings: ["quantity_not_counted"] };
}

export function canUse(world: World, input: Input, now: number): ModelReply {
  const asked = readAsked(world, input, "reserve", now);
  if ("reply" in asked) return asked.reply;
  const path = decidePath(world, asked, "headroom", now);
  const details = ({ asked, decision, guards }: Level) => [
    ...decision.matched.map(({ group, counter, quota, window }) => ({
      groupId: group.id,
      current: toNumber(shownCount(counter)),
      quota: toNumber(quota),
      ...overageAnswer(group, counter),
      resetsAt: isoOrNull(window?.end ?? null),
      ...creditOffer(walletOf(world, asked, now, group.unit)),
    })),
    ...guards.map((each) => {
      const { unit: _, ...shown } = guardAnswer(world, each, now);
      return { ...shown, resetsAt: null, ...creditOffer([]) };
    }),
  ];
  return success({
    ...joined(sizeWarnings(input, asked, path), askedCredits(world, path, now)),
    allowed: path.reasons.length === 0,
    matched: path.matched,
    reasons: path.reasons,
    ...path.retry,
    details: details(path.own),
    ...levelsAnswer(path, (level) => ({ details: details(level) })),
  });
}

/** What a wallet has, in all and by pack; packs in the order of their first balance. */
function creditOffer(wallet: Balance[]) {
  const packs = [...new Set(wallet.map(({ pack }) => pack))];
  return {
    creditAvailable: toNumber(sumOf(wallet)),
    creditPacks: packs.map((pack) => ({
      packId: pack.id,
      packName: pack.name,
      available: toNumber(sumOf(wallet.filter((balance) => balance.pack === pack))),
    })),
  };
}

export function track(world: World, input: Input, now: number, realNow: number): ModelReply {
  const asked = readAsked(world, input, "track", now);
  if ("reply" in asked) return asked.reply;
  world.cause = asked.user.id;
  const path = decidePath(world, asked, "quota", now);
  const cost = sent(input, "costCents") ?? asked.amounts.cents;
  const status = trackedStatus(path);
  const isTaken = path.reasons.length === 0;
  const isBlocked = status === "blocked";
  const ofCredits = askedCredits(world, path, now);
  const paid = [path.own, ...path.above].map((level) => ({
    level,
    ...(isTaken ? takeAt(world, level, cost, now) : { amounts: [], credits: [] }),
  }));
  const counted = status === "matched" ? path.taking.flatMap(({ decision }) => decision.matched) : [];
  // Choice: an event that is not counted keeps its cost on the record; only counters leave it out.
  const event = world.name<EventRow>("evt_", {
    userId: asked.user.id,
    eventType: asked.event,
    quantity: asked.quantity,
    cost,
    rated: asked.rated,
    matchStatus: status,
    createdAt: now,
    metadata: asked.metadata,
    matchedGroupIds: [...new Set(counted.map(({ group }) => group.id))],
    reservation: null,
    run: asked.runs[0] ?? null,
    reason: null,
    errorCode: null,
    amounts: paid.flatMap(({ level, amounts }) =>
      amounts.map((each) => level === path.own ? each : { ...each, user: level.asked.user })
    ),
    uncovered: {},
  });
  world.events.push(event);
  for (const { balance, taken } of paid.flatMap(({ credits }) => credits)) {
    writeRow(world, balance, -taken, { reason: "event_committed", event, at: now });
  }
  if (isBlocked) return blockedAnswer(world, event, path, now);
  if (isTaken) {
    world.countOperation(realNow);
    countInRuns(asked.runs, asked.event, asked.amounts);
    world.shares.take(String(event.no), asked.user.id, sharedBy(path), (unit) => asked.amounts[unit]);
  }
  const countsCents = counted.some(inCents) || runsCount(asked.runs, "cents", asked.event);
  const counters = ({ decision: { primary, matched }, guards }: Level) =>
    primary ? [...matched, ...guards].map(({ group }) => counterAnswer(world, primary, group, now)) : [];
  const { own, above } = path;
  const withMember = (
    { decision: { primary, matched }, guards }: Level,
    counter: WireData,
    place: number,
  ) => ({
    ...counter,
    ...memberAnswer(world, asked.user, primary!, [...matched, ...guards][place]!.group, now),
  });
  return success({
    eventId: event.id,
    matchStatus: status,
    matchedGroupIds: event.matchedGroupIds,
    counters: counters(own),
    ...(above.length === 0 ? {} : {
      levels: above.map((level) => ({
        userId: level.asked.user.id,
        counters: counters(level).map((counter, place) => withMember(level, counter, place)),
      })),
    }),
    ...joined(costAnswer(asked.row, cost, countsCents && !asked.toldCents, reportOf(input)), ofCredits),
    ...runsAnswer(asked.runs, null),
  });
}

/** The groups above at which a call takes something of the caller's shares. */
function sharedBy({ own, taking }: PathDecision): SharedPart[] {
  return taking.filter((level) => level !== own).flatMap(({ asked, decision }) =>
    decision.matched.map(({ group, window }) => ({
      account: asked.user.id,
      group: group.id,
      unit: group.unit,
      window: window!.start,
    }))
  );
}

function trackedStatus({ own, taking, reasons, refusedBy }: PathDecision): EventRow["matchStatus"] {
  if (refusedBy.some((id) => id !== own.asked.user.id)) return "blocked";
  if (own.guards.some(({ reason }) => reason !== null)) return "blocked";
  if (taking.length > 0) return reasons.length === 0 ? "matched" : "blocked";
  const { reason } = own.decision;
  if (reason === null) return "matched_credits_only";
  return reason === "no_subscription" ? "no_subscription" : "unmatched";
}

/** Counts an event at one user; gives back what it charged there. */
function takeAt(
  world: World,
  { asked, decision, guards }: Level,
  cost: Micros,
  now: number,
): { amounts: Charge[]; credits: CreditLine[] } {
  const { matched, shares } = decision;
  beginSessions(world, asked.user, matched, now);
  countInRates(world, guards, now);
  const byGroups = matched.map((each) => {
    const { planId, group, counter } = each;
    const { amount, overage } = takenBy(each, shares);
    counter.count += amount;
    counter.overage += overage;
    counter.cost += cost;
    book(world, asked.user, { planId, groupId: group.id, window: each.window! }, overage, now);
    return { groupId: group.id, unit: group.unit, amount };
  });
  const credits = takeCredits(world, shares, now);
  if (shares.length > 0) noteShares(world, decision);
  const byBalances = credits.map(({ balance, taken }) => ({ balance, unit: balance.unit, amount: taken }));
  return { amounts: [...byGroups, ...byBalances], credits };
}

/** Choice: without a parent the code is always that of a limit; with one it is the first reason. */
function blockedAnswer(
  world: World,
  event: EventRow,
  { own, above, reasons, refusedBy, retry }: PathDecision,
  now: number,
): ModelReply {
  const groups = (level: Level) => [
    ...blockingOf(level).map((each) => ({
      groupId: each.group.id,
      unit: each.group.unit,
      quota: toNumber(each.quota),
      current: toNumber(shownCount(each.counter)),
      ...overageAnswer(each.group, each.counter),
      ...memberIn(level.full.find(({ of }) => of === each)),
    })),
    ...level.guards.filter(({ reason }) => reason !== null).map((each) => guardAnswer(world, each, now)),
  ];
  const details = { eventId: event.id, groups: groups(own), ...retry };
  const [first = "limit_reached"] = reasons;
  const { runs } = own.asked;
  if (above.length === 0 && runs.length === 0) {
    const why = first === "unpriced_model" || reasons.length > 1 ? { reasons } : {};
    return refusal(isOfGuard(first) ? first : "limit_reached", { ...details, ...why });
  }
  const levels = above.map((level) => ({ userId: level.asked.user.id, groups: groups(level) }));
  return refusal(first, {
    ...details,
    reasons,
    refusedBy,
    ...(above.length === 0 ? {} : { levels }),
    ...runsAnswer(runs, null),
  });
}

function isOfGuard(reason: string): reason is "rate_limit_reached" | "concurrency_limit_reached" {
  return reason === "rate_limit_reached" || reason === "concurrency_limit_reached";
}

/** The groups without room, for all calls or for this caller. */
function blockingOf({ decision: { matched, blocking }, full }: Level): MatchedGroup[] {
  return matched.filter((each) => blocking.includes(each) || full.some(({ of }) => of === each));
}

function memberIn(share: FullShare | undefined): WireData {
  return share ? { member: { count: toNumber(share.count), quota: toNumber(share.quota) } } : {};
}

function takeCredits(world: World, shares: Share[], now: number): CreditLine[] {
  return shares.flatMap(({ wallet, byCredits }) => drain(world, wallet, byCredits, now));
}

function noteShares(world: World, { primary, matched, shares }: Decision): void {
  const paid = shares.filter((share) => share.byCredits > ZERO);
  if (matched.length === 0) {
    world.note(`credits: alone, ${primary ? "no group matches" : "no subscription"}`);
  } else if (paid.some((share) => share.byPlan > ZERO)) {
    world.note("credits: plan and credits share a need");
  } else if (paid.length > 0) {
    world.note("credits: the whole need where the plan is full");
  }
  if (paid.length > 1) world.note("credits: needs of several units");
  const isFull = ({ counter, gate }: MatchedGroup) => planShown(counter) >= gate;
  const nothing = shares.some(({ unit, need }) => need === ZERO && groupsOf(matched, unit).some(isFull));
  if (nothing) world.note("credits: a need of 0 on a full plan");
  const hasFraction = matched.some(({ group, counter, gate, hasHeadroom, room }) =>
    hasHeadroom && group.unit === "count" && room % ONE === ZERO &&
    (gate - planShown(counter)) % ONE !== ZERO
  );
  if (hasFraction && paid.some(({ unit }) => unit === "count")) {
    world.note("credits: headroom leaves a fraction of a count");
  }
}

function refusedAnswer(world: World, path: PathDecision, now: number) {
  const { own, matched, reasons, retry } = path;
  const groups = (level: Level) => [
    ...level.decision.matched.map((each) => ({
      ...groupAnswer(each),
      ...(blockingOf(level).includes(each)
        ? { label: each.group.label, resetsAt: isoOrNull(each.window?.end ?? null) }
        : {}),
    })),
    ...level.guards.map((each) => ({
      ...guardAnswer(world, each, now),
      ...(each.reason === null ? {} : { label: each.group.label, resetsAt: null }),
    })),
  ];
  return {
    allowed: false,
    matched,
    reasons,
    ...retry,
    groups: groups(own),
    ...levelsAnswer(path, (level) => ({ groups: groups(level) })),
  };
}

function groupAnswer({ group, counter, quota, gate, hasHeadroom }: MatchedGroup) {
  return {
    groupId: group.id,
    unit: group.unit,
    quota: toNumber(quota),
    current: toNumber(shownCount(counter)),
    ...overageAnswer(group, counter),
    ...(hasHeadroom ? { headroomGate: toNumber(gate) } : {}),
  };
}
