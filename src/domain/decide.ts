// Decide: the entry of the domain. It runs one command on one user's state, at one moment:
//
//  1. what is due (lapsed holds, ended subscriptions, expired credits) is settled, each as of its own time;
//  2. the command's own function reads and writes a draft over the state;
//  3. alerts fire for thresholds that the command reached;
//  4. credits that run low start a top-up, where the user has such a setting;
//  5. the time at which the user is due next is updated;
//  6. messages for webhooks are recorded among the changes;
//  7. the summary of the user is written, where it changed;
//  8. the caller receives the draft's changes, makes them durable, applies them and then sends the result.
//
// It is pure: the state is read and never written, and the same inputs give the same decision. Step 1 comes before
// every command, so it makes no difference whether a sweep has run.

import { createEndUserKey, endUserKeys, revokeEndUserKey, useEndUserKey } from "./accounts/end_user_keys.ts";
import { setParent } from "./accounts/parent.ts";
import { checkRun, endRun, openRun } from "./accounts/run.ts";
import type { CommandName, Commands } from "./command.ts";
import { consent } from "./consent.ts";
import type { Context } from "./state/context.ts";
import { credits } from "./credits/balances.ts";
import { extend } from "./credits/extend.ts";
import { grant } from "./credits/grant.ts";
import { refund } from "./credits/refund.ts";
import { reinstate } from "./credits/reinstate.ts";
import { revoke } from "./credits/revoke.ts";
import { startTopUp } from "./credits/top_up.ts";
import { deleteTopUp, putTopUp, readTopUp } from "./credits/top_up_setting.ts";
import { topUpWork } from "./credits/top_up_work.ts";
import { Draft } from "./state/draft.ts";
import { settleIncluded } from "./includes/settle.ts";
import { settleDue, updateDueAt } from "./metering/due.ts";
import { type AlertBase, alertBase, fireAlerts } from "./metering/alerts.ts";
import { commit } from "./metering/commit.ts";
import { explain } from "./metering/explain.ts";
import { generate } from "./metering/generate.ts";
import { reportSales } from "./metering/overage.ts";
import { prolong } from "./metering/prolong.ts";
import { detach, release } from "./metering/release.ts";
import { reserveFitting } from "./metering/fit.ts";
import { canUse, reserve } from "./metering/reserve.ts";
import { track } from "./metering/track.ts";
import { messagesOf } from "./messages/record.ts";
import { cancel } from "./plans/cancel.ts";
import { features } from "./plans/features.ts";
import { mirror } from "./plans/mirror.ts";
import { schedule } from "./plans/schedule.ts";
import { spendCap } from "./plans/spend_cap.ts";
import { subscribe } from "./plans/subscribe.ts";
import { minuteOf, type Seen, summarize, summarizeRefused } from "./plans/summary.ts";
import type { RefusedCall } from "./state/refused_call.ts";
import { TooManyHolds } from "./state/open_holds.ts";
import { answered, type CommandDecision, refused, type Result } from "./state/result.ts";
import { members, usage, user } from "./usage.ts";
import type { Change, User, UserState } from "./state/user.ts";

type Handlers = {
  readonly [Name in CommandName]: (
    draft: Draft,
    input: Commands[Name]["input"],
    context: Context,
  ) => Result<Commands[Name]["answer"]>;
};

/** The function of each command; a missing one does not compile. */
const HANDLERS: Handlers = {
  reserve: (draft, input, context) =>
    input.fit == null ? reserve(draft, input, context) : reserveFitting(draft, input, input.fit, context),
  commit,
  release,
  prolong,
  track,
  canUse,
  explain,
  subscribe,
  cancel,
  schedule,
  mirror,
  grant,
  refund,
  reinstate,
  extend,
  features,
  revoke,
  credits,
  usage,
  user,
  consent,
  generate,
  detach,
  setParent,
  openRun,
  endRun,
  spendCap,
  checkRun,
  createEndUserKey,
  endUserKeys,
  useEndUserKey,
  revokeEndUserKey,
  members,
  putTopUp,
  readTopUp,
  deleteTopUp,
  topUpWork,
  settle: () => answered({ holds: 0, subscriptions: 0 }),
};

const ALONE: readonly UserState[] = [];
const NO_DRAFTS: readonly Draft[] = [];
const NO_BASES: readonly (AlertBase | null)[] = [];
const NO_GROUPS: readonly string[] = [];

/** The commands by which a user is seen. */
const USES: ReadonlySet<CommandName> = new Set(
  ["reserve", "commit", "release", "prolong", "track", "generate", "openRun", "endRun"],
);

/**
 * Decides a command. The changes are not applied to the states.
 *
 * @param state the user's state, with every row that the command needs in memory
 * @param above the states of the users above at which the command counts, nearest first
 */
export function decide<Name extends CommandName>(
  state: UserState,
  name: Name,
  input: Commands[Name]["input"],
  context: Context,
  above: readonly UserState[] = ALONE,
): CommandDecision<Commands[Name]["answer"]> {
  try {
    return decideTurn(state, name, input, context, above);
  } catch (error) {
    if (!(error instanceof TooManyHolds)) throw error;
    const result = refused(error.refusal);
    return { result, changes: [], operations: 0, issued: 0, refusedCall: null, lacking: ALONE };
  }
}

function decideTurn<Name extends CommandName>(
  state: UserState,
  name: Name,
  input: Commands[Name]["input"],
  context: Context,
  above: readonly UserState[],
): CommandDecision<Commands[Name]["answer"]> {
  const levels = above.length === 0 ? NO_DRAFTS : draftsOf(above);
  const draft = new Draft(state, levels);
  // First those above: the message about a change of the user's plan contains their features.
  const bases = levels.length === 0 ? NO_BASES : levels.map((level) => settleLevel(level, context));
  const settled = settleDue(draft, context);
  const alerts = alertBase(draft, context);
  const result = name === "settle" ? answered(settled) : HANDLERS[name](draft, input, context);
  const { refusedCall } = draft;
  const seenAt = USES.has(name) ? minuteOf(context.now) : null;
  finish(draft, alerts, context, { seenAt, refusing: refusingGroups(draft, refusedCall) });
  const { operations, issued } = draft;
  const lacking = draft.lacksEnded ? [state] : ALONE;
  if (levels.length === 0) {
    return { result, changes: draft.changes(), operations, issued, refusedCall, lacking };
  }
  levels.forEach((level, place) => {
    const seen = { seenAt, refusing: refusingGroups(level, refusedCall) };
    finish(level, bases[place] ?? null, context, seen, draft.user);
  });
  return {
    result,
    changes: changesOf(draft, levels),
    operations: operationsOf(operations, levels),
    issued,
    refusedCall,
    lacking: [...lacking, ...levels.flatMap((level) => level.lacksEnded ? [level.state] : [])],
  };
}

/** Makes the drafts of the users above, each with those after it. */
function draftsOf(above: readonly UserState[]): readonly Draft[] {
  let drafts: readonly Draft[] = NO_DRAFTS;
  for (const state of above.toReversed()) drafts = [new Draft(state, drafts), ...drafts];
  return drafts;
}

/** Settles what is due of a user above. Messages of that are about no call. */
function settleLevel(level: Draft, context: Context): AlertBase | null {
  settleDue(level, context);
  for (const change of messagesOf(level, context)) level.appendRecord(change);
  return alertBase(level, context);
}

/** The groups of a user that refused a call. */
function refusingGroups({ user }: Draft, call: RefusedCall | null): readonly string[] {
  if (call === null || (call.refusedBy.length > 0 && !call.refusedBy.includes(user.id))) return NO_GROUPS;
  return call.groupIds;
}

/**
 * Completes a draft after the command.
 *
 * @param causedBy the caller, for the messages of a user above
 */
function finish(
  draft: Draft,
  alerts: AlertBase | null,
  context: Context,
  seen: Seen,
  causedBy: User | null = null,
): void {
  if (draft.changesSubscriptions) settleIncluded(draft, context);
  reportSales(draft, context);
  fireAlerts(draft, alerts, context);
  startTopUp(draft, context);
  if (!draft.isEmpty && !draft.state.recorded) draft.putUser({});
  updateDueAt(draft, context.now);
  for (const change of messagesOf(draft, context, causedBy)) draft.appendRecord(change);
  if (!draft.isEmpty) summarize(draft, seen, context);
  else if (draft.refusedCall !== null || seen.refusing.length > 0) summarizeRefused(draft, seen, context);
}

function changesOf(draft: Draft, levels: readonly Draft[]): readonly Change[] {
  const changes = draft.changes();
  for (const level of levels) for (const change of level.changes()) changes.push(change);
  return changes;
}

/** Operations of the caller, and of promotions that were due above. */
function operationsOf(own: number, levels: readonly Draft[]): number {
  return levels.reduce((sum, { operations }) => sum + operations, own);
}
