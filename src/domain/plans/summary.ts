// Keeps the summary of a user for lists. A turn computes it from the state that it leaves, and writes it where a list would
// show another value: the percent is a whole number, and the time of the last call is a minute.

import { isGuard } from "../catalog/plan.ts";
import { shownCount } from "../state/counter.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import { quotaOf } from "../state/subscription.ts";
import { emptySummary, FULLEST_MAX, isSameSummary, type UserSummary } from "../state/summary.ts";
import type { Millis } from "../values/period.ts";
import { activePlanOf } from "./entitlement.ts";
import { windowFor } from "./windows.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** What a summary needs of a turn beside the state. */
export interface Seen {
  /** When the user was seen, to the minute; null for a time that is known already. */
  readonly seenAt: Millis | null;
  /** The groups of this user that refused the call. */
  readonly refusing: readonly string[];
}

/** The minute in which a user is seen. */
export function minuteOf(at: Millis): Millis {
  return at - at % MINUTE_MS;
}

/** Writes the summary after a turn that changed the user, where it changed too. */
export function summarize(draft: Draft, seen: Seen, context: Context): void {
  const [before, row] = summaries(draft, seen, context);
  if (!isSameSummary(before, row)) draft.appendRecord({ verb: "put", table: "user_summaries", row });
}

/**
 * Writes the summary after a refused call, which changes nothing else: where it fills a quota of 0, and where the user was
 * seen an hour before or earlier.
 */
export function summarizeRefused(draft: Draft, seen: Seen, context: Context): void {
  const [before, row] = summaries(draft, seen, context);
  if (!draft.state.recorded || isSameSummary(before, row)) return;
  const isStale = before.seenAt !== null && row.seenAt !== null && row.seenAt - before.seenAt >= HOUR_MS;
  const fills = row.percent > before.percent && seen.refusing.includes(row.groupId ?? "");
  if (isStale || fills) draft.appendRecord({ verb: "put", table: "user_summaries", row });
}

/** The summaries before and after a turn. */
function summaries(
  draft: Draft,
  { seenAt, refusing }: Seen,
  context: Context,
): readonly [before: UserSummary, after: UserSummary] {
  const { key: userKey, realm } = draft.user;
  const before = draft.state.summary ?? emptySummary(userKey, realm);
  const fullest = fullestOf(draft, before, refusing, context);
  return [before, { userKey, realm, ...fullest, seenAt: seenAt ?? before.seenAt }];
}

type Fullest = Pick<UserSummary, "groupId" | "percent" | "until">;

const NO_LIMIT: Fullest = { groupId: null, percent: 0, until: null };

/**
 * Finds the fullest quota group of the active plan; of equal ones the first. A quota of 0 is full once something was refused
 * in its window, else empty.
 */
function fullestOf(
  draft: Draft,
  before: UserSummary,
  refusing: readonly string[],
  context: Context,
): Fullest {
  const active = activePlanOf(draft, context);
  if (active === null) return NO_LIMIT;
  let fullest = NO_LIMIT;
  for (const group of active.plan.groups) {
    if (isGuard(group)) continue;
    const window = windowFor(draft, active, group, context.now);
    const counter = draft.storedCounter({ planId: active.plan.id, groupId: group.id, window });
    const count = counter === undefined ? 0n : shownCount(counter);
    const quota = quotaOf(active, group);
    const until = window.isNext === true ? null : window.end;
    const percent = quota > 0n
      ? percentOf(count, quota)
      : refusing.includes(group.id) || isStillFull(before, group.id, until)
      ? 100
      : 0;
    if (fullest.groupId === null || percent > fullest.percent) {
      fullest = { groupId: group.id, percent, until: percent === 0 ? null : until };
    }
  }
  return fullest;
}

function percentOf(count: bigint, quota: bigint): number {
  return count === 0n ? 0 : Math.min(Number(count * 100n / quota), FULLEST_MAX);
}

/** Whether the window of a quota of 0 is the one in which something was refused. */
function isStillFull(before: UserSummary, groupId: string, until: Millis | null): boolean {
  return before.groupId === groupId && before.percent === 100 && before.until === until;
}
