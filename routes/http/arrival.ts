// Request bodies that are still arriving: how long each may take, and how much memory all of them may use. A caller who
// sends a byte a minute, or stops after half a body, costs a connection and no more.
//
// A timer for each request would be expensive, so one timer serves all: it counts its ticks for each body. A process that
// was busy for a while has counted one tick, so no body is late because of it.
//
// The waits are in an array, and the last one takes the place of a wait that leaves. A set would make a new table every few
// dozen calls; tables that outlive a collection keep each other alive, and with them the bodies that were waited for.

import { invalidMember, Refused } from "./errors.ts";
import { BODY_COUNTS, type PotName } from "../../src/process/counts/sent_counts.ts";
import { BODY_LIMITS } from "../../src/process/sent_limits.ts";

/** A pending read. */
interface Wait {
  readonly reject: (reason: Error) => void;
  /** The body that is read piece by piece; null where the runtime reads it. */
  readonly body: ArrivingBody | null;
  ticks: number;
  /** Its index among the waits; negative once it has left. */
  place: number;
}

const waits: Wait[] = [];
let timer: ReturnType<typeof setTimeout> | null = null;

/**
 * Returns the result of a read of a body; rejects with a refusal when the read takes longer than a body may, or when the
 * body is ended to make room for others.
 */
export function inTime<T>(read: Promise<T>, body: ArrivingBody | null = null): Promise<T> {
  return new Promise((resolve, reject) => {
    const wait: Wait = { reject, body, ticks: 0, place: waits.length };
    waits.push(wait);
    timer ??= startTimer();
    body?.onEnd((fault) => {
      leave(wait);
      reject(fault);
    });
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

function startTimer(): ReturnType<typeof setTimeout> {
  const started = setTimeout(tick, BODY_LIMITS.tickMs);
  // It must not keep a process alive that has nothing else to do.
  Deno.unrefTimer(started);
  return started;
}

function tick(): void {
  for (const wait of waits) wait.ticks += 1;
  for (const wait of waits.filter(isLate)) {
    const fault = invalidMember("", "The body did not arrive in time");
    BODY_COUNTS.refused.slow += 1;
    leave(wait);
    wait.reject(fault);
    wait.body?.end(fault);
  }
  timer = waits.length > 0 ? startTimer() : null;
}

/** Whether a body is older than a body may be, or is old enough to have a rate and arrives below the least one. */
function isLate({ ticks, body }: Wait): boolean {
  // The first tick came after a part of its interval.
  const ageMs = (ticks - 1) * BODY_LIMITS.tickMs;
  if (ageMs < BODY_LIMITS.slowAfterMs) return false;
  return ageMs >= BODY_LIMITS.arriveMs || (body?.bytes ?? 0) < BODY_LIMITS.bytesPerSecondMin * ageMs / 1000;
}

/** The memory for the bodies of some senders. */
export class Pot {
  readonly #name: PotName;
  readonly #bytesMax: () => number;
  /** Bodies up to this size take nothing from it: only the number of connections bounds them. */
  readonly freeBytes: () => number;
  readonly #bodies = new Set<ArrivingBody>();
  readonly #ofApps = new Map<string, number>();

  constructor(name: PotName, bytesMax: () => number, freeBytes: () => number) {
    this.#name = name;
    this.#bytesMax = bytesMax;
    this.freeBytes = freeBytes;
  }

  /**
   * Takes memory for a body. When the pot is full its slowest body ends; when the share of the app is used up, the app's slowest one. One
   * body alone may be larger than the share of its app.
   *
   * @throws Refused when no other body can be ended, or when this one is the slowest
   */
  take(body: ArrivingBody, bytes: number): void {
    const { appId } = body;
    this.#bodies.add(body);
    const ofApp = () => appId === null ? 0 : this.#ofApps.get(appId) ?? 0;
    while (ofApp() > body.taken && ofApp() + bytes > BODY_LIMITS.appBytesMax) {
      const own = [...this.#bodies].filter((other) => other.appId === appId);
      this.#endSlowest(body, own, "Too many large request bodies of this app are in flight; retry");
    }
    while (BODY_COUNTS.heldBytes[this.#name] + bytes > this.#bytesMax()) {
      this.#endSlowest(body, this.#bodies, "Too many large request bodies are in flight; retry");
    }
    this.#add(appId, bytes);
  }

  /** Gives back all memory of a body. */
  give(body: ArrivingBody): void {
    if (this.#bodies.delete(body)) this.#add(body.appId, -body.taken);
  }

  #add(appId: string | null, bytes: number): void {
    BODY_COUNTS.heldBytes[this.#name] += bytes;
    if (appId === null) return;
    const held = (this.#ofApps.get(appId) ?? 0) + bytes;
    if (held > 0) this.#ofApps.set(appId, held);
    else this.#ofApps.delete(appId);
  }

  #endSlowest(body: ArrivingBody, among: Iterable<ArrivingBody>, message: string): void {
    const now = performance.now();
    let slowest: ArrivingBody | null = null;
    let least = Infinity;
    for (const other of among) {
      const rate = other.rateAt(now);
      if (rate >= least) continue;
      slowest = other;
      least = rate;
    }
    const fault = new Refused("unavailable", message);
    BODY_COUNTS.full[this.#name] += 1;
    slowest?.end(fault);
    if (slowest === null || slowest === body) throw fault;
  }
}

/** Bodies with a key, or with the admin token or a session of the console. */
export const KEYED_POT = new Pot(
  "keyed",
  () => BODY_LIMITS.largeBytesMax,
  () => BODY_LIMITS.smallBytesMax,
);

/** Bodies without a key: sign-ins, Stripe's messages. */
export const KEYLESS_POT = new Pot("keyless", () => BODY_LIMITS.keylessBytesMax, () => 0);

/** A body that is read piece by piece, and the memory that it takes. */
export class ArrivingBody {
  /** The app of the key that sends it; null without a key. */
  readonly appId: string | null;
  /** Bytes that have arrived. */
  bytes = 0;
  /** Bytes taken from its pot. */
  taken = 0;
  readonly #pot: Pot;
  readonly #startedAt = performance.now();
  #fault: Refused | null = null;
  #isComplete = false;
  #onEnd: ((fault: Refused) => void)[] = [];

  constructor(pot: Pot, appId: string | null) {
    this.#pot = pot;
    this.appId = appId;
  }

  /** Takes the memory for another piece; refuses where there is none. */
  arrives(bytes: number): void {
    if (this.#fault !== null) throw this.#fault;
    this.bytes += bytes;
    if (this.bytes <= this.#pot.freeBytes()) return;
    const more = this.bytes - this.taken;
    this.#pot.take(this, more);
    this.taken += more;
  }

  /** Marks it as complete: it keeps its memory until that is given back. */
  completes(): void {
    this.#isComplete = true;
    this.#onEnd = [];
  }

  /** Gives its memory back. */
  give(): void {
    this.#pot.give(this);
    this.taken = 0;
  }

  /** Ends it, so that its memory is free. */
  end(fault: Refused): void {
    if (this.#fault !== null) return;
    this.#fault = fault;
    this.give();
    for (const end of this.#onEnd) end(fault);
  }

  onEnd(end: (fault: Refused) => void): void {
    this.#onEnd.push(end);
  }

  /** Bytes a millisecond, to find the slowest body; endless for one that is complete, or too young to have a rate. */
  rateAt(now: number): number {
    const ageMs = now - this.#startedAt;
    return this.#isComplete || ageMs < BODY_LIMITS.youngMs ? Infinity : this.bytes / ageMs;
  }
}
