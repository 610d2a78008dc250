// The setting of a user's top-ups: set, read and remove it.

import type { Amount } from "../values/amount.ts";
import { findPack } from "../catalog/catalog.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import { invalidField, refusal } from "../values/refusal.ts";
import { answered, refused, type Result } from "../state/result.ts";
import { isEnabled, isUnderWay, monthOf, type TopUp, type TopUpSetting } from "../state/top_up.ts";
import { packNotFound, quantityMissing } from "./grant.ts";
import { offerOf, startTopUp } from "./top_up.ts";
import { cancelTopUp } from "./top_up_work.ts";

/** The input of `PUT /v1/users/{userId}/top-up`. */
export interface PutTopUpInput {
  /** A pack's id or name. */
  readonly pack: string;
  readonly below: Amount;
  /** Null for the default: one pack. A pack without items needs it. */
  readonly quantity: number | null;
  readonly maxPerMonth: number;
  readonly enabled: boolean;
  /** Stripe's ids; null for those of the present setting. */
  readonly customerId: string | null;
  readonly paymentMethodId: string | null;
  /** Whether the backend calls, and not the user: only the backend enables what failures or a currency disabled. */
  readonly isBackend: boolean;
}

export interface TopUpAnswer {
  /** The canonical id. */
  readonly userId: string;
  readonly setting: TopUpSetting;
  /** Whether intents may be made. */
  readonly enabled: boolean;
  readonly topUp: TopUp;
  readonly openIntentId: string | null;
}

/** A removed setting. */
export interface DeletedTopUp {
  readonly userId: string;
  /** Whether an intent is still being called off or paid. */
  readonly isUnderWay: boolean;
}

/** Decides the setting. An intent that is under way is unchanged. */
export function putTopUp(draft: Draft, input: PutTopUpInput, context: Context): Result<TopUpAnswer> {
  const before = draft.user.topUp;
  const pack = findPack(context.catalog, input.pack);
  if (pack === null || pack.archived) return refused(packNotFound(input.pack));
  if (pack.price === null || pack.items.length > 1) {
    return refused(invalidField("packId", "the pack must have a price, and one item or none"));
  }
  if (pack.bucket !== null && input.quantity === null) return refused(quantityMissing());
  const quantity = input.quantity ?? 1;
  if (offerOf(pack, quantity) === null) {
    return refused(refusal("invalid_quantity", "quantity: one payment would be too large"));
  }
  const customerId = input.customerId ?? before?.setting?.customerId;
  const paymentMethodId = input.paymentMethodId ?? before?.setting?.paymentMethodId;
  if (customerId === undefined || paymentMethodId === undefined) {
    const member = customerId === undefined ? "stripeCustomerId" : "stripePaymentMethodId";
    return refused(invalidField(member, "is required: your backend sets it"));
  }
  const { below, maxPerMonth, enabled } = input;
  const setting = {
    packId: pack.id,
    ...{ below, quantity, maxPerMonth, customerId, paymentMethodId, enabled },
  };
  const { currency } = pack.price;
  const known = before ?? newTopUp(currency, monthOf(context.realNow?.() ?? context.now));
  const ofBackend = input.isBackend ? { currency, failures: 0, stopped: null } : {};
  const isOtherMethod = known.failedMethodId !== paymentMethodId;
  const isOtherCap = known.setting?.maxPerMonth !== maxPerMonth;
  draft.putUser({
    topUp: {
      ...known,
      ...ofBackend,
      setting,
      ...isOtherMethod ? { nextTryAt: null, failedMethodId: null } : {},
      ...isOtherCap ? { cappedIn: null } : {},
    },
  });
  // The answer says what this turn starts, and what it disables.
  startTopUp(draft, context);
  return readTopUp(draft);
}

function newTopUp(currency: string, month: string): TopUp {
  return {
    setting: null,
    currency,
    failures: 0,
    nextTryAt: null,
    failedMethodId: null,
    stopped: null,
    month,
    spent: {},
    cappedIn: null,
  };
}

/** Reads the setting. */
export function readTopUp(draft: Draft): Result<TopUpAnswer> {
  const { topUp } = draft.user;
  if (topUp === null || topUp.setting === null) {
    return refused(refusal("not_found", "This user has no top-up setting"));
  }
  const open = [...draft.topUps()].find(isUnderWay);
  const { setting } = topUp;
  return answered({
    userId: draft.user.id,
    setting,
    enabled: isEnabled(topUp),
    topUp,
    openIntentId: open?.id ?? null,
  });
}

/** Removes the setting, and calls off what is not confirmed. A payment that may be under way goes on. */
export function deleteTopUp(
  draft: Draft,
  _input: Record<never, never>,
  context: Context,
): Result<DeletedTopUp> {
  const { topUp } = draft.user;
  if (topUp !== null && topUp.setting !== null) {
    draft.putUser({ topUp: { ...topUp, setting: null, failures: 0, stopped: null, cappedIn: null } });
  }
  for (const intent of [...draft.topUps()]) if (isUnderWay(intent)) cancelTopUp(draft, intent, context);
  return answered({ userId: draft.user.id, isUnderWay: [...draft.topUps()].some(isUnderWay) });
}
