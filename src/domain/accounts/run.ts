// Runs: how they open and end, and what they do to a call. A run only refuses: whether an event is matched, and who pays for
// it, is decided without runs. What counts for a plan or credits counts in the call's run and in all runs around it, with
// the whole amounts of the call: what the plan takes, and what credits pay.

import type { Unit } from "../catalog/plan.ts";
import type { Amounts } from "../pricing/amounts.ts";
import type { Amount } from "../values/amount.ts";
import { type Metadata, patternCovers } from "../values/match.ts";
import type { Millis } from "../values/period.ts";
import { invalidField, type Refusal, refusal } from "../values/refusal.ts";
import { cutCharacters, REASON_LENGTH_MAX } from "../values/texts.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import type { ReserveReason } from "../state/refused_call.ts";
import { answered, refused, type Result } from "../state/result.ts";
import {
  endOf,
  hasEnded,
  isForgotten,
  NESTING_MAX,
  type Run,
  type RunLimit,
  type RunStep,
} from "../state/run.ts";

/** The input of `POST /v1/runs`. */
export interface OpenRunInput {
  readonly limits: readonly Pick<RunLimit, "unit" | "event" | "quota">[];
  readonly name: string | null;
  readonly ttlMs: number;
  /** The run around it; null for none. */
  readonly parentRunId: string | null;
  readonly metadata: Metadata | null;
}

/** A run as answers show it. */
export interface RunAnswer {
  readonly userId: string;
  readonly run: Run;
  readonly now: Millis;
}

/** The run of a call and those around it, innermost first. */
export interface RunsAnswer {
  readonly runs: readonly Run[];
}

/** Opens a run. It ends with the run around it at the latest. */
export function openRun(draft: Draft, input: OpenRunInput, context: Context): Result<RunAnswer> {
  const { parentRunId } = input;
  const { now } = context;
  const around = runsOf(draft, parentRunId, now);
  if (!around.ok) return around;
  if (around.answer.length >= NESTING_MAX) {
    return refused(invalidField("parentRunId", `runs nest at most ${NESTING_MAX} deep`));
  }
  const { key: userKey, realm, id: userId } = draft.user;
  const run: Run = {
    id: context.ids.nextOwned("run", userKey),
    userKey,
    realm,
    name: input.name,
    metadata: input.metadata?.text ?? null,
    around: around.answer.map(({ id }) => id),
    limits: input.limits.map(({ unit, event, quota }, place) => {
      return { id: `limit_${place + 1}`, unit, event, quota, count: 0n, held: 0n };
    }),
    openHolds: 0,
    createdAt: now,
    expiresAt: Math.min(now + input.ttlMs, ...around.answer.map(endOf)),
    endedAt: null,
    reason: null,
  };
  draft.putRun(run);
  return answered({ userId, run, now });
}

/** The input of `POST /v1/runs/{runId}/end`. */
export interface EndRunInput {
  readonly runId: string;
  readonly reason: string | null;
}

/** Ends a run with all runs within it. Open holds are settled as usual. */
export function endRun(draft: Draft, { runId, reason }: EndRunInput, { now }: Context): Result<RunAnswer> {
  const found = runsOf(draft, runId, now);
  if (!found.ok) return found;
  const ended = { endedAt: now, reason: cutCharacters(reason, REASON_LENGTH_MAX) };
  for (const run of [...draft.runs()]) {
    const isWithin = run.id === runId || run.around.includes(runId);
    if (isWithin && !hasEnded(run, now)) draft.putRun({ ...run, ...ended });
  }
  return answered({ userId: draft.user.id, run: draft.run(runId) as Run, now });
}

/** Checks that a call may use a run, before work that is counted later. */
export function checkRun(
  draft: Draft,
  { runId }: Pick<EndRunInput, "runId">,
  { now }: Context,
): Result<RunsAnswer> {
  const found = runsOf(draft, runId, now);
  return found.ok ? answered({ runs: found.answer }) : found;
}

const NO_RUNS: readonly Run[] = [];
const NO_RUN: Result<readonly Run[]> = answered(NO_RUNS);

/** Returns the run of a call and those around it, innermost first, or refuses a run that is unknown or has ended. */
export function runsOf(draft: Draft, runId: string | null | undefined, now: Millis): Result<readonly Run[]> {
  if (runId === null || runId === undefined) return NO_RUN;
  const runs = knownRuns(draft, runId);
  const [run] = runs;
  if (run === undefined || isForgotten(run, now)) return refused(unknownRun());
  if (runs.some((each) => hasEnded(each, now))) {
    return refused(refusal("run_ended", `The run has ended: ${runId}`));
  }
  return answered(runs);
}

/** Returns the run of an id and those around it, innermost first, without those that retention removed. */
export function knownRuns(draft: Draft, runId: string | undefined): readonly Run[] {
  const run = runId === undefined ? undefined : draft.run(runId);
  if (run === undefined) return NO_RUNS;
  return [run, ...run.around.flatMap((id) => draft.run(id) ?? [])];
}

/** Refuses a run that the user does not have. */
export function unknownRun(): Refusal {
  return refusal("not_found", "Run not found");
}

/** Counts a call in its run and in those around it. Without a run, and for a run that retention removed, nothing counts. */
export function moveRuns(draft: Draft, runId: string | undefined, step: RunStep): void {
  for (const run of knownRuns(draft, runId)) {
    const limits = run.limits.map((limit) => {
      if (!patternCovers(limit.event, step.event)) return limit;
      const { count, held, unit } = limit;
      return { ...limit, count: count + step.count[unit], held: held + step.held[unit] };
    });
    draft.putRun({ ...run, limits, openHolds: run.openHolds + step.openHolds });
  }
}

/** A call as its runs see it. */
interface CountedCall {
  readonly event: string;
  readonly amounts: Amounts;
  /** Whether it is refused where cents are counted, because its cost is unknown. */
  readonly lacksPrice: boolean;
}

/** A run that refuses a call. */
export interface RefusingRun {
  readonly run: Run;
  readonly reason: Extract<ReserveReason, "run_limit_reached" | "unpriced_model">;
  /** The limits with too little left; those in cents for a call without a price. */
  readonly limits: readonly RunLimit[];
}

/** Returns the runs that refuse a call, innermost first. A need of 0 passes while the limit is not full. */
export function refusingRuns(runs: readonly Run[], call: CountedCall): readonly RefusingRun[] {
  return runs.flatMap((run): RefusingRun[] => {
    const covering = run.limits.filter(({ event }) => patternCovers(event, call.event));
    const inCents = call.lacksPrice ? covering.filter(({ unit }) => unit === "cents") : [];
    if (inCents.length > 0) return [{ run, reason: "unpriced_model", limits: inCents }];
    const limits = covering.filter((limit) => !hasLeft(limit, call.amounts[limit.unit]));
    return limits.length === 0 ? [] : [{ run, reason: "run_limit_reached", limits }];
  });
}

function hasLeft({ quota, count }: RunLimit, need: Amount): boolean {
  return need > 0n ? count + need <= quota : count < quota;
}

/** Whether any of the runs counts a unit of an event. */
export function runsCount(runs: readonly Run[], event: string, unit: Unit): boolean {
  return runs.some(({ limits }) =>
    limits.some((limit) => limit.unit === unit && patternCovers(limit.event, event))
  );
}

/** What a hold, or an event that counts in no run, keeps of its run; nothing for a call without one. */
export function runOfCall(runId: string | undefined): { readonly runId?: string } {
  return runId === undefined ? NOTHING : { runId };
}

const NOTHING = {};

/** The final amounts of a call in every unit. */
export function allAmounts(finalOf: (unit: Unit) => Amount): Amounts {
  return {
    count: finalOf("count"),
    tokens: finalOf("tokens"),
    cents: finalOf("cents"),
    seconds: finalOf("seconds"),
    credits: finalOf("credits"),
  };
}
