// Decide: one command against one user's state, at one moment. First everything that is due is settled in the
// order of its time, so that a lazy settlement equals an eager one; then the command runs; then the row that
// says when this user is due next is brought up to date. Pure: the state is read, never written; the same
// inputs give the same decision.

import { cancel } from "domain/cancel.ts";
import { commit } from "domain/commit.ts";
import {
  answered,
  type CommandName,
  type Commands,
  type Context,
  type Decision,
  type Result,
  type SettleAnswer,
} from "domain/command.ts";
import { Draft } from "domain/draft.ts";
import type { Millis } from "domain/period.ts";
import { grant } from "domain/grant.ts";
import { expire, release } from "domain/release.ts";
import { revoke } from "domain/revoke.ts";
import { canUse, reserve } from "domain/reserve.ts";
import type { Reservation } from "domain/reservation.ts";
import { refreshEntitlement } from "domain/standing.ts";
import { historyRow, subscribe } from "domain/subscribe.ts";
import type { Subscription } from "domain/subscription.ts";
import { track } from "domain/track.ts";
import { credits, usage, user } from "domain/usage.ts";
import type { UserState } from "domain/user.ts";

type Handlers = {
  readonly [Name in CommandName]: (
    draft: Draft,
    input: Commands[Name]["input"],
    context: Context,
  ) => Result<Commands[Name]["answer"]>;
};

/** One function a command; a command without one would not compile. */
const HANDLERS: Handlers = {
  reserve,
  commit,
  release,
  track,
  canUse,
  subscribe,
  cancel,
  grant,
  revoke,
  credits,
  usage,
  user,
  settle: () => answered({ holds: 0, subscriptions: 0 }),
};

/** Decides a command. The changes are not applied to the state. */
export function decide<Name extends CommandName>(
  state: UserState,
  name: Name,
  input: Commands[Name]["input"],
  context: Context,
): Decision<Commands[Name]["answer"]> {
  const draft = new Draft(state);
  const settled = settleDue(draft, context);
  const result = name === "settle" ? answered(settled) : HANDLERS[name](draft, input, context);
  if (!draft.isEmpty && !state.recorded) draft.putUser({});
  updateDueAt(draft, context.now);
  return { result, changes: draft.changes(), operations: draft.operations, issued: draft.issued };
}

/** Something that falls due: a hold that lapses or a subscription that ends. Holds come first at the same time. */
type Due =
  & { readonly at: Millis; readonly id: string }
  & (
    | { readonly kind: "hold" }
    | { readonly kind: "subscription" }
  );

/** Settles what is due, each at its own moment; answers how much it was. */
function settleDue(draft: Draft, context: Context): SettleAnswer {
  const { dueAt } = draft.user;
  const settled = { holds: 0, subscriptions: 0 };
  if (dueAt !== null && dueAt <= context.now) {
    for (const due of listDue(draft, context.now)) {
      if (due.kind === "hold") {
        expire(draft, draft.reservation(due.id) as Reservation, context);
        settled.holds += 1;
      } else {
        endSubscription(draft, due.id, { ...context, now: due.at });
        settled.subscriptions += 1;
      }
    }
  }
  refreshEntitlement(draft, context, context.now);
  return settled;
}

function listDue(draft: Draft, now: Millis): Due[] {
  const { state } = draft;
  const due: Due[] = state.holds.due(now, state.isOpen).map(({ at, id }) => ({ at, id, kind: "hold" }));
  for (const row of state.subscriptions.values()) {
    if (!row.ended && row.endsAt !== null && row.endsAt <= now) {
      due.push({ at: row.endsAt, id: row.id, kind: "subscription" });
    }
  }
  const order = { hold: 0, subscription: 1 };
  return due.sort((a, b) => a.at - b.at || order[a.kind] - order[b.kind] || (a.id < b.id ? -1 : 1));
}

function endSubscription(draft: Draft, id: string, context: Context): void {
  const row: Subscription = { ...draft.subscription(id) as Subscription, ended: true };
  draft.putSubscription(row);
  draft.appendSubscriptionEvent(historyRow(row, "ended", context));
  refreshEntitlement(draft, context, context.now, id);
}

/**
 * Keeps `dueAt` not later than what is due next. It moves earlier at once, and later only when its moment has
 * passed: an early `dueAt` costs one idle look, and most turns then write no user row at all.
 */
function updateDueAt(draft: Draft, now: Millis): void {
  const { dueAt } = draft.user;
  if (dueAt !== null && dueAt <= now) {
    draft.putUser({ dueAt: draft.nextDue() });
    return;
  }
  const written = draft.nextDueWritten();
  if (written < (dueAt ?? Infinity)) draft.putUser({ dueAt: written });
}
