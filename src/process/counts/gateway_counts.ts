// Counters of calls through the gateway.

import { makeHistogram } from "./histograms.ts";

/**
 * How a call ended: `committed` with the usage that the server reported, `estimated` by us, `left` by its caller, with a
 * report that came soon after or else by estimate, `failed` by the server and released, `refused` before it was made.
 */
export const GATEWAY_OUTCOMES = ["committed", "estimated", "left", "failed", "refused"] as const;

export type GatewayOutcome = (typeof GATEWAY_OUTCOMES)[number];

/** From a few milliseconds to minutes: models think. */
const FIRST_BYTE_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180];

/** Counts of one process. */
export class GatewayCounts {
  /** Calls in flight. */
  open = 0;
  /** Calls in flight that stream. */
  streams = 0;
  /** Calls that are read on for the report after their callers have left. */
  readingOn = 0;
  /** Calls that were not read on, because too many were. */
  readOnRefused = 0;
  readonly outcomes: Record<GatewayOutcome, number> = {
    committed: 0,
    estimated: 0,
    left: 0,
    failed: 0,
    refused: 0,
  };
  /** Holds that could not be settled in time, and expire. */
  unsettled = 0;
  readonly firstByteSeconds = makeHistogram(
    "holdfast_gateway_first_byte_seconds",
    "From a call of the gateway to the first byte of its answer.",
    FIRST_BYTE_SECONDS,
  );
}
