// What the actor runtime counts: plain numbers and arrays that a turn adds to and a scrape reads. They live as long as
// the process, so that counters go on over terms; what is true of one term alone (its mailboxes) is a tally of its own.

import type { CommandName, Commands } from "../domain/command.ts";
import type { ReserveReason } from "../domain/metering/room.ts";
import type { Result } from "../domain/result.ts";
import { BATCH_CHANGES, Histogram, MEMORY_SECONDS, STORE_SECONDS } from "./histogram.ts";

/** One turn of this many is timed, by command; a power of two. */
export const TURNS_PER_SAMPLE = 16;

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
};

/** Commands in the order of `turns`. */
export const COMMAND_NAMES = Object.keys(COMMAND_INDEX);

const REASON_INDEX: Readonly<Record<ReserveReason, number>> = {
  limit_reached: 1,
  reservation_headroom_exceeded: 2,
  unmatched_event: 3,
  no_subscription: 4,
};

/** What a reserve comes to, in the order of `reserves`. */
export const RESERVE_OUTCOMES = ["allowed", ...Object.keys(REASON_INDEX)];

/** Counts of the runtime over all terms of a process. */
export class RuntimeCounts {
  /** Turns that decided, by command. */
  readonly turns = new Float64Array(COMMAND_NAMES.length);
  /** Reserves that were answered, by outcome: first those of live mode, then those of test mode. */
  readonly reserves = new Float64Array(2 * RESERVE_OUTCOMES.length);
  readonly decideSeconds = new Histogram(MEMORY_SECONDS);
  readonly mailboxSeconds = new Histogram(STORE_SECONDS);
  readonly loadSeconds = new Histogram(STORE_SECONDS);
  readonly appendSeconds = new Histogram(STORE_SECONDS);
  readonly appendChanges = new Histogram(BATCH_CHANGES);
  readonly drainSeconds = new Histogram(STORE_SECONDS);
  readonly drainChanges = new Histogram(BATCH_CHANGES);
  /** Users that were loaded or made, and users that were let go. */
  actorsStarted = 0;
  actorsLetGo = 0;
  /** Characters of journal appended. */
  appendedBytes = 0;

  /** Counts a turn; answers when it began if it is one to be timed, else 0. */
  turnStarts(name: CommandName): number {
    const index = COMMAND_INDEX[name];
    const before = (this.turns[index] as number)++;
    return (before & (TURNS_PER_SAMPLE - 1)) === 0 ? performance.now() : 0;
  }

  /** Takes the outcome of a turn that was counted. */
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

  /** Takes an append that began at a moment of `performance.now()` and is durable. */
  appended(
    { changes, bytes }: { readonly changes: number; readonly bytes: number },
    startedAt: number,
  ): void {
    this.appendSeconds.observe(secondsSince(startedAt));
    this.appendChanges.observe(changes);
    this.appendedBytes += bytes;
  }

  /** Takes a drain that is done. */
  drained(changes: number, startedAt: number): void {
    this.drainSeconds.observe(secondsSince(startedAt));
    this.drainChanges.observe(changes);
  }
}

/** Seconds since a moment of `performance.now()`. */
export function secondsSince(startedAt: number): number {
  return (performance.now() - startedAt) / 1000;
}

/** The mailboxes of a term. */
export class MailboxTally {
  /** Turns that wait behind a prefetch. */
  waitingTurns = 0;
  /** Mailboxes in which a prefetch is under way. */
  busy = 0;
}
