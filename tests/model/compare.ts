// Puts a predicted reply beside an observed one: learns the ids that the system chose, and says in
// words where the two differ. Message texts are not compared. Lists without a documented order are
// compared as sets; an optional member may be absent where its value is the default.

import { allowedBy, ANYTHING, EITHER, type ModelReply, namesIn } from "./document.ts";

/** Lists without an order of their own, by the end of their path. */
const SETS = [
  "groups",
  "counters",
  "details",
  "duplicates",
  "matchedGroupIds",
  "aliases",
  "carried",
  "unpaired",
  "endedSubscriptions",
  "conflicts.credits",
  "warnings",
  "data.overage",
];
/** Optional members, with the value that is the same as leaving them out. */
const SAYS_NOTHING: Record<string, string> = {
  reasons: "[]",
  groups: "[]",
  warnings: "[]",
  recharged: "false",
};

/** A pair of values at the same place that are not both objects or both lists. */
interface Leaf {
  path: string;
  predicted: unknown;
  observed: unknown;
}

/** The differences between two replies, in words; empty when they say the same. */
export function compare(predicted: ModelReply, observed: ModelReply): string[] {
  return leavesOf(predicted, observed).flatMap(({ path, predicted, observed }) => {
    if (predicted === ANYTHING || predicted === EITHER && typeof observed === "boolean") return [];
    if (allowedBy(predicted)?.includes(observed as number)) return [];
    const names = namesIn(predicted);
    if (names !== null) {
      const isNamed = typeof observed === "string" && names.every((name) => observed.includes(name));
      return isNamed ? [] : [`${path}: expected ${predicted}, observed ${show(observed)}`];
    }
    if (isPlaceholder(predicted) && typeof observed === "string") {
      const prefix = predicted.slice(1, -1).split(" ")[0] ?? "";
      return prefix !== "a" && observed.startsWith(prefix)
        ? []
        : [`${path}: expected ${predicted}, observed ${show(observed)}`];
    }
    return Object.is(predicted, observed)
      ? []
      : [`${path}: expected ${show(predicted)}, observed ${show(observed)}`];
  });
}

/**
 * The differences between a real alias call and the dry run right before it. At the cap only the real call is
 * refused; whether the history of an earlier merge is still moving may change at any time, and with it what moved.
 */
export function compareWithDryRun(dry: ModelReply, real: ModelReply): string[] {
  const isCapped = real.code === "workspace_limit_reached" || real.code === "test_quota_exceeded";
  if (isCapped && dry.status === 200) return [];
  if (!dry.data || !real.data) return compare(dry, real);
  const repeated = dry.data["alreadyMerged"] === true
    ? {
      historyPending: EITHER,
      ...(dry.data["historyPending"] === true ? { moved: real.data["moved"] } : {}),
    }
    : {};
  const announced = { ...dry.data, ...repeated, mergeId: real.data["mergeId"], dryRun: false };
  const nulls = dry.data["mergeId"] !== null ? ["a dry run has a mergeId"] : [];
  return [...nulls, ...compare({ ...dry, data: announced }, real).map((each) => `dry run: ${each}`)];
}

/** Every placeholder whose place holds an id in the observed reply. */
export function idsLearnt(predicted: ModelReply, observed: ModelReply): [placeholder: string, id: string][] {
  if (predicted.status !== observed.status || predicted.code !== observed.code) return [];
  return leavesOf(predicted, observed).flatMap(({ predicted, observed }): [string, string][] =>
    isPlaceholder(predicted) && typeof observed === "string" ? [[predicted, observed]] : []
  );
}

/** A copy of the reply with some texts replaced. */
export function renamed(reply: ModelReply, names: Map<string, string>): ModelReply {
  const visit = (value: unknown): unknown => {
    if (typeof value === "string") return names.get(value) ?? value;
    if (Array.isArray(value)) return value.map(visit);
    if (!isRecord(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, visit(each)]));
  };
  return visit(reply) as ModelReply;
}

function leavesOf(predicted: ModelReply, observed: ModelReply): Leaf[] {
  const { status, code, data, details } = observed;
  // The details of an error matter only where the model predicts some.
  const seen = { status, code, data, ...(predicted.details ? { details } : {}) };
  return walk("", "", { ...predicted }, seen);
}

function walk(path: string, name: string, predicted: unknown, observed: unknown): Leaf[] {
  if (Array.isArray(predicted) && Array.isArray(observed)) {
    if (path.endsWith("credits")) {
      [predicted, observed] = [predicted, observed].map((list) =>
        list.filter((each) => !hasEndedByItself(each))
      );
    }
  }
  if (Array.isArray(predicted) && Array.isArray(observed)) {
    const asSet = SETS.some((set) => `.${path}`.endsWith(`.${set}`)) || path.includes(".filters.") ||
      (path.endsWith("credits") && predicted.some(hasOpenId));
    const [a, b] = asSet ? [sorted(predicted), sorted(observed)] : [predicted, observed];
    const length = Math.max(a.length, b.length);
    return Array.from({ length }, (_, i) => walk(`${path}[${i}]`, "", a[i], b[i])).flat();
  }
  if (isRecord(predicted) && isRecord(observed)) {
    const names = [...new Set([...Object.keys(predicted), ...Object.keys(observed)])];
    return names.flatMap((each) =>
      walk(path === "" ? each : `${path}.${each}`, each, predicted[each], observed[each])
    );
  }
  // The text of an error within a batch.
  if (path.endsWith(".error.message")) return [];
  const silent = SAYS_NOTHING[name];
  if (
    silent !== undefined && [predicted, observed].every((each) => (JSON.stringify(each) ?? silent) === silent)
  ) {
    return [];
  }
  return [{ path, predicted, observed }];
}

/** Whether an answer shows a balance without a predicted id. Such balances of one rank have no order. */
function hasOpenId(value: unknown): boolean {
  return isRecord(value) && value["balanceId"] === ANYTHING;
}

/** Whether a list shows credits that came with a plan and are over. Choice: which of them have rows is not predicted. */
function hasEndedByItself(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { origin, status } = value;
  return (origin === "plan" || origin === "rollover") && (status === "expired" || status === "revoked");
}

function sorted(list: unknown[]): unknown[] {
  const key = (value: unknown) => {
    if (!isRecord(value)) return String(value);
    const { groupId, subscriptionId, droppedId, fromGroupId, toGroupId, hour = "", total = "", amount = "" } =
      value;
    if ("packId" in value) {
      const { packId, packItemId, unit, expiresAt, remaining, wouldPay } = value;
      return JSON.stringify([packId, packItemId, unit, expiresAt, remaining, wouldPay]);
    }
    if (groupId !== undefined) return `${groupId} ${hour} ${total} ${amount}`;
    return String(subscriptionId ?? droppedId ?? `${fromGroupId} ${toGroupId}`);
  };
  return list.toSorted((a, b) => key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0);
}

function isPlaceholder(value: unknown): value is string {
  return typeof value === "string" && value.startsWith("«") && value.endsWith("»");
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function show(value: unknown): string {
  return value === undefined ? "nothing" : JSON.stringify(value);
}
