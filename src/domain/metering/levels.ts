// Levels: a call counts at every user of its path, the caller first, then the users above. Each level is decided with its
// own plan and credits, and all of them together: the call is allowed where no level refuses, and takes from each level
// what that level decided, or from none.
//
// A level takes part where a quota group of its plan in force matches the call; its credits pay only behind such a group.
// A user above that never had a plan is silent; one that had a plan, and has none in force, refuses. Where no level takes
// part, the caller's own plan and credits decide alone. Where another level does, a caller whose plan does not cover the
// call is silent. Guards of every level look at each call that is matched by some level or by credits.

import { type RefusingRun, refusingRuns } from "../accounts/run.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import type { LevelCharge } from "../state/event.ts";
import { REASONS_IN_ORDER, type ReserveReason } from "../state/refused_call.ts";
import type { Run } from "../state/run.ts";
import { type FullShare, fullShares } from "../accounts/shares.ts";
import {
  assess,
  type Assessment,
  type GroupReading,
  lacksPrice,
  type Limit,
  type SeenGroup,
  type SizedCall,
  withGuards,
} from "./availability.ts";

/** A user above the caller in the decision of one call. */
export interface Level {
  readonly draft: Draft;
  /** Without groups where the level does not take part. */
  readonly assessment: Assessment;
  /** Every group of its plan, for an explanation; null for any other call. */
  readonly seen: readonly SeenGroup[] | null;
  /** The groups in `blocking` with too little left, apart from shares. */
  readonly limited: readonly GroupReading[];
  /** The groups in `blocking` in which the caller's share has too little left. */
  readonly fullShares: readonly FullShare[];
}

/** The assessment of the caller, with the matched, the reasons and the blocking of the whole path. */
export interface PathAssessment extends Assessment {
  /** The users above, nearest first; empty for a user without a parent. */
  readonly levels: readonly Level[];
  /** The ids of the users that refuse, in the order of the path, then those of runs, innermost first. */
  readonly refusedBy: readonly string[];
  /** The run of the call and those around it, innermost first; empty for a call without one. */
  readonly runs: readonly Run[];
  readonly refusingRuns: readonly RefusingRun[];
  /** The result for the caller's own plan and credits. */
  readonly own: Assessment;
}

const NO_LEVELS: readonly Level[] = [];
const NO_IDS: readonly string[] = [];
const NO_RUNS: readonly Run[] = [];
const NONE_REFUSE: readonly RefusingRun[] = [];

/**
 * Checks a call at every user of its path and in its runs. Changes nothing.
 *
 * @param seen receives every group of the caller's plan, in its order; only an explanation needs it
 * @param runs the open run of the call and those around it
 */
export function assessPath(
  draft: Draft,
  context: Context,
  call: SizedCall,
  limit: Limit,
  seen: SeenGroup[] | null = null,
  runs: readonly Run[] = NO_RUNS,
): PathAssessment {
  const path = assessUsers(draft, context, call, limit, seen);
  if (runs.length === 0) return path;
  const { event, amounts } = call;
  const refusing = refusingRuns(runs, { event, amounts, lacksPrice: lacksPrice(call, context) });
  const reasons = REASONS_IN_ORDER.filter((each) =>
    path.reasons.includes(each) || refusing.some(({ reason }) => reason === each)
  );
  const refusedBy = [...path.refusedBy, ...refusing.map(({ run }) => run.id)];
  return { ...path, reasons, refusedBy, runs, refusingRuns: refusing };
}

/** Checks a call at every user of its path. */
function assessUsers(
  draft: Draft,
  context: Context,
  call: SizedCall,
  limit: Limit,
  seen: SeenGroup[] | null,
): PathAssessment {
  const own = assess(draft, context, call, limit, "own", seen);
  const { above, user } = draft;
  if (above.length === 0) {
    const all = own.matched ? withGuards(own, call, limit) : own;
    return pathOf(all, all.reasons, NO_LEVELS, all.reasons.length > 0 ? [user.id] : NO_IDS);
  }
  const assessed = above.map((level) => {
    const ofLevel: SeenGroup[] | null = seen === null ? null : [];
    return { level, ofLevel, assessment: assess(level, context, call, limit, "below", ofLevel) };
  });
  const isCovered = assessed.some(({ assessment }) => takesPart(assessment));
  const isSilent = !takesPart(own) && isCovered;
  const guarded = (assessment: Assessment) =>
    own.matched || isCovered ? withGuards(assessment, call, limit) : assessment;
  const first = guarded(isSilent ? { ...own, matched: true, reasons: [], credits: [] } : own);
  const levels = assessed.map(({ level, ofLevel, assessment }): Level => {
    const full = isSized(assessment) ? fullShares(draft, level, assessment.quotas, call.amounts) : NONE_FULL;
    const limited = guarded(assessment);
    return {
      draft: level,
      assessment: withShares(limited, full),
      seen: ofLevel,
      limited: limited.blocking,
      fullShares: full,
    };
  });
  const all = [{ draft, assessment: first }, ...levels].filter(({ assessment }) =>
    assessment.reasons.length > 0
  );
  const reasons = REASONS_IN_ORDER.filter((reason) =>
    all.some(({ assessment }) => assessment.reasons.includes(reason))
  );
  return pathOf(first, reasons, levels, all.map((level) => level.draft.user.id));
}

/** Written out in one piece, since every call makes one. */
function pathOf(
  own: Assessment,
  reasons: PathAssessment["reasons"],
  levels: readonly Level[],
  refusedBy: readonly string[],
): PathAssessment {
  const { active, matched, lines, credits, groups, quotas, blocking } = own;
  return {
    active,
    matched,
    reasons,
    lines,
    credits,
    groups,
    quotas,
    blocking,
    own,
    levels,
    refusedBy,
    runs: NO_RUNS,
    refusingRuns: NONE_REFUSE,
  };
}

/** Whether it is known what a call takes: a call without a price is refused for that alone. */
function isSized({ reasons }: Assessment): boolean {
  return reasons[0] !== "unpriced_model";
}

/** Adds the refusal by a member's share to the result for the account's own limits. */
function withShares(assessment: Assessment, full: readonly FullShare[]): Assessment {
  if (full.length === 0) return assessment;
  const reasons: ReserveReason[] = [...assessment.reasons, "member_limit_reached"];
  const blocking = assessment.groups.filter((reading) =>
    assessment.blocking.includes(reading) || full.some(({ group }) => group === reading.group)
  );
  return { ...assessment, reasons, lines: [], credits: [], blocking };
}

const NONE_FULL: readonly FullShare[] = [];

/** Whether a quota group of the level's plan matches the call. */
export function takesPart({ quotas }: Pick<Assessment, "quotas">): boolean {
  return quotas.length > 0;
}

/** The levels above at which an allowed call counts: those that take part, and those where only guards match. */
export function partsIn({ levels }: Pick<PathAssessment, "levels">): Level[] {
  return levels.filter(({ assessment }) => assessment.groups.length > 0);
}

/** What an event took from the users above; absent for nothing. */
export function levelCharges(charges: readonly LevelCharge[]): { readonly levels?: readonly LevelCharge[] } {
  return charges.length === 0 ? NOTHING : { levels: charges };
}

const NOTHING = {};
