// The metrics of one route. Requests are always counted; spans and access lines are written only when tracing or debug
// logging is on. Each route has one object, made when the route is mounted, so that a request only adds to numbers.

import { type Answer, codeOf, type Handled, statusOf, write } from "./answer.ts";
import { refusalOf, refuseThrown, requestId, respond } from "./respond.ts";
import { isLogged, log } from "../../src/process/log.ts";
import type { AnswerCode, RequestCounts, RouteCounts } from "../../src/process/counts/request_counts.ts";
import type { Spans } from "../../src/process/counts/spans.ts";

/** The route of every request that no route matches. */
export const NO_ROUTE = "none";

/** Where requests are counted, and traced where there are spans. */
export interface MetricsSource {
  readonly counts: { readonly requests: Pick<RequestCounts, "of"> };
  readonly spans: Spans | null;
}

/** Counts and traces the requests of a route. */
export class RouteMetrics {
  readonly #counts: RouteCounts;
  readonly #spans: Spans | null;
  /** Whether each request gets a span or an access line. */
  readonly #logsEach: boolean;

  /** @param route the path with its parameters, never a path that a caller sent */
  constructor({ counts, spans }: MetricsSource, method: string, route: string) {
    this.#counts = counts.requests.of(method, route);
    this.#spans = spans;
    this.#logsEach = spans !== null || isLogged("debug");
  }

  /** Counts a new request. Returns its start, for `answered`, `threw`, `ended` or `called`. */
  starts(): number {
    const startedAt = this.#counts.starts();
    return this.#logsEach && startedAt === 0 ? performance.now() : startedAt;
  }

  /** Returns the response to a request, with the answer to its call. */
  answered(startedAt: number, request: Request, handled: Handled): Response {
    const answer = write(handled);
    const isReplayed = answer.isReplayed === true;
    if (isReplayed) this.#counts.replayed += 1;
    return this.ended(startedAt, answer.code, respond(request, answer, isReplayed, answer.requestId));
  }

  /** Returns the response to a request that threw. */
  threw(startedAt: number, request: Request, thrown: unknown): Response {
    const id = requestId(request);
    const refusal = refusalOf(id, thrown);
    return this.ended(startedAt, refusal.code, refuseThrown(request, thrown, refusal, id));
  }

  /** Counts a response that is about to be sent, and returns it. */
  ended(startedAt: number, code: AnswerCode, response: Response): Response {
    this.#counts.ends(code, startedAt);
    if (this.#logsEach) {
      this.#logAnswer(startedAt, code, response.status, response.headers.get("x-request-id"));
    }
    return response;
  }

  /** Counts the answer to a call from within the process, and returns it. */
  called(startedAt: number, request: Request, answer: Answer): Answer {
    const code = codeOf(answer);
    this.#counts.ends(code, startedAt);
    if (this.#logsEach) this.#logAnswer(startedAt, code, statusOf(answer), requestId(request));
    return answer;
  }

  #logAnswer(startedAt: number, code: AnswerCode, status: number, id: string | null): void {
    const { method, route } = this.#counts;
    this.#spans?.request(method, route, code, id);
    const ms = Math.round((performance.now() - startedAt) * 1000) / 1000;
    log("debug", "Answered", { requestId: id, method, route, status, code, ms });
  }
}
