// Subscriptions in a merge: all rows become one user's. A default row ends if a paid row has a plan of at least its rank,
// or if there is no paid row and another default row is better. Paid rows stay, and the best active row is primary.

import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import { named, type NamedSubscription } from "../plans/entitlement.ts";
import {
  activeRows,
  endedAt,
  historyRow,
  isPaid,
  primaryOf,
  rankOf,
  type Subscription,
} from "../state/subscription.ts";

/** The result for subscriptions. */
export interface MergedSubscriptions {
  readonly moved: number;
  /** Default rows that ended, best first. */
  readonly ended: readonly NamedSubscription[];
}

/** Moves the rows of a user to another, and ends default rows that are no longer needed. */
export function mergeSubscriptions(from: Draft, to: Draft, context: Context): MergedSubscriptions {
  const { catalog, now } = context;
  const rows = [...from.subscriptions()];
  const primary = primaryOf(rows, catalog, now);
  for (const row of rows) to.putSubscription({ ...row, userKey: to.user.key });
  if (primary !== null) {
    to.appendSubscriptionEvent(historyRow({ ...primary, userKey: to.user.key }, "merged", context));
    to.operations += 1;
  }
  const ended = rowsToEnd(activeRows(to.subscriptions(), catalog, now), context).map((row) => {
    const over = endedAt(row, now, now);
    to.putSubscription(over);
    to.appendSubscriptionEvent(historyRow(over, "ended", context));
    return named(over, catalog);
  });
  return { moved: rows.length, ended };
}

/**
 * Lists the default rows to end. With a paid row: those on a plan ranked at or below it; a default row above every paid
 * row stays, since an old client may have paid for it without sending ids. Without a paid row: all but the best.
 */
function rowsToEnd(active: readonly Subscription[], { catalog }: Context): Subscription[] {
  const defaults = active.filter((row) => !isPaid(row));
  const bestPaid = active.find(isPaid);
  if (bestPaid === undefined) return defaults.slice(1);
  const rank = rankOf(bestPaid, catalog);
  return defaults.filter((row) => rankOf(row, catalog) <= rank);
}
