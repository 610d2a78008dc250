// Wire inputs of the model's requests as commands of the domain.

import type { FeatureValues } from "../../src/domain/catalog/feature.ts";
import { amountOf } from "../../src/domain/values/amount.ts";
import type { Commands } from "../../src/domain/command.ts";
import type { Correction } from "../../src/domain/metering/commit.ts";
import type { Unit } from "../../src/domain/catalog/plan.ts";
import { readProviderUsage } from "../../src/domain/pricing/provider_usage.ts";
import { NO_USAGE, type Usage } from "../../src/domain/pricing/usage.ts";
import type { Millis } from "../../src/domain/values/period.ts";
import type { Input } from "../model/document.ts";

export function callOf(input: Input): Commands["canUse"]["input"] {
  const members = input["metadata"] as Record<string, unknown> | null | undefined;
  return {
    event: String(input["event"]),
    metadata: members == null ? null : { text: JSON.stringify(members), members },
    size: {
      quantity: amountOrNull(input["quantity"]),
      count: amountOrNull(input["count"]),
      inputTokens: amountOrNull(input["inputTokens"]),
      inputCostCents: amountOrNull(input["inputCostCents"]),
      maxOutputTokens: amountOrNull(input["maxOutputTokens"]),
      cacheWriteTokens: amountOrNull(input["cacheWriteTokens"]),
      cacheWrite1hTokens: amountOrNull(input["cacheWrite1hTokens"]),
    },
    runId: textOrNull(input["runId"]),
  };
}

/** What a commit or a track reports; only well-formed objects come here. */
export function usageOf({ usage, providerUsage }: Input): Usage | null {
  if (providerUsage != null) return readProviderUsage(providerUsage as Input) as Usage;
  if (usage == null) return null;
  const amounts = Object.entries(usage).map(([name, value]) => [name, amountOrNull(value)]);
  return { ...NO_USAGE, ...Object.fromEntries(amounts) };
}

export function commitOf(input: Input): Commands["commit"]["input"] {
  const extra = (input["extra"] ?? {}) as Input;
  const actual = (input["actual"] ?? {}) as Input;
  return {
    reservationId: String(input["reservationId"]),
    costCents: amountOrNull(input["costCents"]),
    extra: correctionOf({
      ...extra,
      tokens: extra["tokens"] ?? extra["outputTokens"],
      cents: extra["cents"] ?? extra["outputCostCents"],
    }),
    actual: correctionOf(actual),
    usage: usageOf(input),
    response: null,
  };
}

function correctionOf(members: Input): Correction {
  const units = (["count", "tokens", "cents", "seconds", "credits"] as const).flatMap((unit) => {
    const amount = amountOrNull(members[unit]);
    return amount === null ? [] : [[unit, amount]];
  });
  return Object.fromEntries(units);
}

export function subscribeOf(input: Input): Commands["subscribe"]["input"] {
  const limits = input["customLimits"] as Record<string, { quota: number }> | null | undefined;
  const cycleStart = input["cycleStart"];
  return {
    plan: String(input["planId"]),
    ...rowIdsOf(input),
    customLimits: limits == null
      ? limits
      : Object.fromEntries(Object.entries(limits).map(([id, { quota }]) => [id, amountOf(quota)])),
    customFeatures: input["customFeatures"] as FeatureValues | null | undefined,
    startsAt: timeOrNull(input["startsAt"]),
    endsAt: timeOrNull(input["endsAt"]),
    cycleStart: cycleStart === undefined ? undefined : timeOrNull(cycleStart),
    quantity: numberIfAny(input["quantity"]),
    trial: typeof input["trial"] === "boolean" ? input["trial"] : undefined,
  };
}

export function scheduleOf(input: Input): Commands["schedule"]["input"] {
  const at = input["at"] === "period_end" ? "period_end" as const : Date.parse(String(input["at"]));
  return { ...rowIdsOf(input), change: { plan: String(input["planId"]), at } };
}

export function rowIdsOf(input: Input) {
  return { provider: textOrNull(input["provider"]), externalId: textOrNull(input["externalId"]) };
}

export function usageInputOf(input: Input): Commands["usage"]["input"] {
  return { event: textOrNull(input["event"]), withLevels: input["levels"] === true };
}

export function userOf(input: Input): string {
  return String(input["userId"]);
}

export function amountOrNull(value: unknown): bigint | null {
  return typeof value === "number" ? amountOf(value) : null;
}

function numberIfAny(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

export function timeOrNull(value: unknown): Millis | null {
  return typeof value === "string" ? Date.parse(value) : null;
}

export function textOrNull(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

/** A subscription as its provider has it; without a plan it is over. */
export function mirrorOf(input: Input): Commands["mirror"]["input"] {
  const { planId } = input;
  const endsAt = timeOrNull(input["endsAt"]);
  return {
    provider: String(input["provider"]),
    externalId: String(input["externalId"]),
    state: typeof planId === "string"
      ? { planId, startsAt: timeOrNull(input["startsAt"]), endsAt, quantity: numberIfAny(input["quantity"]) }
      : { endedAt: timeOrNull(input["endedAt"]), reason: textOrNull(input["reason"]) },
  };
}

export function paidGrantOf(input: Input): Commands["grant"]["input"] {
  return { ...grantOf(input), paidPacks: Number(input["packs"]) };
}

export function refundOf(input: Input): Commands["refund"]["input"] {
  return { externalRef: String(input["externalRef"]), reason: String(input["reason"]) };
}

export function reinstateOf(input: Input): Commands["reinstate"]["input"] {
  const earlierRefs = (input["earlierRefs"] as unknown[]).map(String);
  return { externalRef: String(input["externalRef"]), earlierRefs, newRef: String(input["newRef"]) };
}

export function grantOf(input: Input): Commands["grant"]["input"] {
  const { quantity, expiresAt } = input;
  const isAmount = typeof quantity === "number" && Math.abs(quantity) <= 1e12;
  return {
    pack: String(input["packId"]),
    quantity: quantity == null ? null : isAmount ? amountOf(quantity) : "malformed",
    externalRef: textOrNull(input["externalRef"]),
    expiresAt: expiresAt === undefined ? undefined : timeOrNull(expiresAt),
    source: (input["source"] ?? "purchase") as Commands["grant"]["input"]["source"],
    notes: textOrNull(input["notes"]),
  };
}

/** A run that is opened. */
export function openRunOf(input: Input): Commands["openRun"]["input"] {
  const limits = input["limits"] as { unit: Unit; quota: number; event?: string }[];
  const { ttlSeconds = 3600 } = input;
  return {
    limits: limits.map(({ unit, quota, event = "*" }) => ({ unit, event, quota: amountOf(quota) })),
    name: textOrNull(input["name"]),
    ttlMs: Math.round(Number(ttlSeconds) * 1000),
    parentRunId: textOrNull(input["parentRunId"]),
    metadata: null,
  };
}
