// Settle: brings a user's included balances in line with its subscriptions at a moment. In each window the user has a pack
// as one balance. When another plan includes the window's credits, its balance takes the use of the one before along, as
// counters do under `carry`: the larger of its own and of that left, even above what it has. So no walk of changes gives
// out more in a window than the largest amount of a plan in it.

import { type Amount, larger } from "../values/amount.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import { creditsData } from "../state/message.ts";
import { goneOf, NOTIFIED } from "../state/credit.ts";
import { issueBalance } from "../credits/issue.ts";
import type { Subscription } from "../state/subscription.ts";
import type { Millis, Window } from "../values/period.ts";
import {
  ended,
  type IncludedBalance,
  isRunning,
  mostGone,
  pair,
  pairOlder,
  putUse,
  recordsOf,
  stateOf,
  takeOver,
} from "./records.ts";
import {
  type Includer,
  includersOf,
  isOfSource,
  isOfWindow,
  type Source,
  sourcesOf,
  termsOf,
  windowOfSource,
} from "./sources.ts";

/** A balance that the user has to have, with its record where there is one. */
export interface Wanted {
  readonly source: Source;
  readonly window: Window;
  readonly own: IncludedBalance | undefined;
}

/**
 * Brings the included balances in line with the subscriptions, as of the context's time.
 *
 * @param begins which windows may begin. "next": those after windows that ended, as of a time that may be before the catalog
 */
export function settleIncluded(draft: Draft, context: Context, begins: "all" | "next" = "all"): void {
  if (!context.catalog.hasIncludes && !draft.state.hasIncluded) return;
  const { now } = context;
  const includers = includersOf(draft, context);
  const sources = sourcesOf(includers, context.catalog);
  const all = recordsOf(draft);
  // A provider may report late what ended before. The windows since then are settled, and the present turn goes on from
  // them.
  if (all.some(({ grantedAt, included }) => included.state === "open" && grantedAt > now)) return;
  const records = all.filter((record) => isRunning(record, now));
  const mayHave = ({ source, window, own }: Wanted) =>
    begins === "all" || own?.included.state === "open" ||
    all.some((record) => record.included.windowEnd === window.start && isOfSource(record, source));
  const wanted = wantedOf(draft, sources, records, now).filter(mayHave);
  const owned = new Set(wanted.map(({ own }) => own?.id));
  const leaving = records.filter((record) => record.included.state === "open" && !owned.has(record.id));
  const opening = wanted.filter((each) => each.own?.included.state !== "open" && !goesOn(draft, each, now));
  const left = records.filter((record) => record.included.state === "left" && !owned.has(record.id));
  const pairs = pair(opening, [...leaving, ...left]);
  const older = pairOlder(opening, records.filter(({ id }) => !owned.has(id)));
  for (const each of wanted) {
    if (each.own?.included.state === "open") grow(draft, context, each.source, each.own);
    else open(draft, context, each, pairs.get(each), older.get(each));
    if (each.source.isTrial) noteTrial(draft, each.source, now);
  }
  const taken = new Set(pairs.values());
  for (const record of leaving) {
    if (taken.has(record) || isKept(record, includers, wanted)) continue;
    draft.adoptBalance(ended(record, "left", now));
    if (record.remaining > 0n) {
      draft.recordMessage("credits.expired", now, creditsData(draft.user.id, record));
    }
  }
}

/** Lists the balances of the running windows. A trial includes credits once for user and plan, in one window. */
export function wantedOf(
  draft: Draft,
  sources: readonly Source[],
  records: readonly IncludedBalance[],
  now: number,
): Wanted[] {
  return sources.flatMap((source) => {
    const window = windowOfSource(draft, source, now);
    const own = records.find((record) => isOfWindow(record, source, window));
    if (source.isTrial && !isOfTrial(draft, source, window)) return [];
    return [{ source, window, own }];
  });
}

/** Whether a trial has credits in a window: it is the user's first one of the plan, and they were included in this window. */
function isOfTrial(draft: Draft, { row: { id }, plan }: Source, { start }: Window): boolean {
  const at = draft.subscription(id)?.trialCredits[plan.id];
  if (at !== undefined) return start <= at;
  return ![...draft.subscriptions()].some(({ trialCredits }) => Object.hasOwn(trialCredits, plan.id));
}

/** Whether a window begins now that goes on where one of the same subscription ended: it takes no use along. */
function goesOn(draft: Draft, { source, window: { start } }: Wanted, now: number): boolean {
  return start === now &&
    recordsOf(draft).some((record) =>
      record.included.windowEnd === start && record.included.state === "open" && isOfSource(record, source)
    );
}

/**
 * Whether a record that no other took over keeps its window, although nothing includes it now: its subscription and plan are
 * in force, but the catalog no longer includes the pack. What was given stays until the window's end.
 */
export function isKept(
  record: IncludedBalance,
  includers: readonly Includer[],
  wanted: readonly Wanted[],
): boolean {
  const { subscriptionId, planId, isAddOn } = record.included;
  return includers.some(({ row, plan, ...includer }) =>
    row.id === subscriptionId && plan.id === planId && includer.isAddOn === isAddOn
  ) && !wanted.some(({ source }) => isOfSource(record, source));
}

/** Gives a running window what more seats give it, and notes which subscription has it. */
function grow(draft: Draft, context: Context, { amount, row }: Source, own: IncludedBalance): void {
  const { initial, included } = own;
  if (included.subscriptionId === row.id && amount <= initial) return;
  const next = { ...own, included: { ...included, subscriptionId: row.id } };
  putUse(draft, context, next, { gone: goneOf(own), initial: larger(initial, amount) });
}

/** Opens the balance of a window, anew or again, with the use of the record that it takes over from, or of an older one. */
function open(
  draft: Draft,
  context: Context,
  each: Wanted,
  from: IncludedBalance | undefined,
  older: IncludedBalance | undefined,
): void {
  const { source, window, own } = each;
  const left = mostGone(from, older);
  const amount = larger(source.amount, from === undefined ? 0n : givenBy(from, each));
  let id: string;
  if (own === undefined) {
    id = issueBalance(draft, { ...termsOf(source, window), initial: amount }, context, left).id;
  } else {
    id = own.id;
    const found = reopened(own, source, window);
    const initial = larger(own.initial, amount);
    putUse(draft, context, found, { gone: larger(goneOf(own), left), initial });
  }
  if (from !== undefined) takeOver(draft, from, id, context.now);
}

/**
 * What a subscription's plan had given in a window before the catalog put another pack in place of that: it stays given. A
 * record of another plan or window gives nothing.
 */
function givenBy({ initial, included }: IncludedBalance, { source: { row, plan }, window }: Wanted): Amount {
  const isOfPlan = included.subscriptionId === row.id && included.planId === plan.id;
  const isSameWindow = included.windowStart === window.start && included.windowEnd === window.end;
  return isOfPlan && isSameWindow ? initial : 0n;
}

/** A record that its window has again. */
export function reopened(own: IncludedBalance, { row }: Source, { end }: Window): IncludedBalance {
  const { notified, included } = stateOf(own, "open");
  return {
    ...own,
    expiresAt: end,
    notified: notified & ~NOTIFIED.expired,
    included: { ...included, subscriptionId: row.id },
  };
}

function noteTrial(draft: Draft, { row: { id }, plan }: Source, now: Millis): void {
  const row = draft.subscription(id) as Subscription;
  if (Object.hasOwn(row.trialCredits, plan.id)) return;
  draft.putSubscription({ ...row, trialCredits: { ...row.trialCredits, [plan.id]: now } });
}
