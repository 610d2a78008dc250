// Decide: the entry of the domain. It runs one command on one user's state, at one moment:
//
//  1. what is due (lapsed holds, ended subscriptions, expired credits) is settled, each as of its own time;
//  2. the command's own function reads and writes a draft over the state;
//  3. alerts fire for thresholds that the command reached;
//  4. the time at which the user is due next is updated;
//  5. messages for webhooks are recorded among the changes;
//  6. the caller receives the draft's changes, makes them durable, applies them and then sends the result.
//
// It is pure: the state is read and never written, and the same inputs give the same decision. Step 1 comes before
// every command, so it makes no difference whether a sweep has run.

import type { CommandName, Commands } from "./command.ts";
import { consent } from "./consent.ts";
import type { Context } from "./state/context.ts";
import { credits } from "./credits/balances.ts";
import { extend } from "./credits/extend.ts";
import { grant } from "./credits/grant.ts";
import { refund } from "./credits/refund.ts";
import { reinstate } from "./credits/reinstate.ts";
import { revoke } from "./credits/revoke.ts";
import { Draft } from "./state/draft.ts";
import { settleDue, updateDueAt } from "./metering/due.ts";
import { alertBase, fireAlerts } from "./metering/alerts.ts";
import { commit } from "./metering/commit.ts";
import { explain } from "./metering/explain.ts";
import { generate } from "./metering/generate.ts";
import { prolong } from "./metering/prolong.ts";
import { release } from "./metering/release.ts";
import { canUse, reserve } from "./metering/reserve.ts";
import { track } from "./metering/track.ts";
import { messagesOf } from "./messages/record.ts";
import { cancel } from "./plans/cancel.ts";
import { mirror } from "./plans/mirror.ts";
import { subscribe } from "./plans/subscribe.ts";
import { answered, type Decision, type Result } from "./state/result.ts";
import { usage, user } from "./usage.ts";
import type { UserState } from "./state/user.ts";

type Handlers = {
  readonly [Name in CommandName]: (
    draft: Draft,
    input: Commands[Name]["input"],
    context: Context,
  ) => Result<Commands[Name]["answer"]>;
};

/** The function of each command; a missing one does not compile. */
const HANDLERS: Handlers = {
  reserve,
  commit,
  release,
  prolong,
  track,
  canUse,
  explain,
  subscribe,
  cancel,
  mirror,
  grant,
  refund,
  reinstate,
  extend,
  revoke,
  credits,
  usage,
  user,
  consent,
  generate,
  settle: () => answered({ holds: 0, subscriptions: 0 }),
};

/**
 * Decides a command. The changes are not applied to the state.
 *
 * @param state the user's state, with every row that the command needs in memory
 */
export function decide<Name extends CommandName>(
  state: UserState,
  name: Name,
  input: Commands[Name]["input"],
  context: Context,
): Decision<Commands[Name]["answer"]> {
  const draft = new Draft(state);
  const settled = settleDue(draft, context);
  const alerts = alertBase(draft, context);
  const result = name === "settle" ? answered(settled) : HANDLERS[name](draft, input, context);
  fireAlerts(draft, alerts, context);
  if (!draft.isEmpty && !state.recorded) draft.putUser({});
  updateDueAt(draft, context.now);
  for (const change of messagesOf(draft, context)) draft.appendRecord(change);
  const { operations, issued, refusedCall } = draft;
  return { result, changes: draft.changes(), operations, issued, refusedCall };
}
