// Room for what batches of events write. Each app has a share: what its batches decide at a time is bounded, so an append of
// other apps never waits behind more than that.
//
// Batches of an app enter in the order in which they took their places. A batch that waits for an idempotency key waits for one
// that took its place earlier, so it never waits for a batch that still waits for room.

import { RUNTIME_LIMITS } from "../src/process/limits.ts";

interface Share {
  bytes: number;
  readonly waiting: { readonly bytes: number; readonly begin: () => void }[];
}

/** The shares of all apps. */
export class BatchRoom {
  readonly #shares = new Map<string, Share>();

  /**
   * Takes a place and room for a batch; `leave` must follow.
   *
   * @param bytes how much the batch decides at a time
   * @returns null if there is room now; else resolves when there is
   */
  enter(appId: string, bytes: number): Promise<void> | null {
    let share = this.#shares.get(appId);
    if (share === undefined) this.#shares.set(appId, share = { bytes: 0, waiting: [] });
    if (share.waiting.length === 0 && hasRoom(share, bytes)) {
      share.bytes += bytes;
      return null;
    }
    const { waiting } = share;
    return new Promise((begin) => waiting.push({ bytes, begin }));
  }

  /** Gives the room of a batch that has entered to those that wait. */
  leave(appId: string, bytes: number): void {
    const share = this.#shares.get(appId) as Share;
    share.bytes -= bytes;
    for (
      let next = share.waiting[0];
      next !== undefined && hasRoom(share, next.bytes);
      next = share.waiting[0]
    ) {
      share.waiting.shift();
      share.bytes += next.bytes;
      next.begin();
    }
    if (share.bytes === 0) this.#shares.delete(appId);
  }
}

/** A batch alone always has room. */
function hasRoom(share: Share, bytes: number): boolean {
  return share.bytes === 0 || share.bytes + bytes <= RUNTIME_LIMITS.batchesOfAppBytesMax;
}
