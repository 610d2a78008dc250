// The calls that change nothing: usage, users, customers, the events feed and its detail record.
// Prompt logs are outside this model: it sends none and predicts none.

import { balancesShown, shownId } from "./credits.ts";
import {
  ANYTHING,
  type Input,
  type LimitGroup,
  type ModelReply,
  type ModelRow,
  refusal,
  success,
  type WireData,
} from "./document.ts";
import { atLeastZero, type Micros, toNumber, ZERO } from "./decimal.ts";
import { shownFeatures } from "./features.ts";
import { guardCount, guardWindow } from "./guards.ts";
import type { Report } from "./reports.ts";
import { covers, isGuard } from "./rules.ts";
import { memberOf } from "./shares.ts";
import { sellingAnswer } from "./overage.ts";
import {
  type Counter,
  type EventRow,
  type HistoryRow,
  isActive,
  iso,
  isoOrNull,
  shownCount,
  type SubscriptionRow,
  type User,
  type World,
} from "./state.ts";
import { subscriptionRecord } from "./subscriptions.ts";
import { followOrder } from "./ties.ts";
import { childrenOf, limitsShown, usersAbove } from "./tree.ts";

const HISTORY_ROWS_SHOWN = 50;
const DEFAULT_LIMIT = 20;

export function usage(world: World, input: Input, now: number): ModelReply {
  const user = world.user(String(input["userId"]));
  const event = typeof input["event"] === "string" ? input["event"] : null;
  const levels = usersAbove(world, user).map((each) => levelOf(world, each, now, event, user));
  return success({ ...usageOf(world, user, now, event), ...(input["levels"] === true ? { levels } : {}) });
}

export function users(world: World, input: Input, now: number, observed?: ModelReply): ModelReply {
  const user = world.user(String(input["userId"]));
  const primary = world.primary(user, now);
  if (observed?.data) {
    const shown = observed.data["history"] as WireData[] | undefined ?? [];
    followOrder(user.history, () => true, null, shown, historyAnswer);
  }
  return success({
    ...usageOf(world, user, now, null),
    ...placeOf(world, user),
    aliases: world.aliasesOf(user.id),
    subscription: primary ? subscriptionRecord(world, primary) : null,
    ...addOnsShown(world, user, now),
    history: user.history.toReversed().slice(0, HISTORY_ROWS_SHOWN).map(historyAnswer),
  });
}

/** The add-ons in force, where the catalog has any. */
function addOnsShown(world: World, user: User, now: number): WireData {
  if (!world.catalog.plans.some(({ addon }) => addon === true)) return {};
  const rows = user.subscriptions.filter((row) => world.isAddOn(row) && isActive(row, now));
  return { addOns: rows.map((row) => subscriptionRecord(world, row)) };
}

/** The place of a user in its tree. Choice: that of a parent at the top may be left out, which has a test of its own. */
function placeOf(world: World, user: User): WireData {
  const above = usersAbove(world, user).map(({ id }) => id);
  if (above.length > 0) {
    // Choice: limits of its own are shown where there are any.
    const limits = user.memberLimits === null ? {} : { memberLimits: limitsShown(user) };
    return { parentId: above[0], path: [user.id, ...above], ...limits };
  }
  return childrenOf(world, user).length > 0 ? { parentId: ANYTHING, path: ANYTHING } : {};
}

function historyAnswer(row: HistoryRow) {
  return {
    id: row.id,
    type: row.type,
    subscriptionId: row.subscription.id,
    planId: row.planId,
    previousPlanId: row.previousPlanId,
    reason: row.reason,
    at: iso(row.at),
  };
}

export function customer(world: World, input: Input, now: number): ModelReply {
  const user = world.user(String(input["userId"]));
  return success({
    canonicalId: user.id,
    aliases: world.aliasesOf(user.id),
    duplicateActiveSubscriptions: duplicatesOf(world, user, now),
  });
}

function usageOf(world: World, user: User, now: number, event: string | null) {
  return {
    ...levelOf(world, user, now, event),
    credits: balancesShown(world, user.id, now, { event }),
    ...shownFeatures(world, user, now),
    duplicateActiveSubscriptions: duplicatesOf(world, user, now),
  };
}

/** The counters of one user of a path, above the caller with the caller's shares. */
function levelOf(world: World, user: User, now: number, event: string | null, member: User | null = null) {
  const primary = world.primary(user, now);
  const window = primary && world.window(primary, now);
  const shown = (group: LimitGroup) =>
    event === null || group.matches.some((rule) => covers(rule.event, event));
  const groups = primary ? world.plan(primary.planId).limits.filter(shown) : [];
  return {
    userId: user.id,
    period: window && { start: iso(window.start), end: isoOrNull(window.end) },
    counters: primary
      ? groups.map((group) => ({
        ...counterAnswer(world, primary, group, now),
        ...(member ? memberAnswer(world, member, primary, group, now) : {}),
      }))
      : [],
  };
}

/** The caller's share of a group of the plan in force of a user above; a guard has none. */
export function memberAnswer(
  world: World,
  member: User,
  row: SubscriptionRow,
  group: LimitGroup,
  now: number,
): WireData {
  if (isGuard(group)) return {};
  const window = world.windowOf(row.userId, row, group, now);
  const { count, quota } = memberOf(world, member, world.user(row.userId), { group, window, now });
  return { member: { count: toNumber(count), quota: quota === null ? null : toNumber(quota) } };
}

/** The cost of an event as commit and track show it. */
export function costAnswer(
  row: ModelRow | undefined,
  cents: Micros,
  countsCentsNobodyTold: boolean,
  report: Report | null,
): WireData {
  const isUnpriced = row === undefined && countsCentsNobodyTold;
  const warnings = [
    ...(isUnpriced ? ["unpriced_model"] : []),
    ...(report?.isOtherTier ? ["tier_unpriced"] : []),
  ];
  return {
    cost: { cents: toNumber(cents), priced: row !== undefined, model: row?.id ?? null },
    ...(warnings.length > 0 ? { warnings } : {}),
  };
}

/** A counter as usage, users and track show it. */
export function counterAnswer(world: World, row: SubscriptionRow, group: LimitGroup, now: number) {
  const counter = counterOf(world, row, group, now);
  const place = { planId: row.planId, groupId: group.id };
  const count = isGuard(group) ? guardCount(world, world.user(row.userId), place, now) : shownCount(counter);
  const quota = world.quota(row, group, now);
  const filters: Record<string, string[]> = {};
  for (const rule of group.matches) {
    for (const [key, value] of Object.entries(rule.metadata ?? {})) {
      filters[key] = [...new Set([...(filters[key] ?? []), value])];
    }
  }
  return {
    groupId: group.id,
    event: group.matches[0]?.event,
    label: group.label,
    unit: group.unit,
    quota: toNumber(quota),
    count: toNumber(count),
    ...sellingAnswer(world.user(row.userId), group, counter),
    remaining: toNumber(atLeastZero(quota - (count - counter.overage))),
    costCents: toNumber(counter.cost),
    filters,
    ...ownWindow(world, row, group, now),
  };
}

/** The counter of the running window; for a guard one that is never kept. */
function counterOf(world: World, row: SubscriptionRow, group: LimitGroup, now: number): Counter {
  const window = isGuard(group) ? null : world.windowOf(row.userId, row, group, now);
  return world.counterIn(row.userId, row.planId, group.id, window);
}

/** The window of a group that does not count by the plan's period. */
function ownWindow(world: World, row: SubscriptionRow, group: LimitGroup, now: number): WireData {
  if (group.period === undefined) return {};
  if (isGuard(group)) return { period: null, window: guardWindow(group) };
  const window = world.windowOf(row.userId, row, group, now);
  return { period: window && { start: iso(window.start), end: isoOrNull(window.end) } };
}

/** The active subscriptions beside the primary, or null. */
export function duplicatesOf(world: World, user: User, now: number) {
  const primary = world.primary(user, now);
  const others = world.active(user, now).filter((row) => row !== primary);
  if (!primary || others.length === 0) return null;
  return {
    primary: subscriptionRef(world, primary),
    duplicates: others.map((row) => subscriptionRef(world, row)),
  };
}

export function subscriptionRef(world: World, row: SubscriptionRow) {
  return {
    subscriptionId: row.id,
    planId: row.planId,
    planName: world.plan(row.planId).name,
    provider: row.provider,
    externalId: row.externalId,
    startedAt: iso(row.startedAt),
    endsAt: isoOrNull(row.endsAt),
  };
}

export function events(world: World, input: Input): ModelReply {
  const limit = typeof input["limit"] === "number" ? input["limit"] : DEFAULT_LIMIT;
  const offset = typeof input["offset"] === "number" ? input["offset"] : 0;
  const userId = typeof input["userId"] === "string" ? world.user(input["userId"]).id : null;
  // Newest first; of equal times the later written first, which is the order of writing turned round.
  const wanted = world.events.toReversed().filter((event) =>
    (userId === null || event.userId === userId) &&
    (input["eventType"] === undefined || event.eventType === input["eventType"]) &&
    (input["runId"] === undefined || event.run?.id === input["runId"])
  );
  return success({
    events: wanted.slice(offset, offset + limit).map(eventAnswer),
    limit,
    offset,
    logPromptsEnabled: world.catalog.settings?.promptLogging ?? false,
  });
}

export function event(world: World, input: Input): ModelReply {
  const row = world.events.find((each) => each.id === input["eventId"]);
  if (!row) return refusal("not_found");
  return success({
    ...eventAnswer(row),
    metadata: row.metadata,
    matchedGroupIds: row.matchedGroupIds,
    // Choice: an amount of 0 was not charged.
    amounts: row.amounts.filter(({ amount }) => amount > ZERO).map((charge) => ({
      ...("balance" in charge ? { balanceId: shownId(charge.balance) } : { groupId: charge.groupId }),
      unit: charge.unit,
      amount: toNumber(charge.amount),
      ...(charge.user ? { userId: charge.user.id } : {}),
    })),
    prompt: null,
    response: null,
    errorCode: world.catalog.settings?.promptLogging ? row.errorCode : null,
    reservationId: row.reservation?.id ?? null,
    reason: row.reason,
    uncovered: Object.fromEntries(
      Object.entries(row.uncovered).map(([unit, amount]) => [unit, toNumber(amount)]),
    ),
  });
}

/** Choice: credits that the caller told are shown without a rate too. */
function creditsOfEvent({ rated }: EventRow): WireData {
  const isShown = rated !== undefined && (rated.rated || rated.total > ZERO);
  return isShown ? { costCredits: toNumber(rated.total) } : {};
}

function eventAnswer(row: EventRow) {
  return {
    id: row.id,
    endUserId: row.userId,
    eventType: row.eventType,
    quantity: toNumber(row.quantity),
    costCents: toNumber(row.cost),
    ...creditsOfEvent(row),
    matchStatus: row.matchStatus,
    createdAt: iso(row.createdAt),
    hasLog: false,
    promptPreview: null,
    ...(row.run === null ? {} : { runId: row.run.id }),
  };
}
