// Top-ups: when a user's credits run low, an intent to buy more is made among the changes of the turn that took them. A
// worker pays it at Stripe (src/integrations/stripe/top_ups.ts).

import type { Catalog, Pack, PackItem } from "../catalog/catalog.ts";
import { type Amount, amountOf } from "../values/amount.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import { statusOf } from "../state/credit.ts";
import { sameRules } from "../values/match.ts";
import type { MessageData } from "../state/message.ts";
import {
  isEnabled,
  isUnderWay,
  monthOf,
  spentIn,
  type TopUp,
  type TopUpIntent,
  type TopUpSetting,
  withSpent,
} from "../state/top_up.ts";

/** What a setting buys at the present prices. */
interface TopUpOffer {
  readonly pack: Pack;
  readonly item: Omit<PackItem, "amount">;
  readonly units: Amount;
  /** In the smallest unit of the currency. */
  readonly amount: number;
  readonly currency: string;
}

/** The most that Stripe takes at once, in the smallest unit. */
const CHARGE_MAX = 99_999_999;
/** The most units of a balance. */
const UNITS_MAX = amountOf(1e12);

/** Returns what a pack can be bought for; null where it has no price, several items, or too much would be bought. */
export function offerOf(pack: Pack, quantity: number): TopUpOffer | null {
  const { price, bucket, items: [only, ...others] } = pack;
  const item = bucket ?? only;
  if (price === null || item === undefined || others.length > 0) return null;
  const units = "amount" in item ? (item.amount as Amount) * BigInt(quantity) : amountOf(quantity);
  const amount = price.amount * quantity;
  if (amount > CHARGE_MAX || units > UNITS_MAX) return null;
  return { pack, item, units, amount, currency: price.currency };
}

/** Makes an intent where the user has too little left, and neither a wait, the cap nor another intent forbids it. */
export function startTopUp(draft: Draft, context: Context): void {
  const { topUp, isErasing } = draft.user;
  if (topUp === null || isErasing || !isEnabled(topUp)) return;
  const { now, catalog } = context;
  const setting = topUp.setting as TopUpSetting;
  if (topUp.nextTryAt !== null && topUp.nextTryAt > now) return;
  for (const intent of draft.topUps()) if (isUnderWay(intent)) return;
  const offer = presentOffer(catalog, setting);
  if (offer === null || leftOf(draft, offer, context) >= setting.below) return;
  const month = monthOf(context.realNow?.() ?? now);
  const spent = spentIn(topUp, month);
  const isOtherCurrency = Object.entries(spent).some(([currency, amount]) =>
    currency !== offer.currency && amount > 0
  );
  if (isOtherCurrency && topUp.currency !== offer.currency) {
    draft.putUser({ topUp: { ...topUp, stopped: "currency_changed" } });
    reportCapped(draft, { ...offer, setting, reason: "currency_changed" }, context);
  } else if ((spent[offer.currency] ?? 0) + offer.amount <= setting.maxPerMonth) {
    makeIntent(draft, { topUp, setting, offer, month }, context);
  } else if (topUp.cappedIn !== month) {
    draft.putUser({ topUp: { ...topUp, cappedIn: month } });
    reportCapped(draft, { ...offer, setting, reason: "max_per_month" }, context);
  }
}

/** What a setting buys now; null where the catalog no longer sells it. */
function presentOffer({ packs }: Catalog, { packId, quantity }: TopUpSetting): TopUpOffer | null {
  const pack = packs.get(packId);
  return pack === undefined || pack.archived ? null : offerOf(pack, quantity);
}

/** What active balances of the same unit and rules have left. */
function leftOf(draft: Draft, { item: { unit, matches } }: TopUpOffer, { now }: Context): Amount {
  let left = 0n;
  for (const row of draft.balancesInOrder()) {
    if (row.unit === unit && statusOf(row, now) === "active" && sameRules(row.matches, matches)) {
      left += row.remaining;
    }
  }
  return left;
}

interface Buying {
  readonly topUp: TopUp;
  readonly setting: TopUpSetting;
  readonly offer: TopUpOffer;
  readonly month: string;
}

function makeIntent(draft: Draft, { topUp, setting, offer, month }: Buying, { ids, now }: Context): void {
  const { user } = draft;
  const { pack, item, units, amount, currency } = offer;
  const { packId, quantity, customerId, paymentMethodId } = setting;
  draft.putUser({ topUp: { ...withSpent(topUp, month, currency, amount), nextTryAt: null } });
  draft.putTopUp({
    id: ids.nextOwned("topUp", user.key),
    userKey: user.key,
    realm: user.realm,
    status: "open",
    ...{ packId, quantity, amount, currency },
    terms: {
      packName: pack.name,
      packItemId: item.id,
      kind: pack.kind,
      unit: item.unit,
      matches: item.matches,
      priority: pack.priority,
      units,
      expiryDays: pack.defaultExpiryDays,
    },
    ...{ customerId, paymentMethodId },
    paymentIntentId: null,
    attempt: 0,
    attemptedAt: null,
    isConfirmed: false,
    isCalledOff: false,
    reason: null,
    month,
    createdAt: now,
    settledAt: null,
  });
}

interface Capped {
  readonly setting: TopUpSetting;
  readonly amount: number;
  readonly currency: string;
  readonly reason: string;
}

function reportCapped(draft: Draft, capped: Capped, { now }: Context): void {
  const { setting: { packId, quantity }, amount, currency, reason } = capped;
  const about = { userId: draft.user.id, topUpId: null, packId, quantity, amount, currency, reason };
  draft.recordMessage("topup.capped", now, about);
}

/** Makes the data of a message about an intent. */
export function topUpData(
  userId: string,
  { id: topUpId, packId, quantity, amount, currency, reason }: TopUpIntent,
): MessageData["topup.paid"] {
  return { userId, topUpId, packId, quantity, amount, currency, reason };
}
