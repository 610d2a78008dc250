// Credit balances as answers show them, and the command that lists them.

import type { Catalog } from "../catalog/catalog.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import type { UserKey } from "../values/ids.ts";
import type { Millis } from "../values/period.ts";
import { answered, type Result } from "../state/result.ts";
import { type CreditBalance, listBalances, packNameOf } from "../state/credit.ts";

export interface CreditsInput {
  /** Lists only balances with rules that cover this name or pattern; null for all. */
  readonly event: string | null;
}

/** Balances of a user: of a grant in the order of its items, in a list in consumption order. */
export interface CreditsAnswer {
  readonly userKey: UserKey;
  readonly balances: readonly ShownBalance[];
  /** The time of their status. */
  readonly now: Millis;
}

/** A balance with its pack's name, the present one if the catalog still has the pack. */
export interface ShownBalance {
  readonly row: CreditBalance;
  readonly packName: string;
  /** Whether its origin is shown: with a catalog in which a balance may have one, or where it has one. */
  readonly showsOrigin: boolean;
}

/** Lists active and depleted balances in consumption order: all, or those that cover an event's name. */
export function credits(draft: Draft, input: CreditsInput, context: Context): Result<CreditsAnswer> {
  return answered(readCredits(draft, input.event, context));
}

/** Adds the names of packs to balances. */
export function showBalances(
  draft: Draft,
  rows: readonly CreditBalance[],
  { catalog, now }: Context,
): CreditsAnswer {
  return { userKey: draft.user.key, balances: rows.map((row) => shownOf(row, catalog)), now };
}

/** Adds to a balance what an answer shows beside the row. */
export function shownOf(row: CreditBalance, catalog: Catalog): ShownBalance {
  const showsOrigin = catalog.hasOrigins || row.origin !== null;
  return { row, packName: packNameOf(catalog, row), showsOrigin };
}

/** Reads active and depleted balances, in consumption order. */
export function readCredits(draft: Draft, event: string | null, context: Context): CreditsAnswer {
  const rows = listBalances(draft.balancesInOrder(), { event, includeExpired: false }, context.now);
  return showBalances(draft, rows, context);
}
