// Moving the test clock of an app: durable first, then in memory, then everything that became due is settled.

import type { UserStore } from "../../actors/port.ts";
import { sweepRealm, type SweepTerm } from "../../actors/sweep.ts";
import type { Millis } from "../domain/values/period.ts";
import { invalidField } from "../domain/values/refusal.ts";
import { answered, refused, type Result } from "../domain/state/result.ts";
import { inTurn } from "../process/in_turn.ts";
import { PROCESS_LIMITS } from "../process/limits.ts";
import { rest } from "../process/rest.ts";
import type { AppRealm } from "./registry.ts";
import type { InCell } from "../storage/nodes/cell_store.ts";
import type { Session } from "../storage/database.ts";
import { lockClockOffset, saveClockOffset } from "../storage/stores/registry_store.ts";

/** What a move of the clock uses. */
export interface ClockWorld {
  readonly term: SweepTerm & { readonly isServing: boolean };
  readonly store: Pick<UserStore, "listDue">;
  readonly inCell: InCell;
}

/** A distance or a target time for a clock. */
type ClockMove = { readonly byMs: Millis } | { readonly to: Millis };

/** Attempts to read a clock after a move with an unknown outcome, with a pause after each. */
const CLOCK_READS_MAX = 10;

/** The latest time of a test clock. Trials of ten years and rollovers of twelve end in years of four digits. */
const LATEST_MS = Date.UTC(9980, 0, 1);

/**
 * Moves a realm's clock forward; returns the time that it was moved to. Moves of one clock run one after another.
 *
 * @param keep keeps the first answer in the transaction of the move; null for a call without an idempotency key
 */
export function moveTestClock(
  { term, store, inCell }: ClockWorld,
  realm: AppRealm,
  move: ClockMove,
  keep: ((session: Session, to: Millis) => Promise<void>) | null,
): Promise<Result<Millis>> {
  return inTurn(realm, async () => {
    const from = realm.now();
    const to = "to" in move ? move.to : from + move.byMs;
    if (to < from) return refused(invalidField("now", "must not be before the current time of the clock"));
    if (to > LATEST_MS) {
      const member = "to" in move ? "now" : "advanceSeconds";
      return refused(invalidField(member, "must not take the clock past the year 9979"));
    }
    const offset = realm.clockOffsetMs + (to - from);
    try {
      await inCell(realm.cell, async (session) => {
        await saveClockOffset(session, realm.realm, offset);
        await keep?.(session, to);
      });
      realm.clockOffsetMs = offset;
    } catch (error) {
      // The move may have been committed, and its answer with it: then memory must follow before that answer is repeated.
      realm.clockOffsetMs = await storedOffset({ term, inCell }, realm);
      throw error;
    }
    await sweepRealm(term, store, realm);
    return answered(to);
  });
}

/**
 * Reads the offset of a realm's clock after a move with an unknown outcome. Gives up where it cannot be read for longer than
 * a lease is valid: then another term, which reads it anew, owns the cell.
 */
async function storedOffset(
  { term, inCell }: Pick<ClockWorld, "term" | "inCell">,
  realm: AppRealm,
): Promise<Millis> {
  for (let tries = 0; tries < CLOCK_READS_MAX && term.isServing; tries++) {
    try {
      return await inCell(realm.cell, (session) => lockClockOffset(session, realm.realm));
    } catch {
      await rest(PROCESS_LIMITS.reconnectMs);
    }
  }
  return realm.clockOffsetMs;
}
