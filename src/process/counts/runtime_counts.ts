// Counters of the actor runtime. A turn adds to plain numbers and arrays, which `metrics.ts` reads when metrics are asked
// for. They live as long as the process, so that counters continue when a new term begins. The state of one term's
// mailboxes is a tally of its own.

import type { CommandName, Commands } from "../../domain/command.ts";
import type { ReserveReason } from "../../domain/state/refused_call.ts";
import type { Result } from "../../domain/state/result.ts";
import { BATCH_CHANGES, makeHistogram, MEMORY_SECONDS, STORE_SECONDS } from "./histograms.ts";
import { RecentPeak } from "./recent_peak.ts";

/** One turn in this many of each command is timed; a power of two. */
const TURNS_PER_SAMPLE = 16;

const COMMAND_INDEX: Readonly<Record<CommandName, number>> = {
  reserve: 0,
  commit: 1,
  release: 2,
  track: 3,
  canUse: 4,
  subscribe: 5,
  cancel: 6,
  grant: 7,
  revoke: 8,
  credits: 9,
  usage: 10,
  user: 11,
  consent: 12,
  generate: 13,
  settle: 14,
  explain: 15,
  extend: 16,
  prolong: 17,
  mirror: 18,
  refund: 19,
  reinstate: 20,
  setParent: 21,
  detach: 22,
  createEndUserKey: 23,
  endUserKeys: 24,
  useEndUserKey: 25,
  revokeEndUserKey: 26,
  members: 27,
  openRun: 28,
  endRun: 29,
  checkRun: 30,
  features: 31,
  schedule: 32,
  putTopUp: 33,
  readTopUp: 34,
  deleteTopUp: 35,
  topUpWork: 36,
  spendCap: 37,
};

/** Commands in the order of `turns`. */
export const COMMAND_NAMES = Object.keys(COMMAND_INDEX);

const REASON_INDEX: Readonly<Record<ReserveReason, number>> = {
  limit_reached: 1,
  reservation_headroom_exceeded: 2,
  unmatched_event: 3,
  no_subscription: 4,
  unpriced_model: 5,
  member_limit_reached: 6,
  run_limit_reached: 7,
  rate_limit_reached: 8,
  concurrency_limit_reached: 9,
};

/** Outcomes of a reserve, in the order of `reserves`. */
export const RESERVE_OUTCOMES = ["allowed", ...Object.keys(REASON_INDEX)];

/** Counters of the runtime over all terms of a process. */
export class RuntimeCounts {
  /** Holds settled with texts that memory lacked. */
  holdTextsLoaded = 0;
  /** Turns that decided, by command. */
  readonly turns = new Float64Array(COMMAND_NAMES.length);
  /** Reserves that were answered, by outcome: first those of live mode, then those of test mode. */
  readonly reserves = new Float64Array(2 * RESERVE_OUTCOMES.length);
  readonly decideSeconds = makeHistogram(
    "holdfast_decide_seconds",
    "Time of a decision and of applying it; one in 16 of a command is timed.",
    MEMORY_SECONDS,
  );
  readonly mailboxSeconds = makeHistogram(
    "holdfast_mailbox_seconds",
    "Time that calls waited in a mailbox for a load or for earlier turns; calls that did not wait are left out.",
    STORE_SECONDS,
  );
  readonly loadSeconds = makeHistogram(
    "holdfast_load_seconds",
    "Time of a query that loads users.",
    STORE_SECONDS,
  );
  readonly appendSeconds = makeHistogram(
    "holdfast_append_seconds",
    "Time until a batch was durable in the journal.",
    STORE_SECONDS,
  );
  /** Seconds of the longest recent append. */
  readonly appendPeak = new RecentPeak();
  readonly appendChanges = makeHistogram("holdfast_append_changes", "Changes of a batch.", BATCH_CHANGES);
  readonly drainSeconds = makeHistogram(
    "holdfast_drain_seconds",
    "Time of a transaction that moves batches into the tables.",
    STORE_SECONDS,
  );
  /** Seconds of the longest recent drain. */
  readonly drainPeak = new RecentPeak();
  readonly drainChanges = makeHistogram(
    "holdfast_drain_changes",
    "Changes of a transaction that moves batches into the tables.",
    BATCH_CHANGES,
  );
  /** Users added to memory: loaded or new. */
  actorsStarted = 0;
  /** Users removed from memory. */
  actorsLetGo = 0;
  /** Rows of refused calls written. */
  refusalRowsWritten = 0;
  /** Refused calls missing in the counts: too many rows in memory, or a write with an unknown result. */
  refusedCallsLost = 0;
  /** Failed requests missing in their log: too many rows in memory, or a write with an unknown result. */
  failedRequestsLost = 0;
  /** Calls that were refused because the tables did not have the newest changes in time. */
  flushesLate = 0;
  /** Reads of tables that were refused, because too many of their app ran and waited. */
  readsRefused = 0;
  /** Characters of journal appended. */
  appendedBytes = 0;

  /** Counts a turn. Returns its start time if it is timed, else 0. */
  turnStarts(name: CommandName): number {
    const index = COMMAND_INDEX[name];
    const before = (this.turns[index] as number)++;
    return (before & (TURNS_PER_SAMPLE - 1)) === 0 ? performance.now() : 0;
  }

  /** Counts the outcome of a turn. */
  turnEnds<Name extends CommandName>(
    name: Name,
    mode: "live" | "test",
    result: Result<Commands[Name]["answer"]>,
    startedAt: number,
  ): void {
    if (startedAt !== 0) this.decideSeconds.observe(secondsSince(startedAt));
    if (name !== "reserve" || !result.ok) return;
    const [reason] = (result.answer as Commands["reserve"]["answer"]).reasons;
    const outcome = reason === undefined ? 0 : REASON_INDEX[reason];
    (this.reserves[outcome + (mode === "live" ? 0 : RESERVE_OUTCOMES.length)] as number) += 1;
  }

  /** Counts an append that is durable; it began at this moment of `performance.now()`. */
  appended(
    { changes, bytes }: { readonly changes: number; readonly bytes: number },
    startedAt: number,
  ): void {
    const seconds = secondsSince(startedAt);
    this.appendSeconds.observe(seconds);
    this.appendPeak.record(seconds);
    this.appendChanges.observe(changes);
    this.appendedBytes += bytes;
  }

  /** Counts a drain that is done. */
  drained(changes: number, startedAt: number): void {
    const seconds = secondsSince(startedAt);
    this.drainSeconds.observe(seconds);
    this.drainPeak.record(seconds);
    this.drainChanges.observe(changes);
  }
}

/** Seconds since a moment of `performance.now()`. */
export function secondsSince(startedAt: number): number {
  return (performance.now() - startedAt) / 1000;
}

/** The state of a term's mailboxes. */
export class MailboxTally {
  /** Turns waiting behind a prefetch. */
  waitingTurns = 0;
  /** Mailboxes with a prefetch in flight. */
  busy = 0;
}
