// Requests at the moments that matter to groups with a period of their own: a call that guards refused is asked right
// before it passes and then, and a user calls around the end of its sessions and hours.

import type { Input, LimitGroup, ModelReply, ModelRequest, WireData } from "./document.ts";
import type { Random } from "./random.ts";

interface Planned {
  request: ModelRequest;
  atMs: number;
}

const LONGEST_WAIT_MS = 2 * 60 * 60 * 1000;

export class Paces {
  readonly #random: Random;
  readonly #asking: (op: "reserve", userId: string) => Input;
  #nowMs = 0;
  #planned: Planned[] = [];

  constructor(random: Random, asking: (op: "reserve", userId: string) => Input) {
    this.#random = random;
    this.#asking = asking;
  }

  /** The next planned request, with how far to move the clock before it. */
  next(nowMs: number): { advanceMs: number; request: ModelRequest } | null {
    const planned = this.#planned.shift();
    return planned ? { advanceMs: Math.max(0, planned.atMs - nowMs), request: planned.request } : null;
  }

  /** Takes an answer. Nothing is drawn where no group has a period of its own. */
  observe({ op, input }: ModelRequest, { data = {}, details = {} }: ModelReply, nowMs: number): void {
    this.#nowMs = nowMs;
    if (this.#planned.length > 0) return;
    const retryAfterMs = data["retryAfterMs"] ?? details["retryAfterMs"];
    if (typeof retryAfterMs === "number") this.#ask({ op, input }, retryAfterMs);
    else if (op === "usage" || op === "users") this.#visit(data);
  }

  #ask({ op, input }: ModelRequest, retryAfterMs: number): void {
    const { runId: _, ...call } = input;
    if (retryAfterMs > LONGEST_WAIT_MS || this.#random.chance(0.5)) return;
    const atMs = this.#nowMs + retryAfterMs;
    const own = op === "canUse" ? "reserve" : op;
    this.#planned = [
      { request: { op: own, input: call }, atMs: atMs - 1 },
      { request: { op: "canUse", input: callable(call) }, atMs },
      { request: { op: own, input: call }, atMs },
    ];
  }

  /** Calls around the end of a running window of the user's. */
  #visit({ userId, counters = [] }: WireData): void {
    const ends = (counters as { period?: { end: string | null } | null }[]).flatMap(({ period }) => {
      const end = Date.parse(period?.end ?? "");
      return end > this.#nowMs && end < this.#nowMs + LONGEST_WAIT_MS ? [end] : [];
    });
    if (ends.length === 0 || this.#random.chance(0.6)) return;
    const end = this.#random.pick(ends);
    const input = this.#asking("reserve", String(userId));
    this.#planned = [-1, 0].map((step) => ({ request: { op: "reserve", input }, atMs: end + step }));
  }
}

/** A call without the members that only tracking or only holding has. */
function callable(call: Input): Input {
  const others = ["costCents", "usage", "providerUsage", "ttlSeconds"];
  return Object.fromEntries(Object.entries(call).filter(([name]) => !others.includes(name)));
}

/** Whether a group has a period that calls close in time meet. */
export function isPaced({ period }: LimitGroup): boolean {
  return period?.type === "rolling" || period?.type === "concurrent" || period?.type === "session";
}
