// Requests about runs: tasks with small limits, nested, ended, and named by calls of their own user and of others.

import type { Input, ModelReply, ModelRequest, RunOperation } from "./document.ts";
import type { Random } from "./random.ts";
import { amount, type KnownEvent } from "./workload_inputs.ts";

interface KnownRun {
  id: string;
  userId: string;
  endsAtMs: number;
}

/** Whether an operation is a call of runs. */
export function isOfRuns(op: string): op is RunOperation {
  return ["createRun", "endRun", "getRun", "listRuns"].includes(op);
}

/** The runs that a workload has opened. */
export class RunInputs {
  readonly #random: Random;
  readonly #events: KnownEvent[];
  readonly #runs: KnownRun[] = [];
  #names = 0;

  constructor(random: Random, events: KnownEvent[]) {
    this.#random = random;
    this.#events = events;
  }

  /** Takes the answer to a request, with the canonical id of its user. */
  observe({ op, input }: ModelRequest, { data = {} }: ModelReply): void {
    const { runId } = data;
    if (op === "createRun" && typeof runId === "string") {
      const endsAtMs = Date.parse(String(data["expiresAt"]));
      this.#runs.push({ id: runId, userId: String(input["userId"]), endsAtMs });
    }
    const ended = op === "endRun" ? this.#runs.find(({ id }) => id === runId) : undefined;
    if (ended) ended.endsAtMs = 0;
  }

  /** A user was merged into another one. */
  merged(from: string, to: string): void {
    for (const run of this.#runs) if (run.userId === from) run.userId = to;
  }

  /** The input of a call of runs. */
  input(op: RunOperation, userId: string, rooms: number[], nowMs: number): Input {
    if (op === "createRun") return this.createInput(userId, rooms, nowMs);
    if (op !== "listRuns") return { runId: this.someId(userId, nowMs) };
    const status = this.#random.pick(["active", "ended", null]);
    return status === null ? { userId } : { userId, status };
  }

  createInput(userId: string, rooms: number[], nowMs: number): Input {
    const random = this.#random;
    const limits = Array.from({ length: random.whole(1, 3) }, () => ({
      unit: random.pick(["count", "count", "tokens", "cents", "seconds"]),
      quota: random.chance(0.1) ? 0 : amount(random, rooms) * random.pick([1, 3, 10, 50]),
      ...(random.chance(0.5) ? { event: this.#pattern() } : {}),
    }));
    const parent = random.chance(0.65) ? this.#runOf(userId, nowMs, 1) : null;
    return {
      userId,
      limits,
      ...(random.chance(0.7) ? { name: `run ${this.#names += 1}` } : {}),
      ...(random.chance(0.6) ? { ttlSeconds: random.pick([60, 90.5, 7200, 86_400, 604_800]) } : {}),
      ...(parent === null ? {} : { parentRunId: parent }),
    };
  }

  /** The run of a call; mostly of its own user, and one of the last. */
  callInput(userId: string, nowMs: number): Input {
    if (this.#random.chance(0.4)) return {};
    const hasOpen = this.#runs.some((run) => run.userId === userId && run.endsAtMs > nowMs);
    return hasOpen || this.#random.chance(0.05) ? { runId: this.someId(userId, nowMs) } : {};
  }

  /** A run of a user; now and then of another one, or an unknown id. */
  someId(userId: string, nowMs: number): string {
    const random = this.#random;
    if (this.#runs.length === 0 || random.chance(0.02)) return "run_unknown";
    if (random.chance(0.05)) return random.pick(this.#runs).id;
    return this.#runOf(userId, nowMs) ?? "run_1_00000000000000000000";
  }

  /** Mostly one that is open, of the last ones. */
  #runOf(userId: string, nowMs: number, last = 4): string | null {
    const own = this.#runs.filter((run) => run.userId === userId);
    const open = own.filter(({ endsAtMs }) => endsAtMs > nowMs).slice(-last);
    if (own.length === 0) return null;
    return this.#random.pick(open.length > 0 && this.#random.chance(0.85) ? open : own.slice(-20)).id;
  }

  #pattern(): string {
    const { event } = this.#random.pick(this.#events);
    return this.#random.pick(["*", event, `${event.slice(0, 3)}*`]);
  }
}
