// Request bodies that are refused as invalid_request before anything is looked up, for the calls that
// the model knows.

import { fromNumber } from "./decimal.ts";
import { type Input, type ModelRequest, UNITS } from "./document.ts";
import { hasNoMistake } from "./unknown_members.ts";

const NUMBER_MAX = 1e12;
const METADATA_BYTES_MAX = 16 * 1024;
/** Properties for which null has a meaning of its own; any other null is the same as leaving it out. */
const NULL_MEANS_SOMETHING = [
  "cycleStart",
  "customLimits",
  "customFeatures",
  "expiresAt",
  "parentId",
  "memberLimits",
  "max",
];
const SOURCES = ["purchase", "grant", "refund", "manual"];

/** The input without its meaningless nulls. */
export function withoutNulls(input: Input): Input {
  const kept = Object.entries(input).filter(([name, value]) =>
    value !== undefined && (value !== null || NULL_MEANS_SOMETHING.includes(name))
  );
  return Object.fromEntries(kept.map(([name, value]) => {
    if (!["extra", "actual", "usage", "providerUsage"].includes(name) || !isObject(value)) {
      return [name, value];
    }
    return [name, Object.fromEntries(Object.entries(value).filter(([, each]) => each !== null))];
  }));
}

export function isValid(op: ModelRequest["op"], input: Input, now: number): boolean {
  if (!hasNoMistake(op, input)) return false;
  switch (op) {
    case "reserve":
      return asksForQuota(input) && hasLongestAnswer(input) &&
        optional(input["ttlSeconds"], (value) => isNumber(value, 10, 86400));
    case "canUse":
    case "explain":
      return asksForQuota(input) && hasLongestAnswer(input);
    case "track":
      return asksForQuota(input) && optional(input["costCents"], (value) => isNumber(value, 0)) &&
        hasUsage(input, [input["inputTokens"], input["inputCostCents"], input["costCents"]]);
    case "commit":
      return isText(input["reservationId"]) && isCorrection(input) && hasUsage(input, rivalsOfUsage(input));
    case "release":
      return isText(input["reservationId"]) &&
        ["reason", "errorCode", "response"].every((name) => optional(input[name], isPlainText));
    case "usage":
      return isId(input["userId"]) && optional(input["event"], isPattern);
    case "features":
    case "users":
      return isId(input["userId"]);
    case "subscribe":
      return isUpsert(input, now);
    case "unschedule":
      return isId(input["userId"]) && hasBothIdsOrNone(input);
    case "cancel":
      return isId(input["userId"]) && hasBothIdsOrNone(input) && optional(input["reason"], isPlainText) &&
        optional(input["endsAt"], (value) => isTime(value) && Date.parse(value) >= now);
    case "grant":
      // Whether a quantity and an end in the past will do is decided after the pack, in credits.ts.
      return isId(input["userId"]) && isText(input["packId"]) && optional(input["externalRef"], isId) &&
        optional(input["source"], (value) => typeof value === "string" && SOURCES.includes(value)) &&
        optional(input["notes"], isShortText) &&
        (input["expiresAt"] === null || optional(input["expiresAt"], isTime));
    case "extend":
      // Whether the time will do is decided after the balance, in credits.ts.
      return isText(input["balanceId"]) && optional(input["reason"], isShortText) &&
        (input["expiresAt"] === null || isTime(input["expiresAt"]));
    case "revoke":
      return isText(input["balanceId"]) && optional(input["reason"], isShortText);
    case "credits":
      return isId(input["userId"]) && optional(input["event"], isPattern) &&
        optional(input["includeExpired"], (value) => ["true", "false"].includes(String(value)));
    case "ledger":
      return isId(input["userId"]) && optional(input["cursor"], isText) &&
        optional(input["balanceId"], isText) &&
        optional(input["limit"], (value) => isNumber(value, 1, 500) && Number.isInteger(value));
    case "alias":
      return isId(input["from"]) && isId(input["to"]) && hasMergeOptions(input);
    case "aliasBatch":
      // A pair of bad ids fails alone, in merge.ts.
      return isListOf(input["pairs"], isObject, 500) && hasMergeOptions(input);
    case "customer":
      return isId(input["userId"]);
    case "parent": {
      const { userId, parentId, memberLimits } = input;
      return isId(userId) && (parentId === null || isId(parentId)) &&
        (memberLimits === null || optional(memberLimits, areQuotas));
    }
    case "mirror":
    case "paidGrant":
    case "refund":
    case "reinstate":
      // Commands behind a provider's messages, not calls of the API, so no body is refused.
      return true;
    case "spendCap": {
      const { userId, groupId, max } = input;
      return isId(userId) && isText(groupId) && (max === null || isNumber(max, 0));
    }
    case "overage":
      return isId(input["userId"]) && ["from", "to"].every((name) => optional(input[name], isTime));
    case "events":
      return optional(input["userId"], isId) && optional(input["eventType"], isId) &&
        optional(input["runId"], isId) &&
        optional(input["limit"], (value) => isNumber(value, 1, 100) && Number.isInteger(value)) &&
        optional(input["offset"], (value) => isNumber(value, 0, 10000) && Number.isInteger(value));
    case "event":
      return isText(input["eventId"]);
    case "createRun":
      return isId(input["userId"]) && optional(input["parentRunId"], isId) && optional(input["name"], isId) &&
        optional(input["ttlSeconds"], (value) => isNumber(value, 60, 604_800)) &&
        isListOf(input["limits"], isRunLimit, 8);
    case "endRun":
      return isId(input["runId"]) && optional(input["reason"], isPlainText);
    case "getRun":
      return isId(input["runId"]);
    case "listRuns":
      return isId(input["userId"]) &&
        optional(input["status"], (value) => value === "active" || value === "ended");
  }
}

function isRunLimit(value: unknown): boolean {
  return isObject(value) && (UNITS as readonly unknown[]).includes(value["unit"]) &&
    isNumber(value["quota"], 0) && optional(value["event"], isPattern);
}

function hasMergeOptions(input: Input): boolean {
  return ["dryRun", "consentGiven"].every((name) =>
    optional(input[name], (value) => typeof value === "boolean")
  );
}

function isListOf(value: unknown, check: (each: unknown) => boolean, max: number): boolean {
  return Array.isArray(value) && value.length >= 1 && value.length <= max && value.every(check);
}

/** The members of a hold beside the input: its longest answer, and what may be written to a cache. */
function hasLongestAnswer(input: Input): boolean {
  const { maxOutputTokens, ...rest } = input;
  const isAmount = (value: unknown) => isNumber(value, 0);
  if (!optional(maxOutputTokens, (value) => isNumber(value, 0) && value > 0)) return false;
  const [hour, writes, tokens] = ["cacheWrite1hTokens", "cacheWriteTokens", "inputTokens"]
    .map((name) => rest[name]);
  if (![hour, writes].every((value) => optional(value, isAmount))) return false;
  return Number(hour ?? 0) <= Number(writes ?? 0) && Number(writes ?? 0) <= Number(tokens ?? 0);
}

const USAGE = [
  "inputTokens",
  "cachedInputTokens",
  "cacheWriteTokens",
  "cacheWrite1hTokens",
  "outputTokens",
  "reasoningTokens",
  "seconds",
  "calls",
];

/** Whether a usage is absent, or well formed and without another member for the same amounts. */
function hasUsage(input: Input, rivals: unknown[]): boolean {
  const { usage, providerUsage } = input;
  if (usage === undefined && providerUsage === undefined) return true;
  if (usage !== undefined && providerUsage !== undefined) return false;
  if (rivals.some((value) => value !== undefined)) return false;
  // Choice: only the simplest faults of a provider's object; its own tests have the rest.
  if (usage === undefined) return isObject(providerUsage) && Object.keys(providerUsage).length > 0;
  if (!isObject(usage) || Object.keys(usage).length === 0) return false;
  if (!Object.entries(usage).every(([name, value]) => USAGE.includes(name) && isNumber(value, 0))) {
    return false;
  }
  const tokens = (name: string) => fromNumber(Number(usage[name] ?? 0));
  return tokens("cachedInputTokens") + tokens("cacheWriteTokens") <= tokens("inputTokens") &&
    tokens("cacheWrite1hTokens") <= tokens("cacheWriteTokens") &&
    tokens("reasoningTokens") <= tokens("outputTokens");
}

/** What a commit may not say beside a usage. */
function rivalsOfUsage({ usage, extra = {}, actual = {}, costCents }: Input): unknown[] {
  const [added, set] = [extra as Input, actual as Input];
  const ofBoth = [added, set].flatMap((each) => [each["tokens"], each["cents"], each["credits"]]);
  const seconds = (usage as Input | undefined)?.["seconds"] === undefined
    ? []
    : [added["seconds"], set["seconds"]];
  return [...ofBoth, ...seconds, added["outputTokens"], added["outputCostCents"], costCents];
}

function asksForQuota(input: Input): boolean {
  return isId(input["userId"]) && isEventName(input["event"]) &&
    optional(input["metadata"], isMetadata) && optional(input["runId"], isId) &&
    ["quantity", "count"].every((name) =>
      optional(input[name], (value) => isNumber(value, 0) && value > 0)
    ) &&
    ["inputTokens", "inputCostCents"].every((name) => optional(input[name], (value) => isNumber(value, 0)));
}

function isCorrection(input: Input): boolean {
  const { extra = {}, actual = {}, costCents } = input as Record<string, Input | undefined>;
  if (!isObject(extra) || !isObject(actual)) return false;
  if (!optional(costCents, (value) => isNumber(value, 0))) return false;
  const extras = ["count", "tokens", "cents", "seconds", "credits", "outputTokens", "outputCostCents"];
  if (!Object.keys(extra).every((name) => extras.includes(name))) return false;
  if (!extras.every((name) => optional(extra[name], (value) => isNumber(value, -NUMBER_MAX)))) return false;
  const actuals = ["count", "tokens", "cents", "seconds", "credits"];
  if (!Object.keys(actual).every((name) => actuals.includes(name))) return false;
  if (!actuals.every((name) => optional(actual[name], (value) => isNumber(value, 0)))) return false;
  const tokens = [extra["tokens"], extra["outputTokens"], actual["tokens"]];
  const cents = [extra["cents"], extra["outputCostCents"], actual["cents"], costCents];
  const ofOthers = ["count", "seconds", "credits"].map((name) => [extra[name], actual[name]]);
  const rivals = [tokens, cents, ...ofOthers];
  return rivals.every((values) => values.filter((value) => value !== undefined).length <= 1);
}

function isUpsert(input: Input, now: number): boolean {
  if (input["at"] !== undefined) return isScheduled(input);
  const { startsAt, endsAt, cycleStart, customLimits, customFeatures, quantity, trial } = input;
  return isId(input["userId"]) && isText(input["planId"]) && hasBothIdsOrNone(input) &&
    optional(startsAt, (value) => isStart(value) && Date.parse(value) <= now) &&
    optional(endsAt, (value) => isTime(value) && Date.parse(value) > now) &&
    optional(trial, (value) => typeof value === "boolean") &&
    optional(quantity, (value) => Number.isInteger(value) && isNumber(value, 1, 10_000)) &&
    (cycleStart === null || optional(cycleStart, isStart)) &&
    (customLimits === null || optional(customLimits, areQuotas)) &&
    (customFeatures === null || optional(customFeatures, areFeatures));
}

/** Nothing goes with a change that is asked for ahead. */
function isScheduled({ userId, planId, at, provider, externalId, ...others }: Input): boolean {
  const ids = {
    ...provider === undefined ? {} : { provider },
    ...externalId === undefined ? {} : { externalId },
  };
  return isId(userId) && isText(planId) && hasBothIdsOrNone(ids) && (at === "period_end" || isTime(at)) &&
    Object.values(others).every((value) => value === undefined);
}

function areQuotas(value: unknown): boolean {
  return isObject(value) &&
    Object.values(value).every((limit) => isObject(limit) && isNumber(limit["quota"], 0));
}

function areFeatures(value: unknown): boolean {
  const isShort = (text: unknown) => typeof text === "string" && [...text].length <= 1_000;
  return isObject(value) && Object.keys(value).length <= 200 &&
    Object.values(value).every((each) =>
      typeof each === "boolean" || isNumber(each, -NUMBER_MAX) || isShort(each) ||
      (Array.isArray(each) && each.length <= 100 && each.every(isShort))
    );
}

function hasBothIdsOrNone(input: Input): boolean {
  const { provider, externalId } = input;
  if (provider === undefined && externalId === undefined) return true;
  return isId(provider) && isId(externalId);
}

function optional(value: unknown, check: (value: unknown) => boolean): boolean {
  return value === undefined || check(value);
}

function isObject(value: unknown): value is Input {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isNumber(value: unknown, min: number, max = NUMBER_MAX): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= min && value <= max;
}

function isPlainText(value: unknown): value is string {
  return typeof value === "string" && !value.includes("\0") && value.isWellFormed();
}

function isShortText(value: unknown): value is string {
  return isPlainText(value) && [...value].length <= 500;
}

function isText(value: unknown): value is string {
  return isPlainText(value) && value.length > 0;
}

export function isId(value: unknown): value is string {
  return isText(value) && [...value].length <= 200;
}

function isPattern(value: unknown): value is string {
  // deno-lint-ignore no-control-regex
  return isId(value) && !/[\u0000-\u001f\u007f-\u009f]/.test(value);
}

function isEventName(value: unknown): value is string {
  return isPattern(value) && !value.includes("*");
}

function isMetadata(value: unknown): boolean {
  return isObject(value) && new TextEncoder().encode(JSON.stringify(value)).length <= METADATA_BYTES_MAX;
}

/** Where a subscription or a cycle may start: not before 1970. */
function isStart(value: unknown): value is string {
  return isTime(value) && Date.parse(value) >= 0;
}

function isTime(value: unknown): value is string {
  return typeof value === "string" && /^\d{4}-\d\d-\d\dT/.test(value) && !Number.isNaN(Date.parse(value));
}
