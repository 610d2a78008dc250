// What an explanation says of a call: each group of the plan beside the call, what open holds have of it, and what each
// balance would pay. Of its text only the labels are predicted that it must name.

import { shownId } from "./credits.ts";
import {
  EITHER,
  type Input,
  type LimitGroup,
  type MatchRule,
  type ModelReply,
  naming,
  success,
  type WireData,
} from "./document.ts";
import { type Micros, smaller, toNumber, ZERO } from "./decimal.ts";
import { type Asked, type Decision, readAsked } from "./decision.ts";
import { guardCount, heldOnGuard } from "./guards.ts";
import { decidePath, type Level, levelsAnswer, type PathDecision, refuses } from "./levels.ts";
import { rateAnswer } from "./rates.ts";
import { covers, gateOf, headroomOf, isGuard, type Metadata, roomOf, ruleMatches } from "./rules.ts";
import { overageAnswer, partIn } from "./overage.ts";
import {
  type Balance,
  type Counter,
  isoOrNull,
  isSamePlace,
  type Place,
  shownCount,
  type SubscriptionRow,
  type User,
  type World,
} from "./state.ts";
import { inOrder, statusOf } from "./wallet.ts";

export function explain(world: World, input: Input, now: number): ModelReply {
  const asked = readAsked(world, input, "reserve", now);
  if ("reply" in asked) return asked.reply;
  const path = decidePath(world, asked, "headroom", now);
  const { own, alone } = path;
  const { primary } = alone;
  const plan = primary && world.plan(primary.planId);
  return success({
    allowed: path.reasons.length === 0,
    matched: path.matched,
    reasons: path.reasons,
    ...path.retry,
    text: naming([...namesOf(path), ...path.byRuns.flatMap(({ run }) => run.name ?? [])]),
    subscription: primary && plan
      ? { subscriptionId: primary.id, planId: plan.id, planName: plan.name }
      : null,
    ...rateAnswer(world.catalog, asked.rate, asked.rated),
    ...userAnswer(world, own, path, now),
    ...levelsAnswer(path, (level) => userAnswer(world, level, path, now)),
  });
}

/** What is said of one user of the path. */
function userAnswer(
  world: World,
  { asked, decision }: Level,
  { reasons }: PathDecision,
  now: number,
): WireData {
  const { primary } = decision;
  return {
    groups: primary
      ? world.plan(primary.planId).limits.map((group) => groupAnswer(world, asked, primary, group, now))
      : [],
    credits: creditsAnswer(world, asked, decision, reasons.length > 0, now),
  };
}

/** The labels at the first user who refuses, and the ids of those above who do. */
function namesOf({ own, above }: PathDecision): string[] {
  const [first = own, ...others] = [own, ...above].filter(refuses);
  const users = [first, ...others].filter((level) => level !== own).map((level) =>
    `"${level.asked.user.id}"`
  );
  const guards = first.guards.filter(({ reason }) => reason !== null).map(({ group }) => group.label);
  // Choice: where a guard refuses beside a member's share, the text may name either.
  const labels = first.decision.reason !== null || guards.length === 0 ? labelsOf(first) : guards;
  return [...first.full.length > 0 && guards.length > 0 ? [] : labels, ...users];
}

/** Choice: a refusal by limits names all groups without room, others need no label. */
function labelsOf({ decision: { reason, blocking, matched, shares }, full }: Level): string[] {
  if (reason === null) return full.map(({ of }) => of.group.label);
  if (reason === "limit_reached") return blocking.map(({ group }) => group.label);
  if (reason === "unpriced_model") {
    return matched.filter(({ group }) => group.unit === "cents").map(({ group }) => group.label);
  }
  if (reason !== "reservation_headroom_exceeded") return [];
  return shares.flatMap(({ unit, need, wallet }) => {
    const paid = wallet.reduce((sum, { remaining }) => sum + remaining, ZERO);
    const left = need - smaller(paid, need);
    if (need === ZERO && wallet.length > 0) return [];
    return matched.filter(({ group, room, gate, counter }) =>
      group.unit === unit && (need === ZERO ? shownCount(counter) >= gate : room < left)
    ).map(({ group }) => group.label);
  });
}

function groupAnswer(
  world: World,
  { user, event, metadata, amounts }: Asked,
  primary: SubscriptionRow,
  group: LimitGroup,
  now: number,
): WireData {
  const plan = world.plan(primary.planId);
  const quota = world.quota(primary, group, now);
  const headroom = isGuard(group) ? null : headroomOf(plan, group) ?? null;
  const { current, held, counter } = standing(world, user, primary, group, now);
  const isCovering = group.matches.some((rule) => ruleMatches(rule, event, metadata));
  const need = amounts[group.unit];
  const room = roomOf(quota, current - counter.overage, headroom ?? undefined, group.unit);
  const meeting = isCovering ? { why: "matched" } : meetingOf(group.matches, event, metadata);
  world.note(`explain: ${meeting.why}`);
  if (held > ZERO) world.note("explain: holds of a group");
  return {
    groupId: group.id,
    label: group.label,
    unit: group.unit,
    covers: isCovering,
    ...meeting,
    quota: toNumber(quota),
    isCustom: primary.customLimits.has(group.id),
    ...partsOf(world, primary, group, now),
    headroom: headroom && { mode: headroom.mode, value: headroom.value },
    gate: toNumber(gateOf(quota, headroom ?? undefined)),
    current: toNumber(current),
    ...overageAnswer(group, counter),
    held: toNumber(held),
    need: isCovering ? toNumber(need) : null,
    room: isCovering ? toNumber(room) : null,
    // Choice: whether what is sold fits is open.
    fits: !isCovering ? null : group.overage ? EITHER : need === ZERO ? room > ZERO : need <= room,
  };
}

/** What is counted of a group, and what open holds have of it. */
function standing(
  world: World,
  user: User,
  { planId, ...anchors }: SubscriptionRow,
  group: LimitGroup,
  now: number,
): { current: Micros; held: Micros; counter: Counter } {
  const place = { planId, groupId: group.id };
  if (isGuard(group)) {
    const current = guardCount(world, user, place, now);
    const held = smaller(heldOnGuard(world, user, place, now), current);
    return { current, held, counter: world.counterIn(user.id, planId, group.id, null) };
  }
  const window = world.windowOf(user.id, { planId, ...anchors }, group, now);
  const counter = world.counterIn(user.id, planId, group.id, window);
  const held = window === null ? ZERO : heldOn(world, user.id, { ...place, window });
  return { current: shownCount(counter), held: smaller(held, counter.count), counter };
}

/** What a quota is made of, unless it is the plan's own. */
function partsOf(world: World, primary: SubscriptionRow, group: LimitGroup, now: number): WireData {
  const added = world.added(primary, group, now);
  if (primary.quantity === 1 && added.length === 0) return {};
  const addOns = added.map(({ row: { id, planId, quantity }, quota }) => {
    return { subscriptionId: id, planId, quantity, quota: toNumber(quota) };
  });
  return {
    quotaParts: { own: toNumber(world.ownQuota(primary, group)), quantity: primary.quantity, addOns },
  };
}

/** What open holds have of a counter, those included that left it and that it still contains. */
function heldOn(world: World, userId: string, place: Place): Micros {
  return world.reservations.filter(({ user, state }) => user.id === userId && state === "held")
    .flatMap(({ lines }) => lines)
    .filter((line) => [line, ...line.left].some((each) => isSamePlace(each, place)))
    .reduce((sum, line) => sum + partIn(line, place), ZERO);
}

function meetingOf(rules: MatchRule[], event: string, metadata: Metadata | null) {
  const named = rules.filter((rule) => covers(rule.event, event)).map(({ metadata: wanted = {} }) =>
    Object.entries(wanted).map(([key, text]) => ({ key, wanted: text, given: formOf(metadata, key) }))
      .filter(({ wanted, given }) => wanted !== given)
  );
  // Sorting keeps the order of equals.
  const [nearest] = named.toSorted((a, b) => a.length - b.length);
  if (!nearest) return { why: "event" };
  const entries = nearest.map(({ key, wanted, given }) => [key, { wanted, given }] as const);
  return { why: "metadata", metadata: Object.fromEntries(entries) };
}

function formOf(metadata: Metadata | null, key: string): string | null {
  if (metadata === null || !Object.hasOwn(metadata, key)) return null;
  const value = metadata[key];
  return ["string", "number", "boolean"].includes(typeof value) ? String(value) : null;
}

function creditsAnswer(
  world: World,
  { user, event, metadata }: Asked,
  decision: Decision,
  isRefused: boolean,
  now: number,
) {
  const own = world.balances.filter((each) => each.userId === user.id && statusOf(each, now) === "active");
  return inOrder(own).map((balance) => ({
    balanceId: shownId(balance),
    packId: balance.pack.id,
    packName: balance.pack.name,
    unit: balance.unit,
    remaining: toNumber(balance.remaining),
    expiresAt: isoOrNull(balance.expiresAt),
    matches: balance.matches.some((rule) => ruleMatches(rule, event, metadata)),
    wouldPay: toNumber(isRefused ? ZERO : partOf(balance, decision)),
  }));
}

/** A balance pays what those before it leave. */
function partOf(balance: Balance, { shares }: Decision): Micros {
  const share = shares.find(({ wallet }) => wallet.includes(balance));
  if (!share) return ZERO;
  const before = share.wallet.slice(0, share.wallet.indexOf(balance));
  const left = before.reduce((rest, { remaining }) => rest - smaller(rest, remaining), share.byCredits);
  return smaller(left, balance.remaining);
}
