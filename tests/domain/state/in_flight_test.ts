// What open holds hold of concurrency limits, as it follows from the reservations.

import assert from "node:assert/strict";
import { heldBy, InFlight } from "../../../src/domain/state/in_flight.ts";
import type { HoldLine, Reservation } from "../../../src/domain/state/reservation.ts";
import { IN_FLIGHT, slotAt, type Window } from "../../../src/domain/values/period.ts";

const line = (groupId: string, window: Window, taken: bigint): HoldLine => ({
  planId: "p",
  groupId,
  window,
  unit: "count",
  taken,
});

const put = (
  flight: InFlight,
  id: string,
  lines: readonly HoldLine[],
  status: Reservation["status"] = "held",
) => flight.set({ id, status, expiresAt: 9, lines } as unknown as Reservation);

Deno.test("only open holds with lines of guards are kept, and each counts once", () => {
  const flight = new InFlight();
  const month: Window = { start: 0, end: 99 };
  const calls = [line("open", IN_FLIGHT, 2n), line("rate", slotAt(0, 60), 2n), line("all", month, 2n)];
  put(flight, "one", calls);
  put(flight, "two", [line("open", IN_FLIGHT, 3n)]);
  put(flight, "two", [line("open", IN_FLIGHT, 4n)]);
  put(flight, "none", [line("all", month, 5n)]);
  assert.deepEqual([flight.heldOf("p", "open"), flight.heldOf("p", "rate"), flight.heldOf("q", "open")], [
    6n,
    0n,
    0n,
  ]);
  assert.deepEqual([...flight.holds].map(({ id, lines }) => [id, lines.length]), [["one", 2], ["two", 1]]);
  assert.deepEqual([heldBy(flight.get("one"), "p", "open"), heldBy(flight.get("none"), "p", "open")], [
    2n,
    0n,
  ]);
  for (const status of ["committed", "released"] as const) put(flight, "one", calls, status);
  put(flight, "two", calls, "expired");
  assert.deepEqual([flight.heldOf("p", "open"), [...flight.holds]], [0n, []]);
});
