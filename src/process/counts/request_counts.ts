// Counters of requests: one object for each route, made when the route is mounted, so that a request counts without a
// look-up.

import type { Histogram } from "prom-client";
import { REFUSAL_CODES, type RefusalCode } from "../../domain/values/refusal.ts";
import { makeHistogram, STORE_SECONDS } from "./histograms.ts";
import { secondsSince } from "./runtime_counts.ts";

/** One request in this many of each route is timed; a power of two. */
const REQUESTS_PER_SAMPLE = 16;

type RouteLabel = "method" | "route";

/** How an answer is counted: "ok" for a 200, else the code of its error. */
export type AnswerCode = "ok" | RefusalCode;

/** The codes in the order of `RouteCounts.codes`. */
export const ANSWER_CODES: readonly AnswerCode[] = ["ok", ...REFUSAL_CODES];

const CODE_INDEX = new Map(ANSWER_CODES.map((code, index) => [code, index]));

/** The requests of one route. */
export class RouteCounts {
  readonly method: string;
  readonly route: string;
  /** Answers by code, in the order of `ANSWER_CODES`. */
  readonly codes = new Float64Array(ANSWER_CODES.length);
  started = 0;
  /** Answers that repeated an earlier one, because both calls had the same idempotency key. */
  replayed = 0;
  readonly #seconds: Histogram<RouteLabel>;

  constructor(method: string, route: string, seconds: Histogram<RouteLabel>) {
    this.method = method;
    this.route = route;
    this.#seconds = seconds;
  }

  /** Counts a request. Returns its start time if it is timed, else 0. */
  starts(): number {
    return (this.started++ & (REQUESTS_PER_SAMPLE - 1)) === 0 ? performance.now() : 0;
  }

  /** Counts the answer of a request. */
  ends(code: AnswerCode, startedAt: number): void {
    const index = code === "ok" ? 0 : CODE_INDEX.get(code) as number;
    (this.codes[index] as number) += 1;
    if (startedAt === 0) return;
    this.#seconds.observe({ method: this.method, route: this.route }, secondsSince(startedAt));
  }

  /** Requests without an answer yet. */
  get inFlight(): number {
    return this.codes.reduce((left, count) => left - count, this.started);
  }
}

/** The requests of every route of a service. */
export class RequestCounts {
  readonly seconds = makeHistogram(
    "holdfast_request_seconds",
    "From a request to its answer, by route; one request in 16 of a route is timed.",
    STORE_SECONDS,
    ["method", "route"],
  );
  readonly #routes = new Map<string, RouteCounts>();

  /** The counts of a route; the same ones each time. */
  of(method: string, route: string): RouteCounts {
    const name = `${method} ${route}`;
    const known = this.#routes.get(name);
    if (known !== undefined) return known;
    const made = new RouteCounts(method, route, this.seconds);
    this.#routes.set(name, made);
    return made;
  }

  get routes(): readonly RouteCounts[] {
    return [...this.#routes.values()];
  }
}
