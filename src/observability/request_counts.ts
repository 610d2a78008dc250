// What routes count: one object a route, made when the route is mounted, so that a request adds to numbers that it
// already holds.

import { REFUSAL_CODES, type RefusalCode } from "../domain/refusal.ts";
import { Histogram, STORE_SECONDS } from "./histogram.ts";
import { secondsSince } from "./runtime_counts.ts";

/** One request of this many is timed, by route; a power of two. */
export const REQUESTS_PER_SAMPLE = 16;

/** How an answer is counted: "ok" for a 200, else the code of its error. */
export type AnswerCode = "ok" | RefusalCode;

/** The codes in the order of `RouteCounts.codes`. */
export const ANSWER_CODES: readonly AnswerCode[] = ["ok", ...REFUSAL_CODES];

const CODE_INDEX = new Map(ANSWER_CODES.map((code, index) => [code, index]));

/** Requests of one route. */
export class RouteCounts {
  readonly method: string;
  readonly route: string;
  readonly codes = new Float64Array(ANSWER_CODES.length);
  readonly seconds = new Histogram(STORE_SECONDS);
  started = 0;
  /** Answers that were those of an earlier call with the same idempotency key. */
  replayed = 0;

  constructor(method: string, route: string) {
    this.method = method;
    this.route = route;
  }

  /** Counts a request; answers when it began if it is one to be timed, else 0. */
  starts(): number {
    return (this.started++ & (REQUESTS_PER_SAMPLE - 1)) === 0 ? performance.now() : 0;
  }

  /** Counts the answer of a request that was counted. */
  ends(code: AnswerCode, startedAt: number): void {
    const index = code === "ok" ? 0 : CODE_INDEX.get(code) as number;
    (this.codes[index] as number) += 1;
    if (startedAt !== 0) this.seconds.observe(secondsSince(startedAt));
  }

  /** Requests that have no answer yet. */
  get inFlight(): number {
    return this.codes.reduce((left, count) => left - count, this.started);
  }
}

/** Requests of every route of a service. */
export class RequestCounts {
  readonly #routes = new Map<string, RouteCounts>();

  /** The counts of a route; always the same ones. */
  of(method: string, route: string): RouteCounts {
    const name = `${method} ${route}`;
    const known = this.#routes.get(name);
    if (known !== undefined) return known;
    const made = new RouteCounts(method, route);
    this.#routes.set(name, made);
    return made;
  }

  get routes(): readonly RouteCounts[] {
    return [...this.#routes.values()];
  }
}
