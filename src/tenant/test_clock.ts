// Moving the test clock of an app: durable first, then in memory, then everything that became due is settled.
// Section 3 of the decisions, "Test clock".

import { sweepRealm } from "../../actors/sweep.ts";
import type { Millis } from "../domain/plans/period.ts";
import { type Refusal, refusal } from "../domain/refusal.ts";
import { inTurn } from "../process/in_turn.ts";
import type { AppRealm } from "./registry.ts";
import type { Serving } from "../service/service.ts";
import { saveClockOffset } from "../storage/stores/registry_store.ts";

/** The farthest that the clock goes: the year 9999, so that every time keeps its four digits. */
const LATEST_MS = Date.UTC(9999, 0, 1);

/**
 * Moves a realm's clock forward; answers where it stands then. Moves of one clock run one after another, each from
 * where the one before it came to.
 *
 * @param target the new time, made of the present one
 */
export function moveTestClock(
  serving: Serving,
  realm: AppRealm,
  target: (now: Millis) => Millis,
): Promise<Millis | Refusal> {
  return inTurn(realm, async () => {
    const from = realm.now();
    const to = target(from);
    if (to < from) return refusal("invalid_request", "now: must not be before the present clock");
    if (to > LATEST_MS) return refusal("invalid_request", "The clock cannot pass the year 9998");
    const offset = realm.clockOffsetMs + (to - from);
    await serving.lease.transaction((session) => saveClockOffset(session, realm.realm, offset));
    realm.clockOffsetMs = offset;
    await sweepRealm(serving.term, serving.store, realm);
    return realm.now();
  });
}
