// Shares: how much of a limit group of an account one user below it may use, and used. A member is the user of the call;
// calls of the account itself have no share. A share counts the whole amount of a call in the unit of the group, paid by
// the plan or by credits, at every user above that takes part, whether or not a limit applies to it.
//
// A hold and an event list what they took, so that each is settled on the member's rows alone. A plan entered by `reset`
// clears the shares of its groups in the running window. Members are not rewritten then: the account remembers the time,
// and a share from before counts as 0. What was taken before is no part of the share any more, and never changes it.

import type { LimitGroup } from "../catalog/plan.ts";
import type { Draft } from "../state/draft.ts";
import type { Line } from "../state/reservation.ts";
import {
  addedShares,
  emptyShare,
  type MemberReading,
  type ShareLine,
  type ShareRef,
  type ShareReset,
} from "../state/share.ts";
import type { User } from "../state/user.ts";
import type { Amount } from "../values/amount.ts";
import type { UserKey } from "../values/ids.ts";
import { isOfGuard, type Millis, type Window } from "../values/period.ts";
import type { Amounts } from "../pricing/amounts.ts";

/** A limit group of an account with its window. */
interface SharedGroup {
  readonly group: LimitGroup;
  readonly window: Window;
}

/** A group in which a member's share has too little left. */
export interface FullShare extends SharedGroup, MemberReading {
  readonly quota: Amount;
}

/** Reads the share of the draft's user in a group of a user above, under all of that user's numbers. Guards have none. */
export function readShare(draft: Draft, account: Draft, { group, window }: SharedGroup): MemberReading {
  if (isOfGuard(window)) return NO_SHARE;
  let count = 0n;
  for (const accountKey of account.state.keys) {
    count += draft.share(shareRef(account.user, accountKey, { groupId: group.id, unit: group.unit, window }))
      ?.count ?? 0n;
  }
  return { count, quota: memberQuotaOf(draft.user, group) };
}

const NO_SHARE: MemberReading = { count: 0n, quota: null };

/** The most that a member may use of a group: its own limit for groups of this id, else the group's for each member. */
function memberQuotaOf(
  { memberLimits }: Pick<User, "memberLimits">,
  group: LimitGroup,
): Amount | null {
  if (memberLimits !== null && Object.hasOwn(memberLimits, group.id)) return memberLimits[group.id] as Amount;
  return group.perMember;
}

/** Lists the groups in which the member's share has too little left. A need of 0 requires that the share is not full. */
export function fullShares(
  draft: Draft,
  account: Draft,
  groups: readonly SharedGroup[],
  needs: Amounts,
): readonly FullShare[] {
  let full = NONE_FULL;
  for (const { group, window } of groups) {
    if (memberQuotaOf(draft.user, group) === null) continue;
    const { count, quota } = readShare(draft, account, { group, window });
    const need = needs[group.unit];
    const fits = quota === null || (need === 0n ? count < quota : count + need <= quota);
    if (!fits) full = [...full, { group, window, count, quota }];
  }
  return full;
}

const NONE_FULL: readonly FullShare[] = [];

/**
 * Lists what a call takes of the member's shares at users above.
 *
 * @param parts the users above that take part, each with its line for every group that matches
 */
export function sharesOf(
  parts: readonly { readonly account: Draft; readonly lines: readonly Line[] }[],
  amounts: Amounts,
): { readonly shares?: readonly ShareLine[] } {
  if (parts.length === 0) return NOTHING;
  const shares = parts.flatMap(({ account: { user }, lines }) =>
    lines.filter(({ window }) => !isOfGuard(window))
      .map((line) => ({ ...shareRef(user, user.key, line), taken: amounts[line.unit] }))
  );
  return { shares };
}

/** The share of a group under one number of its account, from the last reset on. */
export function shareRef(
  { shareResets }: Pick<User, "shareResets">,
  accountKey: UserKey,
  { groupId, unit, window }: Pick<Line, "groupId" | "unit" | "window">,
): ShareRef {
  const since = shareResets === null ? 0 : sinceOf(shareResets, accountKey, groupId, window);
  return { accountKey, groupId, unit, window, since };
}

function sinceOf(
  resets: readonly ShareReset[],
  accountKey: UserKey,
  groupId: string,
  { start }: Window,
): Millis {
  const found = resets.find((each) =>
    each.accountKey === accountKey && each.groupId === groupId && each.windowStart === start
  );
  return found?.at ?? 0;
}

/** Adds what a hold or an event took, and an event's cost, to the member's shares. */
export function takeShares(
  draft: Draft,
  lines: readonly ShareLine[] = NO_SHARES,
  costCents: Amount = 0n,
): void {
  for (const line of lines) moveShare(draft, line, line.taken, costCents);
}

/** Gives back what a hold took. */
export function refundShares(draft: Draft, lines: readonly ShareLine[] = NO_SHARES): void {
  for (const line of lines) moveShare(draft, line, -line.taken, 0n);
}

const NO_SHARES: readonly ShareLine[] = [];

/** The final amounts of a hold. */
interface FinalShares {
  /** Whether the hold has lapsed, so that everything is taken anew. */
  readonly isRecharge: boolean;
  readonly costCents: Amount;
  readonly finalOf: (unit: ShareLine["unit"]) => Amount;
}

/** Settles what a hold took by its final amounts; returns these, absent for nothing. */
export function settleShares(
  draft: Draft,
  held: readonly ShareLine[] | undefined,
  { isRecharge, costCents, finalOf }: FinalShares,
): { readonly shares?: readonly ShareLine[] } {
  if (held === undefined) return NOTHING;
  // Two accounts of the hold may have become one, where the event's cost counts once.
  const priced = new Set<string>();
  const shares = held.map((line) => {
    const taken = finalOf(line.unit);
    const account = draft.levelOf(line.accountKey)?.user.key ?? line.accountKey;
    const name = `${account} ${line.unit} ${line.window.start} ${line.groupId}`;
    moveShare(draft, line, taken - (isRecharge ? 0n : line.taken), priced.has(name) ? 0n : costCents);
    priced.add(name);
    return { ...line, taken };
  });
  return { shares };
}

const NOTHING = {};

function moveShare(draft: Draft, ref: ShareRef, delta: Amount, costCents: Amount): void {
  const share = draft.share(ref);
  if (share === null) return;
  draft.putShare({ ...share, count: share.count + delta, costCents: share.costCents + costCents });
}

/** Clears the shares of all members of a user in windows of groups, as of a moment. */
export function resetShares(
  draft: Draft,
  groups: readonly { readonly groupId: string; readonly window: Window }[],
  now: Millis,
): void {
  const before = draft.user.shareResets ?? NO_RESETS;
  const isSet = (each: ShareReset) =>
    groups.some(({ groupId, window }) => each.windowStart === window.start && each.groupId === groupId);
  // Another plan may have a longer window with the same start, in which this one is needed again.
  const mayCount = (each: ShareReset) =>
    each.windowEnd === null || each.windowStart + LONGEST_WINDOW_MS > now;
  // Also where two resets have the same time, the later one is later.
  const at = Math.max(now, ...before.map((each) => each.at + 1));
  const resets = draft.state.keys.flatMap((accountKey) =>
    groups.map(({ groupId, window }) => ({
      accountKey,
      groupId,
      windowStart: window.start,
      windowEnd: window.end,
      at,
    }))
  );
  draft.putUser({ shareResets: [...before.filter((each) => !isSet(each) && mayCount(each)), ...resets] });
}

/** No window is longer, apart from lifetimes: those of a year. */
const LONGEST_WINDOW_MS = 366 * 24 * 3_600_000;

const NO_RESETS: readonly ShareReset[] = [];

/**
 * Adds up the shares of two members who become one. Shares of their own members stay under the number of each account, and
 * so do the times of resets.
 */
export function mergeShares(from: Draft, to: Draft): void {
  for (const row of [...from.shares()]) {
    if (row.count === 0n && row.costCents === 0n) continue;
    const { accountKey, groupId, unit, since, windowStart: start, windowEnd: end } = row;
    const ref = { accountKey, groupId, unit, since, window: { start, end } };
    to.putShare(addedShares(to.storedShare(row.key) ?? emptyShare(to.user.key, to.user.id, ref), row));
    from.putShare({ ...row, count: 0n, costCents: 0n });
  }
  const resets = [...to.user.shareResets ?? NO_RESETS, ...from.user.shareResets ?? NO_RESETS];
  if (resets.length > 0) to.putUser({ shareResets: resets });
}
