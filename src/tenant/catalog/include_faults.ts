// What is wrong with the packs that plans include: one that the catalog lacks or that is named twice, an amount that its pack
// needs, and a rollover at the end of a window that never ends.

import { amountOf, multiply } from "../../domain/values/amount.ts";
import { REQUEST_LIMITS } from "../../process/limits.ts";
import { isObject, listOf, type Loose, looseOf } from "./loose.ts";
import type { CatalogFault } from "./faults.ts";

/** The faults of the included packs of all plans of a document. */
export function* includeFaults(document: unknown): Iterable<CatalogFault> {
  const catalog = looseOf(document);
  const packs = new Map(listOf(catalog, "packs").map((pack) => [pack.id, pack]));
  for (const [index, plan] of listOf(catalog, "plans").entries()) {
    const seen = new Set<unknown>();
    for (const [place, include] of listOf(plan, "includes").entries()) {
      const path = `plans[${index}].includes[${place}]`;
      const { packId } = include;
      if (typeof packId === "string" && seen.has(packId)) {
        yield { path: `${path}.packId`, message: "must be unique in its plan" };
      }
      seen.add(packId);
      yield* packFaults(include, packs.get(packId), path);
      const { type } = looseOf(include.period ?? plan.period);
      if (isObject(include.rollover) && type === "lifetime") {
        yield {
          path: `${path}.rollover`,
          message: "must be left out: a lifetime has no end at which to roll over",
        };
      }
    }
  }
}

function* packFaults(
  { packId, quantity }: Loose,
  pack: Loose | undefined,
  path: string,
): Iterable<CatalogFault> {
  if (pack === undefined) {
    if (typeof packId === "string") {
      yield { path: `${path}.packId`, message: "must be the id of a pack of the catalog" };
    }
    return;
  }
  const items = listOf(pack, "items");
  if (items.length === 0 && quantity === undefined) {
    yield { path: `${path}.quantity`, message: "is needed when the pack has no items" };
  }
  const isNothing = ({ amount }: Loose) =>
    isAmount(amount) && isAmount(quantity) && multiply(amountOf(amount), amountOf(quantity)) === 0n;
  if (items.some(isNothing)) {
    yield { path: `${path}.quantity`, message: "must include at least 0.000001 of each item" };
  }
}

function isAmount(value: unknown): value is number {
  return typeof value === "number" && value > 0 && value <= REQUEST_LIMITS.amountMax;
}
