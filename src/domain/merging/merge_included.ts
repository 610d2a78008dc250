// What plans include, in a merge: the surviving plan's balance of a window has the use of both users, and the other one
// ends, so that a merge gives no fresh credits. All rollovers move, and together they are at most what the surviving plan
// allows. Each add-on keeps its own.

import { type Amount, larger, smaller } from "../values/amount.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import { goneOf } from "../state/credit.ts";
import type { UserKey } from "../values/ids.ts";
import { isLiveRollover, isSameItem, windowRefOf } from "../credits/rollover.ts";
import { issueBalance } from "../credits/issue.ts";
import { writeEntry } from "../credits/ledger.ts";
import {
  type IncludedBalance,
  isRecord,
  isRunning,
  mostGone,
  pair,
  pairOlder,
  putUse,
  recordsOf,
  takeOver,
} from "../includes/records.ts";
import { isKept, reopened, settleIncluded, type Wanted, wantedOf } from "../includes/settle.ts";
import { includersOf, isOfWindow, itemOf, type Source, sourcesOf, termsOf } from "../includes/sources.ts";

/** Which of the balances were whose. */
interface MergedSides {
  readonly aliasKey: UserKey;
  /** The ids of the balances that were the alias's. */
  readonly ofAlias: ReadonlySet<string>;
  /** The user with the primary subscription before the merge. */
  readonly ofPrimary: "from" | "to";
}

/** Joins the included balances of two users, after all balances have moved to the second one. */
export function mergeIncluded(
  to: Draft,
  sides: MergedSides,
  context: Context,
): void {
  const { now } = context;
  const { ofAlias, ofPrimary } = sides;
  const includers = includersOf(to, context);
  const sources = sourcesOf(includers, context.catalog);
  const records = recordsOf(to).filter((record) => isRunning(record, now));
  const ofFrom = records.filter(({ id }) => ofAlias.has(id));
  const ofTo = records.filter(({ id }) => !ofAlias.has(id));
  const wanted = wantedOf(to, sources.filter(({ isAddOn }) => !isAddOn), records, now);
  const uses = (ofPrimary === "from" ? [ofFrom, ofTo] : [ofTo, ofFrom]).map((side) =>
    usesOf(to, sources, wanted, side, now)
  );
  for (const each of wanted) {
    const [first, second] = uses.map((use) => use.get(each));
    if (first !== undefined && second !== undefined) join(to, context, each, [first, second]);
  }
  const stays = (record: IncludedBalance | undefined) =>
    record?.included.state === "open" &&
    (wanted.some(({ source, window }) => isOfWindow(record, source, window)) ||
      isKept(record, includers, wanted));
  nameApart(to, sides, stays, context);
  for (const source of sources) if (!source.isAddOn) cutRollovers(to, context, source, sources);
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
  const older = pairOlder(wanted, side.filter(({ id }) => !own.has(id)));
  const uses = new Map<Wanted, Use>();
  for (const each of wanted) {
    const use = { own: owns.get(each.source), current: current.get(each) };
    const before = older.get(each);
    if (use.own === undefined && use.current === undefined && before === undefined) continue;
    uses.set(each, { ...use, gone: mostGone(use.own, use.current, before) });
  }
  return uses;
}

/** Makes one balance of a window out of those of both users; the primary's own goes on where there is one. */
function join(to: Draft, context: Context, each: Wanted, uses: readonly [Use, Use]): void {
  const { source, window } = each;
  const [first, second] = uses;
  const gone = first.gone + second.gone;
  const own = first.own ?? second.own;
  // Seats of the other user's subscription give nothing here.
  const initial = larger(source.amount, first.own?.initial ?? 0n);
  const id = own === undefined
    ? issueBalance(to, { ...termsOf(source, window), initial }, context, gone).id
    : putUse(to, context, reopened(own, source, window), { gone, initial }).id;
  const others = uses.flatMap(({ own, current }) => [own, current]);
  for (const other of new Set(others)) {
    if (other === undefined || other.id === id) continue;
    if (other.included.state !== "taken_over") takeOver(to, other, id, context.now);
  }
}

/**
 * Gives balances of the alias other names where both users have one: a window has one record, with one rollover. Of two
 * records of a running window the one that stays open keeps the name; where none does, one has the use of both.
 */
function nameApart(
  to: Draft,
  { ofAlias, aliasKey }: MergedSides,
  stays: (record: IncludedBalance | undefined) => boolean,
  context: Context,
): void {
  const byWindow = Map.groupBy(
    [...to.balancesInOrder()].filter(({ included }) => included !== null),
    ({ ownRef }) => windowRefOf(ownRef ?? ""),
  );
  for (const rows of byWindow.values()) {
    const sides = [
      rows.filter(({ id }) => !ofAlias.has(id)),
      rows.filter(({ id }) => ofAlias.has(id)),
    ] as const;
    if (sides.some((side) => side.length === 0)) continue;
    const [ofTo, ofFrom] = sides.map((side) => side.find(isRecord));
    for (const row of sides[stays(ofFrom) && !stays(ofTo) ? 0 : 1]) {
      to.adoptBalance({ ...row, ownRef: `${row.ownRef}@${aliasKey}` });
    }
    if (ofTo === undefined || ofFrom === undefined || !isRunning(ofTo, context.now)) continue;
    if (stays(ofTo) || stays(ofFrom)) continue;
    const initial = larger(ofTo.initial, ofFrom.initial);
    putUse(to, context, ofTo, { gone: goneOf(ofTo) + goneOf(ofFrom), initial });
    const over = { ...ofFrom, ownRef: `${ofFrom.ownRef}@${aliasKey}` };
    if (ofFrom.included.state !== "taken_over") takeOver(to, over, ofTo.id, context.now);
  }
}

/**
 * Takes from the live rollovers of a pack item what is above the maximum of the plan, those that are used last first. Where an
 * add-on includes the item too, the larger maximum counts: without a merge a user may have had as much.
 */
function cutRollovers(
  to: Draft,
  { ids, now }: Context,
  source: Source,
  sources: readonly Source[],
): void {
  if (source.include.rollover === null) return;
  const item = itemOf(source);
  let room: Amount = source.include.rollover.max;
  for (const each of sources) {
    if (isSameItem(itemOf(each), item)) room = larger(room, each.include.rollover?.max ?? 0n);
  }
  for (const row of [...to.balancesInOrder()]) {
    if (!isLiveRollover(row, item, now)) continue;
    const cut = row.remaining - smaller(row.remaining, room);
    room -= row.remaining - cut;
    if (cut === 0n) continue;
    const left = { ...row, remaining: row.remaining - cut, revokedAmount: row.revokedAmount + cut };
    to.adoptBalance(left);
    writeEntry(to, { ids }, left, -cut, {
      reason: "merge_dedupe",
      eventId: null,
      reservationId: null,
      at: now,
    });
    to.operations += 1;
  }
}
