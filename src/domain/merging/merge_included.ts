// What plans include, in a merge: the surviving plan's balance of a window has the use of both users, and the other one
// ends, so that a merge gives no fresh credits. All rollovers move, and together they are at most what the surviving plan
// allows. Each add-on keeps its own.

import { type Amount, larger, smaller } from "../values/amount.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import { goneOf } from "../state/credit.ts";
import { isLiveRollover } from "../credits/rollover.ts";
import { issueBalance } from "../credits/issue.ts";
import { writeEntry } from "../credits/ledger.ts";
import { ended, type IncludedBalance, isRunning, pair, putUse, recordsOf, takeOver } from "../includes/records.ts";
import { reopened, settleIncluded, type Wanted, wantedOf } from "../includes/settle.ts";
import { type Source, sourcesOf, termsOf } from "../includes/sources.ts";

/**
 * Joins the included balances of two users, all of which are the second one's already.
 *
 * @param ofAlias the ids of the balances that were the alias's
 * @param ofPrimary whether the primary subscription was the alias's
 */
export function mergeIncluded(
  to: Draft,
  { ofAlias, ofPrimary }: { readonly ofAlias: ReadonlySet<string>; readonly ofPrimary: "from" | "to" },
  context: Context,
): void {
  const { now } = context;
  const sources = sourcesOf(to, context);
  const records = recordsOf(to).filter((record) => isRunning(record, now));
  const ofFrom = records.filter(({ id }) => ofAlias.has(id));
  const ofTo = records.filter(({ id }) => !ofAlias.has(id));
  const sides = ofPrimary === "from" ? [ofFrom, ofTo] : [ofTo, ofFrom];
  const wanted = wantedOf(to, sources.filter(({ isAddOn }) => !isAddOn), records, now);
  const uses = sides.map((side) => usesOf(to, sources, wanted, side, now));
  for (const each of wanted) {
    const [first, second] = uses.map((use) => use.get(each));
    if (first !== undefined && second !== undefined) join(to, context, each, [first, second]);
  }
  for (const source of sources) cutRollovers(to, context, source);
  settleIncluded(to, context);
}

/** What a side used of a wanted balance: its own record of the window, and the one that has its use now. */
interface Use {
  readonly own: IncludedBalance | undefined;
  readonly current: IncludedBalance | undefined;
  readonly gone: Amount;
}

function usesOf(
  to: Draft,
  sources: readonly Source[],
  wanted: readonly Wanted[],
  side: readonly IncludedBalance[],
  now: number,
): ReadonlyMap<Wanted, Use> {
  const owns = new Map(
    wantedOf(to, sources, side, now).map(({ source, own }) => [source, own]),
  );
  const own = new Set([...owns.values()].flatMap((record) => record === undefined ? [] : [record.id]));
  const current = pair(
    wanted,
    side.filter(({ id, included }) => included.state !== "taken_over" && !own.has(id)),
  );
  const uses = new Map<Wanted, Use>();
  for (const each of wanted) {
    const use = { own: owns.get(each.source), current: current.get(each) };
    const gone = larger(
      use.own === undefined ? 0n : goneOf(use.own),
      use.current === undefined ? 0n : goneOf(use.current),
    );
    if (use.own !== undefined || use.current !== undefined) uses.set(each, { ...use, gone });
  }
  return uses;
}

/** Makes one balance of a window out of those of both users; the primary's own goes on where there is one. */
function join(to: Draft, context: Context, each: Wanted, uses: readonly [Use, Use]): void {
  const { source, window } = each;
  const [first, second] = uses;
  const gone = first.gone + second.gone;
  const own = first.own ?? second.own;
  let { amount: initial } = source;
  for (const { own } of uses) if (own !== undefined) initial = larger(initial, own.initial);
  const id = own === undefined
    ? issueBalance(to, { ...termsOf(source, window), initial }, context, { used: gone }).id
    : putUse(to, context, reopened(own, source, window), { gone, initial }).id;
  const others = uses.flatMap(({ own, current }) => [own, current]);
  for (const other of new Set(others)) {
    if (other === undefined || other.id === id) continue;
    // A window has one record: another one with its name gives the name up.
    const row = other.ownRef === each.own?.ownRef ? { ...other, ownRef: null } : other;
    if (row.included.state === "taken_over") to.adoptBalance(ended(row, "taken_over", context.now));
    else takeOver(to, row, id, context.now);
  }
}

/** Takes from the live rollovers of a kind what is above the maximum of the plan, the next to end first. */
function cutRollovers(to: Draft, { ids, now }: Context, { include, pack, item }: Source): void {
  if (include.rollover === null) return;
  const kind = { packId: pack.id, packItemId: item.id, unit: item.unit, matches: item.matches };
  const live = [...to.balancesInOrder()].filter((row) => isLiveRollover(row, kind, now));
  let over = live.reduce((sum, { remaining, held }) => sum + remaining + held, -include.rollover.max);
  for (const row of live) {
    const cut = smaller(row.remaining, larger(over, 0n));
    if (cut === 0n) continue;
    over -= cut;
    const left = { ...row, remaining: row.remaining - cut, revokedAmount: row.revokedAmount + cut };
    to.adoptBalance(left);
    writeEntry(to, { ids }, left, -cut, { reason: "merge_dedupe", eventId: null, reservationId: null, at: now });
  }
}
