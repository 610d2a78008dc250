// The inner values of a workload's requests: which events a catalog knows, amounts near what is left,
// corrections in every unit, upserts of every kind, and a list of requests that must be refused.

import type { CatalogDocument, Input, MatchRule, Operation, Pack, Unit } from "./document.ts";
import { Random } from "./random.ts";
import { reported } from "./workload_reports.ts";

export interface KnownEvent {
  event: string;
  metadata?: Record<string, unknown>;
}

/** The member of a reserve that asks for a unit; for credits one that some rates look at. */
export const MEMBERS: Record<Unit, string> = {
  count: "count",
  tokens: "inputTokens",
  seconds: "quantity",
  cents: "inputCostCents",
  credits: "quantity",
};

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;

/** Concrete events that meet, and narrowly miss, the rules of a catalog. */
export function eventsOf(catalog: CatalogDocument): KnownEvent[] {
  const models = (catalog.models ?? []).flatMap(({ id, aliases = [] }) => [
    id,
    ...aliases.map((alias) => alias.replace("*", "2026-01-01")),
  ]);
  const known: KnownEvent[] = [{ event: "other.thing" }];
  const rules = [
    ...catalog.plans.flatMap((plan) => plan.limits).flatMap((group) => group.matches),
    ...(catalog.packs ?? []).flatMap(rulesOf),
    ...catalog.rates ?? [],
  ];
  for (const rule of rules) {
    const prefix = rule.event.replace(/\*$/, "");
    const events = rule.event === "*"
      ? ["anything"]
      : prefix !== rule.event
      ? [`${prefix}make`, ...models.map((model) => `${prefix}${model}`)]
      : [rule.event];
    for (const event of events) {
      known.push({ event }, { event, metadata: { model: models[0], note: null } });
      if (rule.metadata) known.push({ event, metadata: { ...rule.metadata, deep: { a: [1] } } });
      if (rule.metadata) known.push({ event, metadata: asValues(rule.metadata) });
    }
    known.push({ event: `${prefix.toUpperCase() || "A"}x` });
  }
  const texts = new Set<string>();
  return known.filter((each) => !texts.has(JSON.stringify(each)) && texts.add(JSON.stringify(each)));
}

/** A concrete event that a rule matches. */
export function eventOf({ event, metadata }: MatchRule): KnownEvent {
  return {
    event: event === "*" ? "other.thing" : event.replace(/\*$/, "make"),
    ...(metadata ? { metadata: { ...metadata } } : {}),
  };
}

/** Every rule of a pack, of all its items. */
export function rulesOf(pack: Pack): MatchRule[] {
  return [...pack.matches ?? [], ...pack.items.flatMap((item) => item.matches)];
}

/** The same metadata with booleans and numbers in place of their texts, which match all the same. */
function asValues(metadata: Record<string, string>): Record<string, unknown> {
  const value = (text: string) => text === "true" ? true : /^\d+$/.test(text) ? Number(text) : text;
  return Object.fromEntries(Object.entries(metadata).map(([key, text]) => [key, value(text)]));
}

/** An amount above 0: small, a fraction, close to what is left, or far too much. */
export function amount(random: Random, rooms: number[]): number {
  const kind = random.weighted({ small: 40, tenths: 20, room: 25, long: 6, big: 5, least: 4 });
  const room = rooms.length > 0 ? random.pick(rooms) : 5;
  const value = {
    small: () => random.whole(1, 3),
    tenths: () => random.whole(1, 25) / 10,
    room: () => room + random.pick([0, 0, 0, -0.1, 0.1, 0.000001, -0.000001, 1, -1]),
    long: () => random.whole(1, 9_999_999) / 10_000_000 + 0.0000015,
    big: () => random.pick([100, 12345.678901, 1e9]),
    least: () => 0.000001,
  }[kind]();
  const tidy = Number(Math.abs(value).toFixed(8));
  return tidy >= 0.000001 ? tidy : 1;
}

/**
 * The members of reserve, can-use and track beside the user.
 * @param sendsUnknown Whether some have an unknown member; the domain alone never sees those.
 */
export function quotaInput(
  random: Random,
  op: "reserve" | "track" | "canUse",
  known: KnownEvent,
  rooms: number[],
  sendsUnknown = true,
): Input {
  const input: Input = { event: known.event };
  if (known.metadata) input["metadata"] = structuredClone(known.metadata);
  if (random.chance(0.45)) input["quantity"] = amount(random, rooms);
  if (random.chance(0.35)) input["count"] = amount(random, rooms);
  if (random.chance(0.5)) input["inputTokens"] = random.chance(0.1) ? 0 : amount(random, rooms);
  if (random.chance(0.3)) input["inputCostCents"] = random.chance(0.1) ? 0 : amount(random, rooms);
  if (op === "reserve" && random.chance(0.3)) input["ttlSeconds"] = random.pick([10, 11, 60, 3600, 86400]);
  if (op === "track" && random.chance(0.3)) {
    input["costCents"] = random.chance(0.2) ? 0 : amount(random, rooms);
  }
  if (op === "track" && random.chance(0.3)) {
    for (const name of ["inputTokens", "inputCostCents", "costCents"]) delete input[name];
    Object.assign(input, reported(random, rooms));
  }
  if (op !== "track" && random.chance(0.3)) input["maxOutputTokens"] = amount(random, rooms);
  const { inputTokens } = input;
  if (op !== "track" && typeof inputTokens === "number" && random.chance(0.2)) {
    input["cacheWriteTokens"] = random.pick([0, inputTokens, inputTokens / 2]);
    if (random.chance(0.5)) input["cacheWrite1hTokens"] = Number(input["cacheWriteTokens"]) / 2;
  }
  // Drawn always, so that a seed has the same requests with unknown members and without.
  const hasUnknown = random.chance(0.03);
  if (hasUnknown && sendsUnknown) input["somethingElse"] = { unknown: true };
  if (random.chance(0.03)) input["count"] = null;
  return input;
}

/** The corrections of a commit, never a pair that excludes each other; in credits only where the catalog rates. */
export function correction(
  random: Random,
  rooms: number[],
  { rates }: Pick<CatalogDocument, "rates"> = {},
): Input {
  if (random.chance(0.4)) return {};
  const extra: Record<string, number> = {};
  const actual: Record<string, number> = {};
  const input: Input = {};
  const costly = random.chance(0.3);
  if (costly) input["costCents"] = random.chance(0.15) ? 0 : amount(random, rooms);
  const units = ["count", "tokens", "cents", "seconds"];
  for (const unit of rates === undefined ? units : [...units, "credits"]) {
    if (!random.chance(0.4) || (costly && unit === "cents")) continue;
    if (random.chance(0.5)) {
      actual[unit] = random.chance(0.15) ? 0 : amount(random, rooms);
    } else {
      const aliases: Record<string, string> = { tokens: "outputTokens", cents: "outputCostCents" };
      const name = random.chance(0.5) ? unit : aliases[unit] ?? unit;
      extra[name] = amount(random, rooms) * (random.chance(0.35) ? -1 : 1);
    }
  }
  if (random.chance(0.3)) {
    delete input["costCents"];
    const names = ["tokens", "cents", "seconds", "credits", "outputTokens", "outputCostCents"];
    for (const each of [extra, actual]) names.forEach((name) => delete each[name]);
    Object.assign(input, reported(random, rooms));
  }
  if (Object.keys(extra).length > 0) input["extra"] = extra;
  if (Object.keys(actual).length > 0) input["actual"] = actual;
  return input;
}

/** Every multiplier headroom of a catalog. */
export function multipliersOf(catalog: CatalogDocument): number[] {
  const settings = catalog.plans.flatMap((
    plan,
  ) => [plan.headroom, ...plan.limits.map((each) => each.headroom)]);
  return settings.flatMap((headroom) => headroom?.mode === "multiplier" ? [headroom.value] : []);
}

/** An end in the future; now and then a midnight, where windows end too and other rows may end with it. */
export function endOf(random: Random, nowMs: number): string {
  const midnight = (Math.floor(nowMs / DAY_MS) + random.pick([1, 2])) * DAY_MS;
  const away = nowMs + random.pick([1000, HOUR_MS, 3 * DAY_MS, 40 * DAY_MS]) + random.whole(1, 99_999);
  return new Date(random.chance(0.25) ? midnight : away).toISOString();
}

/** The members of an upsert beside the user; a plain one when `simple`. */
export function upsertInput(random: Random, catalog: CatalogDocument, nowMs: number, simple: boolean): Input {
  const plan = random.pick(catalog.plans);
  if (simple) return { planId: plan.id };
  const input: Input = { planId: random.chance(0.1) ? plan.name.toUpperCase() : plan.id };
  if (random.chance(0.03)) input["planId"] = "plan_unknown";
  if (random.chance(0.5)) {
    const [provider, externalId] = random.pick(
      [["stripe", "one"], ["stripe", "one"], ["apple", "two"]] as const,
    );
    Object.assign(input, { provider, externalId });
  }
  const jitter = () => random.whole(0, 99_999);
  const iso = (at: number) => new Date(at).toISOString();
  if (random.chance(0.2)) input["endsAt"] = endOf(random, nowMs);
  if (random.chance(0.2)) {
    input["startsAt"] = iso(nowMs - random.pick([HOUR_MS, 10 * DAY_MS, 45 * DAY_MS]) - jitter());
  }
  if (random.chance(0.15)) {
    input["cycleStart"] = random.pick([
      null,
      "2025-12-31T23:59:59.999Z",
      "2024-02-29T00:00:00.000Z",
      iso(nowMs + 9 * DAY_MS + jitter()),
      iso(nowMs - 3 * DAY_MS - jitter()),
    ]);
  }
  if (random.chance(0.15)) {
    const { id } = random.pick(plan.limits);
    const quota = random.pick([0, 1, 2.5, 40]);
    input["customLimits"] = random.pick([null, {}, { [id]: { quota } }, { [id]: { quota } }]);
    if (random.chance(0.1)) input["customLimits"] = { lg_unknown: { quota } };
  }
  if (!hasOffers(catalog)) return { ...input, ...customFeaturesOf(catalog, nowMs) };
  if (random.chance(0.15)) input["quantity"] = random.pick([1, 2, 3, 10_000]);
  if (random.chance(0.35)) input["trial"] = random.chance(0.8);
  return random.chance(0.5) ? scheduledInput(random, input, nowMs) : input;
}

/** The same change, asked for ahead. */
function scheduledInput(random: Random, { planId, provider, externalId }: Input, nowMs: number): Input {
  const away = random.pick([0, 1, 40, 5000, 60_000, HOUR_MS, 3 * DAY_MS]) + random.whole(0, 2);
  const at = random.chance(0.3) ? "period_end" : new Date(nowMs + away).toISOString();
  return { planId, ...provider === undefined ? {} : { provider, externalId }, at };
}

/** Whether a catalog is one to change seats on, and all that plans offer beside quotas. */
export function hasOffers({ plans }: CatalogDocument): boolean {
  return plans.some(({ perSeat }) => perSeat === true);
}

/** Custom features by a random of their own, so that a catalog without features keeps its workloads. */
function customFeaturesOf(catalog: CatalogDocument, nowMs: number): Input {
  const random = new Random(nowMs);
  if (catalog.featureDefaults === undefined || random.chance(0.7)) return {};
  const customFeatures = random.pick<unknown>([
    null,
    {},
    { seats: random.whole(0, 9) },
    { sso: false, models: [], "export.pdf": true },
    { tier: "own" },
    { tier: 1 },
    { unknown: true },
  ]);
  return { customFeatures };
}

const EVENT = { userId: "user-1", event: "image.make" };
const SETTLE = { reservationId: "rsv_unknown" };
const GRANT = { userId: "user-1", packId: "cpk_none" };

/** Requests that must answer invalid_request, whatever the state. */
export const INVALID: { op: Operation; input: Input }[] = [
  { op: "reserve", input: { event: "image.make" } },
  { op: "reserve", input: { ...EVENT, userId: "" } },
  { op: "reserve", input: { ...EVENT, userId: "u".repeat(201) } },
  { op: "reserve", input: { ...EVENT, userId: 7 } },
  { op: "reserve", input: { ...EVENT, userId: "a\0b" } },
  { op: "reserve", input: { ...EVENT, event: "image.*" } },
  { op: "reserve", input: { ...EVENT, event: "line\nbreak" } },
  { op: "reserve", input: { ...EVENT, quantity: 0 } },
  { op: "reserve", input: { ...EVENT, quantity: "1" } },
  { op: "reserve", input: { ...EVENT, count: -1 } },
  { op: "reserve", input: { ...EVENT, inputTokens: -0.5 } },
  { op: "reserve", input: { ...EVENT, inputCostCents: 1e13 } },
  { op: "reserve", input: { ...EVENT, ttlSeconds: 9 } },
  { op: "reserve", input: { ...EVENT, ttlSeconds: 86401 } },
  { op: "reserve", input: { ...EVENT, metadata: [1] } },
  { op: "reserve", input: { ...EVENT, metadata: { text: "x".repeat(17_000) } } },
  { op: "track", input: { ...EVENT, costCents: -1 } },
  { op: "track", input: { userId: "user-1" } },
  { op: "canUse", input: { ...EVENT, count: 0 } },
  { op: "commit", input: {} },
  { op: "commit", input: { ...SETTLE, extra: { tokens: 1 }, actual: { tokens: 1 } } },
  { op: "commit", input: { ...SETTLE, extra: { outputTokens: 1 }, actual: { tokens: 1 } } },
  { op: "commit", input: { ...SETTLE, extra: { tokens: 1, outputTokens: 1 } } },
  { op: "commit", input: { ...SETTLE, extra: { cents: 1, outputCostCents: 1 } } },
  { op: "commit", input: { ...SETTLE, extra: { count: 1 }, actual: { count: 1 } } },
  { op: "commit", input: { ...SETTLE, costCents: 1, actual: { cents: 1 } } },
  { op: "commit", input: { ...SETTLE, costCents: 1, extra: { cents: 1 } } },
  { op: "commit", input: { ...SETTLE, costCents: 1, extra: { outputCostCents: 1 } } },
  { op: "commit", input: { ...SETTLE, actual: { seconds: -1 } } },
  { op: "commit", input: { ...SETTLE, extra: 3 } },
  { op: "reserve", input: { ...EVENT, maxOutputTokens: 0 } },
  { op: "canUse", input: { ...EVENT, tokens: 5 } },
  { op: "track", input: { ...EVENT, cost: 5 } },
  { op: "track", input: { ...EVENT, usage: {} } },
  { op: "track", input: { ...EVENT, usage: { inputTokens: 5 }, inputTokens: 5 } },
  { op: "track", input: { ...EVENT, usage: { calls: 1 }, costCents: 5 } },
  { op: "commit", input: { ...SETTLE, outputTokens: 5 } },
  { op: "commit", input: { ...SETTLE, usage: { inputTokens: -1 } } },
  { op: "commit", input: { ...SETTLE, usage: { outputTokens: 1, images: 1 } } },
  { op: "commit", input: { ...SETTLE, usage: { inputTokens: 1, cachedInputTokens: 2 } } },
  { op: "commit", input: { ...SETTLE, usage: { reasoningTokens: 1 } } },
  { op: "commit", input: { ...SETTLE, usage: { calls: 1 }, providerUsage: { input_tokens: 1 } } },
  { op: "commit", input: { ...SETTLE, usage: { calls: 1 }, extra: { outputTokens: 1 } } },
  { op: "commit", input: { ...SETTLE, usage: { seconds: 1 }, actual: { seconds: 1 } } },
  { op: "commit", input: { ...SETTLE, usage: { calls: 1 }, costCents: 1 } },
  { op: "commit", input: { ...SETTLE, providerUsage: {} } },
  { op: "reserve", input: { ...EVENT, max_tokens: 5 } },
  { op: "reserve", input: { ...EVENT, user_id: "user-2" } },
  { op: "reserve", input: { ...EVENT, costCents: 5 } },
  { op: "reserve", input: { ...EVENT, model: "gpt" } },
  { op: "canUse", input: { ...EVENT, ttl: 60 } },
  { op: "canUse", input: { ...EVENT, usage: { calls: 1 } } },
  { op: "track", input: { ...EVENT, maxOutputTokens: 5 } },
  { op: "track", input: { ...EVENT, input_cost_cents: 5 } },
  { op: "commit", input: { ...SETTLE, inputTokens: 5 } },
  { op: "commit", input: { ...SETTLE, quantity: 5 } },
  { op: "commit", input: { ...SETTLE, extra: { images: 1 } } },
  { op: "commit", input: { ...SETTLE, actual: { outputTokens: 1 } } },
  { op: "release", input: { ...SETTLE, tokens: 5 } },
  { op: "release", input: { reservationId: 5 } },
  { op: "release", input: { ...SETTLE, reason: 5 } },
  { op: "usage", input: {} },
  { op: "users", input: { userId: "u".repeat(201) } },
  { op: "subscribe", input: { userId: "user-1" } },
  { op: "subscribe", input: { userId: "user-1", planId: "plan_none", provider: "stripe" } },
  { op: "subscribe", input: { userId: "user-1", planId: "plan_none", endsAt: "2001-01-01T00:00:00.000Z" } },
  { op: "subscribe", input: { userId: "user-1", planId: "plan_none", startsAt: "2999-01-01T00:00:00.000Z" } },
  { op: "subscribe", input: { userId: "user-1", planId: "plan_none", cycleStart: "soon" } },
  { op: "subscribe", input: { userId: "user-1", planId: "plan_none", quantity: 0 } },
  { op: "subscribe", input: { userId: "user-1", planId: "plan_none", quantity: 1.5 } },
  { op: "subscribe", input: { userId: "user-1", planId: "plan_none", quantity: 10_001 } },
  { op: "cancel", input: { userId: "user-1", externalId: "one" } },
  { op: "cancel", input: { userId: "user-1", endsAt: "2001-01-01T00:00:00.000Z" } },
  { op: "grant", input: { packId: "cpk_none" } },
  { op: "grant", input: { userId: "user-1" } },
  { op: "grant", input: { ...GRANT, packId: 7 } },
  { op: "grant", input: { ...GRANT, externalRef: "" } },
  { op: "grant", input: { ...GRANT, externalRef: "r".repeat(201) } },
  { op: "grant", input: { ...GRANT, expiresAt: "soon" } },
  { op: "grant", input: { ...GRANT, expiresAt: 1 } },
  { op: "grant", input: { ...GRANT, source: "gift" } },
  { op: "grant", input: { ...GRANT, notes: "n".repeat(501) } },
  { op: "revoke", input: {} },
  { op: "revoke", input: { balanceId: 5 } },
  { op: "revoke", input: { balanceId: "crb_unknown", reason: "r".repeat(501) } },
  { op: "credits", input: {} },
  { op: "credits", input: { userId: "user-1", includeExpired: "yes" } },
  { op: "ledger", input: {} },
  { op: "ledger", input: { userId: "user-1", limit: 0 } },
  { op: "ledger", input: { userId: "user-1", limit: 501 } },
  { op: "ledger", input: { userId: "user-1", limit: 1.5 } },
  { op: "ledger", input: { userId: "user-1", cursor: "no cursor" } },
  { op: "events", input: { limit: 0 } },
  { op: "events", input: { limit: 101 } },
  { op: "events", input: { offset: 10001 } },
  { op: "events", input: { offset: -1 } },
];
