// The two calls that write subscriptions: upsert and cancel, with the history rows they leave.
// Entries and promotions that follow from them are in entry.ts.

import { type Input, type ModelReply, type Plan, refusal, success } from "./document.ts";
import { hasFeatures, readFeatures } from "./features.ts";
import { fromNumber, type Micros, toNumber } from "./decimal.ts";
import { endRow, followPrimary, holdPlan, writeHistory } from "./entry.ts";
import { isActive, iso, isoOrNull, type SubscriptionRow, type User, type World } from "./state.ts";

export function subscribe(world: World, input: Input, now: number): ModelReply {
  if (input["at"] !== undefined) return schedule(world, input, now);
  const plan = findPlan(world, String(input["planId"]));
  if (!plan) return refusal("not_found");
  const user = world.user(String(input["userId"]));
  const row = findRow(world, user, input, now);
  // Choice: an archived plan stays open to a row that is active on it, and to nothing else.
  if (plan.archived && !(row && !row.ended && row.planId === plan.id)) return refusal("not_found");
  const limits = readLimits(plan, input["customLimits"]);
  if (plan.addon && textOrNull(input["provider"]) === null) return refusal("invalid_request");
  if (limits === "unknown group") return refusal("invalid_request");
  const features = readFeatures(world, input["customFeatures"]);
  if (features === "unknown feature") return refusal("invalid_request");
  const runs = row !== undefined && !row.ended && row.planId === plan.id && row.trial !== null;
  const begins = input["trial"] === true && !runs;
  if (begins && !plan.trial) return refusal("invalid_request");
  if (begins && user.subscriptions.some((each) => hasHad(each, plan))) {
    world.note("trials: used");
    return refusal("trial_used");
  }
  const before = row && factsOf(row);
  const written = row ?? createRow(world, user, plan, input, now);
  if (row) returnToPlan(world, user, row, plan, input, now);
  if (limits) written.customLimits = limits;
  if (features) written.customFeatures = features;
  if (typeof input["quantity"] === "number") written.quantity = input["quantity"];
  written.endsAt = timeOf(input["endsAt"]);
  // Choice: a calendar plan's row keeps and shows its cycle anchor; it only has no effect.
  if (input["cycleStart"] !== undefined) written.cycleAnchorAt = timeOf(input["cycleStart"]);
  if (begins) beginTrial(world, written, plan, now);
  if (input["trial"] === true && runs) world.note("trials: asked for again");
  if (input["trial"] === false) {
    if (written.trial !== null) world.note("trials: paid");
    written.trial = null;
  }
  if (factsOf(written) !== before) dropScheduled(world, written);
  followPrimary(world, user, now);
  return success(subscriptionRecord(world, written));
}

/** Whether a row had the trial of a plan, or has the plan. */
function hasHad({ trials, ended, planId }: SubscriptionRow, plan: Plan): boolean {
  return trials.includes(plan.id) || (!ended && planId === plan.id);
}

/** Choice: a trial begins when it is asked for, whatever the start of its row. */
function beginTrial(world: World, row: SubscriptionRow, plan: Plan, now: number): void {
  const { days, thenPlanId = null } = plan.trial!;
  row.trial = { endsAt: now + days * 24 * 60 * 60 * 1000, thenPlanId };
  row.trials = [...row.trials, plan.id];
  world.note("trials: begun");
}

/** Everything of a row that a call can change. */
export function factsOf(row: SubscriptionRow): string {
  const { planId, endsAt, ended, cycleAnchorAt, quantity, trial } = row;
  const limits = [...row.customLimits].map(([id, quota]) => `${id} ${quota}`).sort();
  const features = [...row.customFeatures].map((each) => JSON.stringify(each)).sort();
  return JSON.stringify([planId, endsAt, ended, cycleAnchorAt, quantity, trial, limits, features]);
}

/** Forgets the change that was asked for ahead. */
export function dropScheduled(world: World, row: SubscriptionRow): void {
  if (row.scheduled !== null) world.note("scheduled: dropped by another change");
  row.scheduled = null;
}

/** Asks ahead for a change of plan, or drops the one that was asked for. */
function schedule(world: World, input: Input, now: number): ModelReply {
  const user = world.user(String(input["userId"]));
  const row = findRow(world, user, input, now);
  const plan = findPlan(world, String(input["planId"]));
  if (!row || !plan || plan.archived || row.ended) return refusal("not_found");
  if (plan.addon && row.provider === null) return refusal("invalid_request");
  if (plan.id === row.planId) return refusal("invalid_request");
  const at = input["at"] === "period_end" ? world.window(row, now).end : timeOf(input["at"]);
  if (at === null || at <= now) return refusal("invalid_request");
  if (row.scheduled !== null) world.note("scheduled: replaced");
  row.scheduled = { at, planId: plan.id };
  return success(subscriptionRecord(world, row));
}

export function unschedule(world: World, input: Input, now: number): ModelReply {
  const user = world.user(String(input["userId"]));
  const row = rowToCancel(user, input, now, world);
  if (row === "invalid_request") return refusal(row);
  if (typeof row === "string" || row.scheduled === null) return refusal("not_found");
  row.scheduled = null;
  world.note("scheduled: dropped by a call");
  return success({ ...subscriptionRecord(world, row), scheduled: null });
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
    quantity: Number(input["quantity"] ?? 1),
    scheduled: null,
    trial: null,
    trials: [],
    held: new Map(),
    ended: false,
  });
  holdPlan(row, plan.id, row.startedAt);
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
  holdPlan(row, plan.id, now);
  row.customLimits = new Map();
  // The message has the features after the whole call.
  const features = readFeatures(world, input["customFeatures"]);
  row.customFeatures = features instanceof Map ? features : new Map();
  row.endsAt = timeOf(input["endsAt"]);
  if (row.trial !== null) world.note("trials: ended by another plan");
  row.trial = null;
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
    dropScheduled(world, row);
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
  // Choice: add-ons count where nothing else is active.
  const ofPlans = world.active(user, now);
  const active = ofPlans.length > 0 ? ofPlans : user.subscriptions.filter((row) => isActive(row, now));
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
  const active = rows.filter((row) => isActive(row, now));
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
  const hasTrials = world.catalog.plans.some(({ trial }) => trial !== undefined);
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
    ...row.quantity === 1 ? {} : { quantity: row.quantity },
    ...hasTrials || row.trial ? { trialEndsAt: isoOrNull(row.trial?.endsAt ?? null) } : {},
    ...row.scheduled && { scheduled: { at: iso(row.scheduled.at), planId: row.scheduled.planId } },
    ...(hasFeatures(world) ? { customFeatures: features } : {}),
  };
}

function timeOf(value: unknown): number | null {
  return typeof value === "string" ? Date.parse(value) : null;
}

function textOrNull(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
