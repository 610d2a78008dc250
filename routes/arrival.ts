// Limits on request bodies that are still arriving. A body that takes too long is refused, and all large bodies
// together may use only so much memory. A caller who sends a byte a minute, or half a body and then nothing, costs a
// connection and no more.
//
// A timer for each request would be expensive, so one timer serves all: a new body goes into the set `young`, moves to
// `old` at the next tick, and is refused at the tick after that.

import { invalidMember, Refused } from "./errors.ts";
import { BODY_LIMITS } from "../src/process/limits.ts";

/** A read that is waited for. */
interface Wait {
  readonly reject: (reason: Error) => void;
  readonly cancel: (() => void) | null;
}

let young = new Set<Wait>();
let old = new Set<Wait>();
let timer: ReturnType<typeof setTimeout> | null = null;
let heldBytes = 0;

/**
 * What a read of a body answers, or a refusal when it takes longer than a body may.
 *
 * @param cancel ends the read, so that what has arrived is forgotten
 */
export function inTime<T>(read: Promise<T>, cancel: (() => void) | null = null): Promise<T> {
  return new Promise((resolve, reject) => {
    const wait: Wait = { reject, cancel };
    young.add(wait);
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
  if (!young.delete(wait)) old.delete(wait);
}

/** Takes memory for a part of a large body, or refuses when too much of them is held; to be given back. */
export function takeBytes(bytes: number): void {
  if (heldBytes + bytes > BODY_LIMITS.largeBytesMax) {
    throw new Refused("unavailable", "Too many large bodies are on their way: try again");
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
  const late = old;
  [old, young] = [young, new Set()];
  for (const { reject, cancel } of late) {
    reject(invalidMember("", "The body did not arrive in time"));
    cancel?.();
  }
  timer = old.size > 0 ? startTimer() : null;
}
