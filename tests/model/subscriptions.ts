// The two calls that write subscriptions: upsert and cancel, with the history rows they leave.
// Entries and promotions that follow from them are in entry.ts.

import { type Input, type ModelReply, type Plan, refusal, success } from "./document.ts";
import { hasFeatures, readFeatures } from "./features.ts";
import { fromNumber, type Micros, toNumber } from "./decimal.ts";
import { endRow, followPrimary, writeHistory } from "./entry.ts";
import { iso, isoOrNull, type SubscriptionRow, type User, type World } from "./state.ts";

export function subscribe(world: World, input: Input, now: number): ModelReply {
  const plan = findPlan(world, String(input["planId"]));
  if (!plan) return refusal("not_found");
  const user = world.user(String(input["userId"]));
  const row = findRow(world, user, input, now);
  // Choice: an archived plan stays open to a row that is active on it, and to nothing else.
  if (plan.archived && !(row && !row.ended && row.planId === plan.id)) return refusal("not_found");
  const limits = readLimits(plan, input["customLimits"]);
  if (limits === "unknown group") return refusal("invalid_request");
  const features = readFeatures(world, input["customFeatures"]);
  if (features === "unknown feature") return refusal("invalid_request");
  const written = row ?? createRow(world, user, plan, input, now);
  if (row) returnToPlan(world, user, row, plan, input, now);
  if (limits) written.customLimits = limits;
  if (features) written.customFeatures = features;
  written.endsAt = timeOf(input["endsAt"]);
  // Choice: a calendar plan's row keeps and shows its cycle anchor; it only has no effect.
  if (input["cycleStart"] !== undefined) written.cycleAnchorAt = timeOf(input["cycleStart"]);
  followPrimary(world, user, now);
  return success(subscriptionRecord(world, written));
}

export function createRow(
  world: World,
  user: User,
  plan: Plan,
  input: Input,
  now: number,
): SubscriptionRow {
  const row = world.name<SubscriptionRow>("sub_", {
    userId: user.id,
    planId: plan.id,
    provider: textOrNull(input["provider"]),
    externalId: textOrNull(input["externalId"]),
    startedAt: timeOf(input["startsAt"]) ?? now,
    endsAt: null,
    cycleAnchorAt: null,
    customLimits: new Map(),
    customFeatures: new Map(),
    ended: false,
  });
  user.subscriptions.push(row);
  writeHistory(world, user, "created", row, now);
  return row;
}

/**
 * An existing row is active again, and perhaps on another plan.
 * Choice: a row comes back (`reactivated`, with the plan that it had) when it has ended, or when the upsert
 * takes away an end that is still ahead. An upsert that names another end brings nothing back.
 */
function returnToPlan(
  world: World,
  user: User,
  row: SubscriptionRow,
  plan: Plan,
  input: Input,
  now: number,
): void {
  const comesBack = row.ended || (row.endsAt !== null && timeOf(input["endsAt"]) === null);
  if (comesBack) writeHistory(world, user, "reactivated", row, now);
  row.ended = false;
  if (row.planId === plan.id) return;
  const previousPlanId = row.planId;
  row.planId = plan.id;
  row.customLimits = new Map();
  // The message has the features after the whole call.
  const features = readFeatures(world, input["customFeatures"]);
  row.customFeatures = features instanceof Map ? features : new Map();
  row.endsAt = timeOf(input["endsAt"]);
  writeHistory(world, user, "plan_changed", row, now, { previousPlanId });
}

export function cancel(world: World, input: Input, now: number): ModelReply {
  const user = world.user(String(input["userId"]));
  const row = rowToCancel(user, input, now, world);
  if (typeof row === "string") return refusal(row);
  if (row.ended) return refusal("already_canceled");
  const endsAt = timeOf(input["endsAt"]) ?? now;
  const reason = textOrNull(input["reason"]);
  if (endsAt <= now) {
    endRow(world, user, row, now, "canceled", reason);
  } else {
    // Choice: moving a future end is a cancel of its own and writes its own row.
    row.endsAt = endsAt;
    writeHistory(world, user, "canceled", row, now, { reason });
  }
  return success({ subscriptionId: row.id, userId: user.id, planId: row.planId, endsAt: iso(endsAt) });
}

function rowToCancel(
  user: User,
  input: Input,
  now: number,
  world: World,
): SubscriptionRow | "not_found" | "invalid_request" | "already_canceled" {
  const row = findRow(world, user, input, now);
  if (row) return row;
  if (typeof input["provider"] === "string") return "not_found";
  const active = world.active(user, now);
  if (active.length === 1) return active[0]!;
  if (active.length > 1) return "invalid_request";
  // Choice: rows with ids, all of them ended, answer that they are canceled already.
  return user.subscriptions.length > 0 ? "already_canceled" : "not_found";
}

/**
 * The row of (user, provider, externalId), or the default row when no ids are given. Where a merge left
 * several: the best active one, else the latest.
 * Choice: the latest is the row that started last, of equal rows the one made last.
 */
export function findRow(world: World, user: User, input: Input, now: number): SubscriptionRow | undefined {
  const provider = textOrNull(input["provider"]);
  const externalId = textOrNull(input["externalId"]);
  const rows = user.subscriptions.filter((row) => row.provider === provider && row.externalId === externalId);
  if (rows.length > 1) world.note("merges: several rows of one key");
  const active = rows.filter((row) => world.active(user, now).includes(row));
  const latest = rows.toSorted((a, b) => b.startedAt - a.startedAt || b.no - a.no);
  return world.bestFirst(active)[0] ?? latest[0];
}

/** By exact id, else by name without regard to case. */
function findPlan(world: World, planId: string): Plan | undefined {
  const { plans } = world.catalog;
  return plans.find((plan) => plan.id === planId) ??
    plans.find((plan) => plan.name.toLowerCase() === planId.toLowerCase());
}

/** Undefined keeps the limits. */
function readLimits(plan: Plan, given: unknown): Map<string, Micros> | undefined | "unknown group" {
  if (given === undefined) return undefined;
  const limits = new Map<string, Micros>();
  for (const [groupId, limit] of Object.entries((given ?? {}) as Record<string, { quota: number }>)) {
    if (!plan.limits.some((group) => group.id === groupId)) return "unknown group";
    limits.set(groupId, fromNumber(limit.quota));
  }
  return limits;
}

export function subscriptionRecord(world: World, row: SubscriptionRow) {
  const features = row.customFeatures.size === 0 ? null : Object.fromEntries(row.customFeatures);
  return {
    subscriptionId: row.id,
    userId: row.userId,
    planId: row.planId,
    startedAt: iso(row.startedAt),
    endsAt: isoOrNull(row.endsAt),
    cycleAnchorAt: isoOrNull(row.cycleAnchorAt),
    provider: row.provider,
    externalId: row.externalId,
    customLimits: row.customLimits.size === 0 ? null : Object.fromEntries(
      [...row.customLimits].map(([groupId, quota]) => [groupId, { quota: toNumber(quota) }]),
    ),
    ...(hasFeatures(world) ? { customFeatures: features } : {}),
  };
}

function timeOf(value: unknown): number | null {
  return typeof value === "string" ? Date.parse(value) : null;
}

function textOrNull(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
