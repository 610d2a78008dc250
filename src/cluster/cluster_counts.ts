// What a member counts of its life among others: calls that it passed on and took, cells that came and went, and how
// long each took.

import { ChannelStats } from "../channel/shapes.ts";
import { makeHistogram, STORE_SECONDS } from "../process/counts/histograms.ts";

/** Counts of one process. */
export class ClusterCounts {
  /** Calls that another member answered. */
  passedOn = 0;
  /** Calls that came back unrun and were sent again. */
  sentAgain = 0;
  /** Calls that this member answered for others. */
  taken = 0;
  cellsTaken = 0;
  /** Cells whose last owner was dead. */
  cellsRescued = 0;
  cellsHandedOver = 0;
  /** Hand-overs that were dropped, since the last calls took too long. */
  handOversDropped = 0;
  /** What the channels of all terms did. */
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
