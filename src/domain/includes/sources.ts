// Sources: what a user's subscriptions include at a moment. The primary one includes the packs of its plan, each add-on
// beside it those of its own; other subscriptions include nothing. Seats multiply the amounts.

import { type Amount, amountOf, larger, multiply } from "../values/amount.ts";
import type { BalanceTerms } from "../credits/issue.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import { activePlanOf } from "../plans/entitlement.ts";
import { windowOfPack } from "../plans/windows.ts";
import { isSameItem, type ItemOfPack } from "../credits/rollover.ts";
import type { CreditBalance } from "../state/credit.ts";
import type { Include, Plan, Unit } from "../catalog/plan.ts";
import type { Catalog, Pack, PackItem } from "../catalog/catalog.ts";
import type { Millis, Window } from "../values/period.ts";
import { isOnTrial, type Subscription } from "../state/subscription.ts";

/** A subscription that gives its user what its plan includes. */
export interface Includer {
  readonly row: Subscription;
  readonly plan: Plan;
  readonly isAddOn: boolean;
}

/** One item of a pack that a subscription includes. */
export interface Source extends Includer {
  readonly include: Include;
  readonly pack: Pack;
  readonly item: PackItem;
  /** What a window has of it, for all seats. */
  readonly amount: Amount;
  readonly isTrial: boolean;
}

const ONE = amountOf(1);

/** Lists the subscriptions whose plans give what they include at a moment: the primary one, then add-ons. */
export function includersOf(draft: Draft, context: Context): Includer[] {
  const primary = activePlanOf(draft, context);
  if (primary === null) return [];
  return [
    { row: primary.row, plan: primary.plan, isAddOn: false },
    ...primary.addOns.map(({ row, plan }) => ({ row, plan, isAddOn: true })),
  ];
}

/** Lists what subscriptions include, each one's packs in the order of its plan. */
export function sourcesOf(includers: readonly Includer[], catalog: Catalog): Source[] {
  return includers.flatMap((includer) => sourcesOfPlan(includer, catalog));
}

function sourcesOfPlan({ row, plan, isAddOn }: Includer, { packs }: Catalog): Source[] {
  return plan.includes.flatMap((include) => {
    const pack = packs.get(include.packId);
    if (pack === undefined) return [];
    const { quantity } = include;
    const items = pack.bucket === null ? pack.items : [{ ...pack.bucket, amount: ONE }];
    const isTrial = isOnTrial(row);
    return items.map((item) => {
      // A balance has a millionth at least.
      const ofSeat = quantity === null ? item.amount : larger(multiply(item.amount, quantity), 1n);
      const amount = ofSeat * BigInt(row.quantity);
      return { row, plan, isAddOn, include, pack, item, amount, isTrial };
    });
  });
}

/** Returns the window of a source that contains a moment. */
export function windowOfSource(draft: Draft, source: Source, at: Millis): Window {
  return windowOfPack(draft, source, source.include, at);
}

/** The terms of the balance that a source has in a window. */
export function termsOf(source: Source, { start, end }: Window): BalanceTerms {
  const { row, plan, isAddOn, pack, item, amount } = source;
  return {
    packId: pack.id,
    packName: pack.name,
    packItemId: item.id,
    kind: pack.kind,
    unit: item.unit,
    matches: item.matches,
    priority: pack.priority,
    initial: amount,
    expiresAt: end,
    externalRef: null,
    source: "grant",
    notes: null,
    origin: "plan",
    ownRef: refOf(source, start, end, item.unit),
    included: {
      planId: plan.id,
      subscriptionId: row.id,
      isAddOn,
      windowStart: start,
      windowEnd: end,
      state: "open",
      rollsUntil: null,
    },
  };
}

/**
 * Names the balance of a source in a window. Subscriptions of one plan share it, since a user has one plan at a time; each
 * add-on has its own. Windows of different periods may begin together, so the end is a part of it; and so is the unit, since a
 * catalog may put a pack back in another one.
 */
function refOf(
  { row, plan, isAddOn, pack, item }: Source,
  ...window: readonly (Millis | Unit | null)[]
): string {
  return JSON.stringify(["plan", plan.id, pack.id, item.id, ...window, ...isAddOn ? [row.id] : []]);
}

/** Whether a balance is the one of a source in a window. Names that older versions gave have no unit, or no end either. */
export function isOfWindow(balance: CreditBalance, source: Source, { start, end }: Window): boolean {
  const { ownRef, included, unit } = balance;
  if (included?.windowStart !== start || included.windowEnd !== end || unit !== source.item.unit) {
    return false;
  }
  const names = [[start, end, unit], [start, end], [start]] as const;
  return names.some((window) => ownRef === refOf(source, ...window));
}

/** Whether a balance is of a source, in whatever window. */
export function isOfSource(record: CreditBalance, source: Source): boolean {
  const { included } = record;
  const { row, plan, isAddOn } = source;
  return included?.subscriptionId === row.id && included.planId === plan.id && included.isAddOn === isAddOn &&
    isSameItem(record, itemOf(source));
}

/** The pack item of a source, by which rollovers share a maximum. */
export function itemOf({ pack, item }: Source): ItemOfPack {
  return { packId: pack.id, packItemId: item.id, unit: item.unit };
}
