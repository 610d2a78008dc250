// What is wrong with the rate card, and with plans whose included credits could never pay for what they seem to cover.

import { RATE_PARTS } from "../../domain/catalog/rate_row.ts";
import { type MatchRule, rulesOverlap } from "../../domain/values/match.ts";
import { isObject, listOf, type Loose, looseOf } from "./loose.ts";
import type { CatalogFault } from "./faults.ts";

/** The faults of the rate card and of included credits. */
export function* rateFaults(document: unknown): Iterable<CatalogFault> {
  const catalog = looseOf(document);
  for (const [index, rate] of listOf(catalog, "rates").entries()) {
    if (rate.perCall !== undefined && rate.perImage !== undefined) {
      yield { path: `rates[${index}].perImage`, message: "excludes perCall: remove one of them" };
    }
    if ([...RATE_PARTS, "minimum"].every((part) => rate[part] === undefined)) {
      yield { path: `rates[${index}]`, message: `must have one of ${RATE_PARTS.join(", ")}, minimum` };
    }
  }
  const packs = listOf(catalog, "packs");
  for (const [index, plan] of listOf(catalog, "plans").entries()) yield* includedFaults(plan, index, packs);
}

/** Credits pay for the units of matched quota groups alone, so a plan that includes some needs a group in credits. */
function* includedFaults(plan: Loose, index: number, packs: readonly Loose[]): Iterable<CatalogFault> {
  const quotas = listOf(plan, "limits").filter(({ period }) => !isGuardPeriod(looseOf(period)));
  for (const [place, { packId }] of listOf(plan, "includes").entries()) {
    const rules = rulesInCredits(packs.find(({ id }) => id === packId));
    const over = quotas.filter((group) => rules.some((rule) => covers(group, rule)));
    if (over.length === 0 || over.some(({ unit }) => unit === "credits")) continue;
    yield {
      path: `plans[${index}].includes[${place}].packId`,
      message:
        "must not be a pack in credits while no limit group in credits covers the events of its rules: " +
        "the other groups over them would refuse calls that credits should pay. Add a limit group with the unit " +
        "credits over these events; its quota 0 lets balances alone pay",
    };
  }
}

function isGuardPeriod({ type }: Loose): boolean {
  return type === "rolling" || type === "concurrent";
}

/** The rules of a pack's balances in credits. */
function rulesInCredits(pack: Loose | undefined): MatchRule[] {
  if (pack === undefined) return [];
  const items = listOf(pack, "items");
  return (items.length === 0 ? [pack] : items).filter(({ unit }) => unit === "credits").flatMap(rulesOf);
}

function covers(group: Loose, rule: MatchRule): boolean {
  return rulesOf(group).some((other) => rulesOverlap(other, rule));
}

/** The well-formed rules of a part; others are another fault. */
function rulesOf(part: Loose): MatchRule[] {
  return listOf(part, "matches").flatMap(({ event, metadata }) =>
    typeof event !== "string" ? [] : [{ event, metadata: textsOf(metadata) }]
  );
}

function textsOf(metadata: unknown): Record<string, string> {
  if (!isObject(metadata)) return {};
  return Object.fromEntries(
    Object.entries(metadata).filter((each): each is [string, string] => typeof each[1] === "string"),
  );
}
