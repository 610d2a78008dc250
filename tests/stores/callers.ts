// Callers of an app under a load test: what they were answered, and what the service says afterwards.

import assert from "node:assert/strict";
import { pause } from "../crash/program.ts";
import { answerOf, once, Wire } from "../crash/wire.ts";
import { isDeep } from "../support/depth.ts";

/** How many callers an app has. */
export const CALLERS = 4;
/** Between two calls of a caller: each app is called 40 times a second, and the cores are free for what is tried. */
const REST_MS = isDeep ? 5 : 100;

/** Callers of one app, who repeat each call under its key until it is answered. */
export class Callers {
  /** Calls that were answered with 200; each counts once. */
  counted = 0;
  /** Answers other than 200, and calls without an answer. */
  readonly faults: string[] = [];
  /** The longest time between two answers with 200, in milliseconds. */
  silentMs = 0;
  #answeredAt = performance.now();
  origin: string;
  readonly #key: string;
  readonly #restMs: number;
  readonly #running: Promise<void>[];
  #isOver = false;
  #isGivenUp = false;

  /** @param restMs between two calls of a caller */
  constructor(origin: string, key: string, restMs: number = REST_MS) {
    this.origin = origin;
    this.#key = key;
    this.#restMs = restMs;
    this.#running = Array.from({ length: CALLERS }, (_, place) => this.#call(`u${place % 2}`));
  }

  async #call(userId: string): Promise<void> {
    const wire = new Wire(this.origin);
    const body = { userId, event: "image.track" };
    while (!this.#isOver) {
      const idempotencyKey = crypto.randomUUID();
      while (!this.#isGivenUp) {
        wire.moveTo(this.origin);
        const call = { method: "POST", path: "/api/v1/track", bearer: this.#key, body, idempotencyKey };
        const outcome = await wire.call(call);
        if (outcome.kind === "answer" && outcome.answer.status === 200) break;
        this.faults.push(outcome.kind === "answer" ? String(outcome.answer.status) : outcome.kind);
        await pause(30);
      }
      if (this.#isGivenUp) break;
      this.counted += 1;
      const now = performance.now();
      this.silentMs = Math.max(this.silentMs, now - this.#answeredAt);
      this.#answeredAt = now;
      await pause(this.#restMs);
    }
    wire.close();
  }

  /** Forgets the faults until now. */
  begin(): void {
    this.faults.length = 0;
    this.silentMs = 0;
  }

  /** Waits until each call has its answer. */
  async end(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#running);
  }

  /** Ends without the answers that are still missing: nobody may be there to give them. */
  async giveUp(): Promise<void> {
    this.#isGivenUp = true;
    await this.end();
  }

  /** Use as the service counts it. */
  async used(): Promise<number> {
    let sum = 0;
    for (const userId of ["u0", "u1"]) {
      const path = `/api/v1/usage?userId=${userId}`;
      const { status, body } = answerOf(await once(this.origin, { method: "GET", path, bearer: this.#key }));
      assert.equal(status, 200, JSON.stringify(body));
      for (const { count } of body.data.counters) sum += count;
    }
    return sum;
  }
}
