// Credit balances as answers show them, and the command that lists them. Section 6 of the decisions.

import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import type { UserKey } from "../values/ids.ts";
import type { Millis } from "../values/period.ts";
import { answered, type Result } from "../state/result.ts";
import { type CreditBalance, listBalances, packNameOf } from "../state/credit.ts";

export interface CreditsInput {
  /** Narrows to balances whose rules cover this name or glob; null for all. */
  readonly event: string | null;
}

/** Balances in the order in which a grant made them, or in consumption order; with the user they belong to. */
export interface CreditsAnswer {
  readonly userKey: UserKey;
  readonly balances: readonly ShownBalance[];
  /** The moment that their status is of. */
  readonly now: Millis;
}

/** A balance with the pack's present name, where the catalog still has the pack. */
export interface ShownBalance {
  readonly row: CreditBalance;
  readonly packName: string;
}

/** The balances that cover an event's name, or all: active and depleted ones, in consumption order. */
export function credits(draft: Draft, input: CreditsInput, context: Context): Result<CreditsAnswer> {
  return answered(readCredits(draft, input.event, context));
}

/** Balances as answers show them. */
export function showBalances(
  draft: Draft,
  rows: readonly CreditBalance[],
  { catalog, now }: Context,
): CreditsAnswer {
  const balances = rows.map((row) => ({ row, packName: packNameOf(catalog, row) }));
  return { userKey: draft.user.key, balances, now };
}

/** The balances that a user can see, in consumption order. */
export function readCredits(draft: Draft, event: string | null, context: Context): CreditsAnswer {
  const rows = listBalances(draft.balancesInOrder(), { event, includeExpired: false }, context.now);
  return showBalances(draft, rows, context);
}
