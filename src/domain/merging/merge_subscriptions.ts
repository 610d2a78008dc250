// Subscriptions in a merge: all rows become one user's. Default rows that a paid row covers, or a better default one,
// end; paid rows stay, and the best active row is primary. Specification, "States and transitions, Subscription".

import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import { named, type NamedSubscription } from "../plans/entitlement.ts";
import {
  activeRows,
  historyRow,
  isPaid,
  primaryOf,
  rankOf,
  type Subscription,
} from "../state/subscription.ts";

/** What became of the rows. */
export interface MergedSubscriptions {
  readonly moved: number;
  /** Default rows that ended, best first. */
  readonly ended: readonly NamedSubscription[];
}

/** Moves the rows of a user to another and ends what a merge ends. */
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
    const over: Subscription = { ...row, endsAt: now, ended: true };
    to.putSubscription(over);
    to.appendSubscriptionEvent(historyRow(over, "ended", context));
    return named(over, catalog);
  });
  return { moved: rows.length, ended };
}

/**
 * The default rows that end. Beside a paid row: those on a plan ranked at or below it. A default row above every paid
 * one may have been paid for by a client that sent no ids, and stays. Without a paid row: all but the best.
 */
function rowsToEnd(active: readonly Subscription[], { catalog }: Context): Subscription[] {
  const defaults = active.filter((row) => !isPaid(row));
  const bestPaid = active.find(isPaid);
  if (bestPaid === undefined) return defaults.slice(1);
  const rank = rankOf(bestPaid, catalog);
  return defaults.filter((row) => rankOf(row, catalog) <= rank);
}
