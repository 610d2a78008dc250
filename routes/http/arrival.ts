// Limits on request bodies that are still arriving. A body that takes too long is refused, and all large bodies
// together may use only so much memory. A caller who sends a byte a minute, or stops after half a body, costs a connection
// and no more.
//
// A timer for each request would be expensive, so one timer serves all: a body is young until the first tick, old until the
// second, and refused then.
//
// The waits are in an array, and the last one takes the place of a wait that leaves. A set would make a new table every few
// dozen calls; tables that outlive a collection keep each other alive, and with them the bodies that were waited for.

import { invalidMember, Refused } from "./errors.ts";
import { BODY_LIMITS } from "../../src/process/limits.ts";

/** A pending read. */
interface Wait {
  readonly reject: (reason: Error) => void;
  readonly cancel: (() => void) | null;
  isOld: boolean;
  /** Its index among the waits; negative once it has left. */
  place: number;
}

const waits: Wait[] = [];
let timer: ReturnType<typeof setTimeout> | null = null;
let heldBytes = 0;

/**
 * Returns the result of a read of a body; rejects with a refusal when the read takes longer than a body may.
 *
 * @param cancel ends the read, so that what has arrived is forgotten
 */
export function inTime<T>(read: Promise<T>, cancel: (() => void) | null = null): Promise<T> {
  return new Promise((resolve, reject) => {
    const wait: Wait = { reject, cancel, isOld: false, place: waits.length };
    waits.push(wait);
    timer ??= startTimer();
    read.then((value) => {
      leave(wait);
      resolve(value);
    }, (error) => {
      leave(wait);
      reject(error);
    });
  });
}

function leave(wait: Wait): void {
  const { place } = wait;
  if (place < 0) return;
  wait.place = -1;
  const last = waits.pop() as Wait;
  if (last === wait) return;
  last.place = place;
  waits[place] = last;
}

/** Takes memory for a part of a large body, or refuses when large bodies hold too much of it. The caller gives it back. */
export function takeBytes(bytes: number): void {
  if (heldBytes + bytes > BODY_LIMITS.largeBytesMax) {
    throw new Refused("unavailable", "Too many large request bodies are in flight; retry");
  }
  heldBytes += bytes;
}

/** Gives memory back that was taken. */
export function giveBytes(bytes: number): void {
  heldBytes -= bytes;
}

function startTimer(): ReturnType<typeof setTimeout> {
  const started = setTimeout(tick, BODY_LIMITS.tickMs);
  // It must not keep a process alive that has nothing else to do.
  Deno.unrefTimer(started);
  return started;
}

function tick(): void {
  const late = waits.filter(({ isOld }) => isOld);
  for (const wait of late) {
    leave(wait);
    wait.reject(invalidMember("", "The body did not arrive in time"));
    wait.cancel?.();
  }
  for (const wait of waits) wait.isOld = true;
  timer = waits.length > 0 ? startTimer() : null;
}
