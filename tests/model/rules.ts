// Rules over catalog data alone: which rule matches an event, which model row prices it, how much of
// each unit a call needs, what gate a group has, and how the groups of two plans pair.

import type {
  CatalogDocument,
  Headroom,
  Input,
  LimitGroup,
  MatchRule,
  ModelRow,
  Plan,
  Unit,
} from "./document.ts";
import {
  atLeastZero,
  divideDown,
  divideHalfUp,
  fromNumber,
  larger,
  type Micros,
  ONE,
  ZERO,
} from "./decimal.ts";
import { heldCents, settledBy } from "./prices.ts";
import { reportedWork, type Work } from "./rates.ts";
import { reportOf } from "./reports.ts";

export type Metadata = Record<string, unknown>;
export type Amounts = Record<Unit, Micros>;

/** Whether a pattern covers a name, or every name of a glob. */
export function covers(pattern: string, nameOrGlob: string): boolean {
  if (pattern === nameOrGlob) return true;
  return pattern.endsWith("*") && nameOrGlob.startsWith(pattern.slice(0, -1));
}

export function ruleMatches(rule: MatchRule, event: string, metadata: Metadata | null): boolean {
  if (!covers(rule.event, event)) return false;
  return Object.entries(rule.metadata ?? {}).every(([key, wanted]) => {
    if (metadata === null || !Object.hasOwn(metadata, key)) return false;
    const value = metadata[key];
    return ["string", "number", "boolean"].includes(typeof value) && String(value) === wanted;
  });
}

export function matchedGroups(plan: Plan, event: string, metadata: Metadata | null): LimitGroup[] {
  return plan.limits.filter((group) => group.matches.some((rule) => ruleMatches(rule, event, metadata)));
}

/** The row of `metadata.model`, else of the part of the event name after its first dot. */
export function modelRowOf(
  catalog: CatalogDocument,
  event: string,
  metadata: Metadata | null,
): ModelRow | undefined {
  const model = metadata?.["model"];
  const named = typeof model === "string" ? rowNamed(catalog, model) : undefined;
  const dot = event.indexOf(".");
  return named ?? (dot < 0 ? undefined : rowNamed(catalog, event.slice(dot + 1)));
}

/** A row by its id or an alias, else by the longest pattern among all aliases. */
function rowNamed({ models: rows = [] }: CatalogDocument, name: string): ModelRow | undefined {
  const names = (row: ModelRow) => [row.id, ...(row.aliases ?? []).filter((each) => !each.endsWith("*"))];
  const exact = rows.find((row) => names(row).includes(name));
  if (exact !== undefined) return exact;
  const patterns = rows.flatMap((row) => (row.aliases ?? []).map((pattern) => ({ row, pattern })))
    .filter(({ pattern }) => pattern.endsWith("*") && name.startsWith(pattern.slice(0, -1)));
  return patterns.toSorted((a, b) => b.pattern.length - a.pattern.length)[0]?.row;
}

/** An optional number of the input, or null when it was not sent. */
export function sent(input: Input, name: string): Micros | null {
  const value = input[name];
  return typeof value === "number" ? fromNumber(value) : null;
}

/** What a call needs of each unit but credits, whether or not a group of that unit matches; and what rates look at. */
export function amountsOf(
  input: Input,
  row: ModelRow | undefined,
  kind: "reserve" | "track",
): { amounts: Omit<Amounts, "credits">; work: Work } {
  const tracked = kind === "track";
  const quantity = sent(input, "quantity");
  const seconds = quantity ?? ONE;
  const tokens = sent(input, "inputTokens");
  // A tracked call is over, so it says nothing of its longest answer.
  const answer = tracked ? ZERO : sent(input, "maxOutputTokens") ?? ZERO;
  const costCents = tracked && row?.amountMode === "per_unit" ? sent(input, "costCents") : null;
  const cents = sent(input, "inputCostCents");
  const report = tracked ? reportOf(input) : null;
  const count = sent(input, "count") ?? (tracked ? quantity : null) ?? ONE;
  const [writes, hourWrites] = ["cacheWriteTokens", "cacheWrite1hTokens"]
    .map((name) => tracked ? ZERO : sent(input, name) ?? ZERO) as [Micros, Micros];
  const size = { tokens: tokens ?? ZERO, writes, hourWrites, answer, cents, seconds, count };
  const settled: Partial<Amounts> = report === null ? {} : settledBy(report, row, { seconds, count });
  const amounts = {
    count,
    tokens: (tokens ?? (tracked ? quantity : null) ?? ZERO) + answer,
    seconds,
    // Choice: cents are derived from `inputTokens` as sent, not from a quantity that is counted as tokens.
    cents: costCents ?? heldCents(row, size),
    ...settled,
  };
  const known = row === undefined && cents === null ? null : heldCents(row, size);
  const work = {
    input: tokens ?? ZERO,
    cached: ZERO,
    output: answer,
    calls: count,
    seconds,
    cents: settled.cents ?? known,
  };
  return { amounts, work: report === null ? work : reportedWork(report, work) };
}

/** Rates and concurrency: groups that only refuse. */
export function isGuard({ period }: LimitGroup): boolean {
  return period?.type === "rolling" || period?.type === "concurrent";
}

/** How a group counts, in one text; a catalog never changes it, and groups of two plans pair only where it is equal. */
export function kindOf({ period }: LimitGroup): string {
  if (period?.type === "concurrent") return period.type;
  return period?.type === "session" || period?.type === "rolling"
    ? `${period.type} ${period.seconds}`
    : "calendar";
}

/** The headroom setting of a group: its own, else its plan's. */
export function headroomOf(plan: Plan, group: LimitGroup): Headroom | undefined {
  return group.headroom ?? plan.headroom ?? undefined;
}

export function gateOf(quota: Micros, headroom: Headroom | undefined): Micros {
  if (headroom?.mode !== "percent") return quota;
  return divideHalfUp(quota * fromNumber(headroom.value), 100n * ONE);
}

/** Choice: a quota that is itself no whole number leaves its fraction; only headroom is rounded. */
export function roomOf(
  quota: Micros,
  current: Micros,
  headroom: Headroom | undefined,
  unit: Unit,
): Micros {
  const room = atLeastZero(gateOf(quota, headroom) - current);
  const divisor = headroom?.mode === "multiplier" ? larger(fromNumber(headroom.value), ONE) : ONE;
  const share = divideDown(room, divisor);
  return headroom && unit === "count" ? (share / ONE) * ONE : share;
}

/**
 * The groups of the entered plan with the old group of the same unit and kind that each takes usage from.
 * Choice: one to one; first every pair by id, then by rules, then by first event pattern, in catalog order.
 */
export function pairGroups(old: Plan, entered: Plan): { from: LimitGroup; to: LimitGroup }[] {
  const alike: ((a: LimitGroup, b: LimitGroup) => boolean)[] = [
    (a, b) => a.id === b.id,
    (a, b) => ruleSet(a) === ruleSet(b),
    (a, b) => a.matches[0]?.event === b.matches[0]?.event,
  ];
  const pairs: { from: LimitGroup; to: LimitGroup }[] = [];
  for (const same of alike) {
    for (const to of entered.limits) {
      if (pairs.some((pair) => pair.to === to)) continue;
      const from = old.limits.find((group) =>
        group.unit === to.unit && kindOf(group) === kindOf(to) && same(group, to) &&
        !pairs.some((pair) => pair.from === group)
      );
      if (from) pairs.push({ from, to });
    }
  }
  return pairs;
}

/** One text for one set of rules, whatever their order or repetition. */
export function ruleSet(group: Pick<LimitGroup, "matches">): string {
  const texts = group.matches.map((rule) =>
    JSON.stringify([rule.event, Object.entries(rule.metadata ?? {}).sort(([a], [b]) => a < b ? -1 : 1)])
  );
  return [...new Set(texts)].sort().join("\n");
}
