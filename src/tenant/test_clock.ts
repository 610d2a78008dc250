// Moving the test clock of an app: durable first, then in memory, then everything that became due is settled.
// Section 3 of the decisions, "Test clock".

import type { UserStore } from "../../actors/port.ts";
import { sweepRealm, type SweepTerm } from "../../actors/sweep.ts";
import type { Millis } from "../domain/values/period.ts";
import { invalidField } from "../domain/values/refusal.ts";
import { answered, refused, type Result } from "../domain/state/result.ts";
import { inTurn } from "../process/in_turn.ts";
import type { AppRealm } from "./registry.ts";
import type { InCell } from "../storage/members/cell_store.ts";
import { saveClockOffset } from "../storage/stores/registry_store.ts";

/** What a move of the clock works on. */
export interface ClockWorld {
  readonly term: SweepTerm;
  readonly store: Pick<UserStore, "listDue">;
  readonly inCell: InCell;
}

/** By how much, or to when, a clock is moved. */
export type ClockMove = { readonly byMs: Millis } | { readonly to: Millis };

/** The farthest that the clock goes: the year 9999, so that every time keeps its four digits. */
const LATEST_MS = Date.UTC(9999, 0, 1);

/**
 * Moves a realm's clock forward; answers where it stands then. Moves of one clock run one after another, each from
 * where the one before it came to.
 */
export function moveTestClock(
  { term, store, inCell }: ClockWorld,
  realm: AppRealm,
  move: ClockMove,
): Promise<Result<Millis>> {
  return inTurn(realm, async () => {
    const from = realm.now();
    const to = "to" in move ? move.to : from + move.byMs;
    if (to < from) return refused(invalidField("now", "must not be before the present clock"));
    if (to > LATEST_MS) {
      const member = "to" in move ? "now" : "advanceSeconds";
      return refused(invalidField(member, "must not take the clock past the year 9998"));
    }
    const offset = realm.clockOffsetMs + (to - from);
    await inCell(realm.cell, (session) => saveClockOffset(session, realm.realm, offset));
    realm.clockOffsetMs = offset;
    await sweepRealm(term, store, realm);
    return answered(realm.now());
  });
}
