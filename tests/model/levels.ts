// A call counts at every user of its path. Each is asked with its own plan and credits; the call is allowed where nobody
// refuses, and takes what it needs at each level that takes part, or nothing anywhere.

import { type Asked, decide, type Decision, type MatchedGroup } from "./decision.ts";
import { type Micros, ZERO } from "./decimal.ts";
import type { WireData } from "./document.ts";
import { guardsMet, type MetGuard, retryAfter } from "./guards.ts";
import { type Refusing, refusingRuns, runsAnswer } from "./runs.ts";
import { memberOf } from "./shares.ts";
import type { User, World } from "./state.ts";
import { usersAbove } from "./tree.ts";

/** The order of reasons, whatever the level. */
const REASONS = [
  "no_subscription",
  "unmatched_event",
  "unpriced_model",
  "limit_reached",
  "reservation_headroom_exceeded",
  "member_limit_reached",
  "run_limit_reached",
  "rate_limit_reached",
  "concurrency_limit_reached",
] as const;

type Reason = (typeof REASONS)[number];

/** One user of a path and what it says. */
export interface Level {
  asked: Asked;
  decision: Decision;
  /** The guards that match the call here. */
  guards: MetGuard[];
  /** Groups whose share of the caller has too little left; none for the caller itself. */
  full: FullShare[];
}

/** The caller's share of a group of a user above. */
export interface FullShare {
  of: MatchedGroup;
  count: Micros;
  quota: Micros;
}

export interface PathDecision {
  own: Level;
  /** What the caller says alone, also where it is silent. */
  alone: Decision;
  /** Nearest first. */
  above: Level[];
  /** The caller and those above with a group that matches. */
  taking: Level[];
  matched: boolean;
  reasons: Reason[];
  /** Users, then runs. */
  refusedBy: string[];
  /** The runs that refuse the call, innermost first. */
  byRuns: Refusing[];
  /** Where guards alone refuse: how long until they all let the call pass, null for never. */
  retry: { retryAfterMs?: number | null };
}

/** What a call would be answered at every user of its path, without changing anything. */
export function decidePath(
  world: World,
  asked: Asked,
  gate: "headroom" | "quota",
  now: number,
): PathDecision {
  const alone = decide(world, asked, gate, now);
  const above = usersAbove(world, asked.user).map((user): Level => {
    const there = { ...asked, user };
    const decision = asAbove(user, decide(world, there, gate, now));
    const full = fullShares(world, asked, user, decision, now);
    return { asked: there, decision, full, guards: [] };
  });
  const counted = above.some(({ decision }) => decision.matched.length > 0);
  const isSilent = alone.matched.length === 0 && counted;
  const own: Level = { asked, decision: isSilent ? silenced(alone) : alone, full: [], guards: [] };
  const all = [own, ...above];
  const matched = counted || alone.matched.length > 0 || alone.reason === null;
  // Guards are shown wherever they match, and look at nothing that is unmatched everywhere.
  const looksAt = matched ? gate === "quota" ? "rates" : "all" : "none";
  for (const level of all) {
    level.guards = guardsMet(world, level.asked, level.decision.primary, looksAt, now);
  }
  const guards = all.flatMap((level) => level.guards);
  const byGuards = guards.flatMap(({ reason }) => reason ?? []);
  const refusing = all.filter(refuses);
  const isUnpriced = asked.row === undefined && !asked.toldCents;
  const lacksPrice = isUnpriced && world.catalog.settings?.unpricedModels === "refuse";
  const byRuns = refusingRuns(asked.runs, { event: asked.event, amounts: asked.amounts, lacksPrice });
  if (byRuns.length > 0) world.note(`runs: ${refusing.length === 0 ? "alone refuse" : "refuse too"}`);
  const found = [...refusing.flatMap(reasonsAt), ...byRuns.map(({ reason }) => reason), ...byGuards];
  const isByGuardsAlone = byGuards.length > 0 && byRuns.length === 0 &&
    all.every(({ decision, full }) => decision.reason === null && full.length === 0);
  noteGuards(world, all, byGuards, isByGuardsAlone);
  noteLevels(world, { own, alone, above, isSilent });
  return {
    own,
    alone,
    above,
    taking: all.filter(({ decision }) => decision.matched.length > 0),
    matched,
    reasons: REASONS.filter((reason) => found.includes(reason)),
    refusedBy: [...refusing.map((level) => level.asked.user.id), ...byRuns.map(({ run }) => run.id)],
    byRuns,
    retry: isByGuardsAlone ? { retryAfterMs: retryAfter(world, guards, now) } : {},
  };
}

/** Whether a level refuses a call. */
export function refuses({ decision, full, guards }: Level): boolean {
  return decision.reason !== null || full.length > 0 || guards.some(({ reason }) => reason !== null);
}

function reasonsAt({ decision: { reason }, full }: Level): (Reason | null)[] {
  return full.length > 0 ? [reason, "member_limit_reached"] : [reason];
}

/** The groups whose share of the caller has too little left; a need of 0 requires that something is left. */
function fullShares(
  world: World,
  { user: member, amounts }: Asked,
  account: User,
  { reason, matched }: Decision,
  now: number,
): FullShare[] {
  // Choice: what a call without a price takes is not known, so it is refused for that alone.
  if (reason === "unpriced_model") return [];
  return matched.flatMap((of): FullShare[] => {
    const { count, quota } = memberOf(world, member, account, { ...of, now });
    if (quota === null) return [];
    if (member.memberLimits?.has(of.group.id)) world.note("shares: a member's own limit");
    const need = amounts[of.group.unit];
    return (need === ZERO ? count >= quota : count + need > quota) ? [{ of, count, quota }] : [];
  });
}

/** Above the caller only groups count: without one a user is silent, unless its plan has ended. */
function asAbove(user: User, decision: Decision): Decision {
  if (decision.matched.length > 0) return decision;
  const hasEnded = decision.primary === null && user.entered !== null;
  return { ...silenced(decision), reason: hasEnded ? "no_subscription" : null };
}

function silenced(decision: Decision): Decision {
  return { ...decision, shares: [], blocking: [], reason: null };
}

/** The users above with some members each, the runs, and who refuses; nothing without a parent and a run. */
export function levelsAnswer(
  { own, above, reasons, refusedBy }: PathDecision,
  show: (level: Level) => WireData,
): WireData {
  const ofRuns = runsAnswer(own.asked.runs, reasons.length > 0 ? refusedBy : null);
  if (above.length === 0) return ofRuns;
  return {
    ...ofRuns,
    ...(reasons.length > 0 ? { refusedBy } : {}),
    levels: above.map((level) => ({ userId: level.asked.user.id, ...show(level) })),
  };
}

function noteGuards(
  world: World,
  [own, ...above]: Level[],
  reasons: Reason[],
  isAlone: boolean,
): void {
  for (const reason of new Set(reasons)) {
    world.note(`guards: ${reason}${isAlone ? " alone" : ", and others"}`);
  }
  const isAbove = above.some(({ guards }) => guards.some(({ reason }) => reason !== null));
  if (isAbove) world.note("guards: refused above");
  const isBare = [own!, ...above].some(({ decision, guards }) =>
    guards.length > 0 && decision.matched.length === 0
  );
  if (isBare) world.note("guards: without a quota group beside");
}

function noteLevels(
  world: World,
  { own, alone, above, isSilent }: Pick<PathDecision, "own" | "alone" | "above"> & { isSilent: boolean },
): void {
  if (above.length === 0) return;
  const reasons = above.map(({ decision }) => decision.reason);
  const refusing = above.filter(refuses);
  if (refusing.some(({ full }) => full.length > 0)) {
    const isAlone = refusing.every(({ decision }) => decision.reason === null) &&
      own.decision.reason === null;
    world.note(`shares: ${isAlone ? "alone refuse" : "refuse too"}`);
  }
  const isRefused = refusing.length > 0;
  if (isSilent) {
    world.note("levels: the caller is silent");
    if (alone.shares.length > 0) world.note("levels: credits of a silent caller stay");
  }
  if (reasons.includes("no_subscription")) world.note("levels: a plan above has ended");
  if (isRefused && own.decision.reason === null) world.note("levels: refused above alone");
  if (isRefused && own.decision.reason !== null) world.note("levels: refused by the caller and above");
  if (above.every(({ decision }) => decision.matched.length === 0)) {
    world.note("levels: nobody above takes part");
  }
  const paid = above.some(({ decision }) => decision.shares.some(({ byCredits }) => byCredits > 0n));
  if (paid && !isRefused && own.decision.reason === null) world.note("levels: credits above pay");
  if (above.length > 1) world.note("levels: a path of three or more");
}
