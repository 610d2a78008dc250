// What a node counts about the cluster: calls passed on and taken, cells taken and handed over, and how long each move
// took.

import { ChannelStats } from "../channel/shapes.ts";
import { makeHistogram, STORE_SECONDS } from "../process/counts/histograms.ts";

/** Counts of one process. */
export class ClusterCounts {
  /** Calls that another node answered. */
  passedOn = 0;
  /** Calls that returned as not run and were sent again. */
  sentAgain = 0;
  /** Calls that this node answered for others. */
  taken = 0;
  cellsTaken = 0;
  /** Cells taken from a dead owner. */
  cellsRescued = 0;
  cellsHandedOver = 0;
  /** Hand-overs that were dropped because the last calls took too long. */
  handOversDropped = 0;
  /** Counts of the channels of all terms. */
  readonly channels = new ChannelStats();
  readonly takeSeconds = makeHistogram(
    "holdfast_cell_take_seconds",
    "From the locks of cells to their open doors.",
    STORE_SECONDS,
  );
  readonly handOverSeconds = makeHistogram(
    "holdfast_cell_hand_over_seconds",
    "From shut doors to the locks being free.",
    STORE_SECONDS,
  );
}
