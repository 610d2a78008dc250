// A customer's own cap: the most that a user lets a group sell past its quota. It is kept for the id of the group, apart from
// subscriptions, and holds for whatever plan has that group. A cap below what is used refuses from then on.

import type { Amount } from "../values/amount.ts";
import { decimalOf } from "../values/amount.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import type { SpendCaps } from "../state/overage.ts";
import { invalidField } from "../values/refusal.ts";
import { answered, refused, type Result } from "../state/result.ts";
import { activePlanOf } from "./entitlement.ts";

export interface SpendCapInput {
  readonly groupId: string;
  /** From 0 to the operator's max; null for no cap. */
  readonly max: Amount | null;
}

export interface SpendCapAnswer extends SpendCapInput {
  readonly userId: string;
}

/** Sets or removes the cap of a group of the plan in force. */
export function spendCap(draft: Draft, input: SpendCapInput, context: Context): Result<SpendCapAnswer> {
  const { groupId, max } = input;
  const group = activePlanOf(draft, context)?.plan.groups.find(({ id }) => id === groupId);
  if (group === undefined) {
    return refused(invalidField("groupId", "must name a limit group of the user's plan"));
  }
  if (group.overage === null) return refused(invalidField("groupId", "must name a limit group with overage"));
  const most = group.overage.max;
  if (max !== null && most !== null && max > most) {
    return refused(invalidField("max", `must be at most ${decimalOf(most)}, the most that the group sells`));
  }
  const { id: userId, spendCaps } = draft.user;
  const before = spendCaps !== null && Object.hasOwn(spendCaps, groupId) ? spendCaps[groupId] : null;
  if (before !== max) draft.putUser({ spendCaps: withCap(spendCaps, groupId, max) });
  return answered({ userId, groupId, max });
}

function withCap(caps: SpendCaps | null, groupId: string, max: Amount | null): SpendCaps | null {
  const { [groupId]: _, ...others } = caps ?? {};
  const all = max === null ? others : { ...others, [groupId]: max };
  return Object.keys(all).length === 0 ? null : all;
}
