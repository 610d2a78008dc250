// The metrics of one route. Requests are always counted; spans and access lines are written only when tracing or debug
// logging is on. Each route has one object, made when the route is mounted, so that a request only adds to numbers.

import { type Answer, codeOf, type Handled, statusOf, write } from "./answer.ts";
import type { EndUser } from "./auth.ts";
import { failedCallsOf, type FailureSource, recordFailure, type Sent } from "./failed_requests.ts";
import { STATUS } from "./errors.ts";
import type { Members } from "./json_body.ts";
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
  readonly #failures: FailureSource | null;

  /**
   * @param route the path with its parameters, never a path that a caller sent
   * @param failures records failed requests of callers with an API key; null for routes without one
   */
  constructor(
    { counts, spans }: MetricsSource,
    method: string,
    route: string,
    failures: FailureSource | null = null,
  ) {
    this.#failures = failures;
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
  answered(
    startedAt: number,
    request: Request,
    handled: Handled,
    members: Members | null = null,
    user: EndUser | null = null,
  ): Response {
    const answer = write(handled);
    const isReplayed = answer.isReplayed === true;
    if (isReplayed) this.#counts.replayed += 1;
    const { code, status, body } = answer;
    if (status < 400) {
      const response = respond(request, answer, isReplayed, answer.requestId);
      if (answer.keyPrefix !== undefined) response.headers.set("idempotency-key-prefix", answer.keyPrefix);
      return this.ended(startedAt, code, response);
    }
    const id = answer.requestId ?? requestId(request);
    const { error } = JSON.parse(body) as { error?: { message?: string } };
    this.failed(request, { status, code, message: error?.message ?? "", requestId: id }, { members, user });
    return this.ended(startedAt, code, respond(request, answer, isReplayed, id));
  }

  /** Returns the response to a request that threw. */
  threw(
    startedAt: number,
    request: Request,
    thrown: unknown,
    members: Members | null = null,
    user: EndUser | null = null,
  ): Response {
    const id = requestId(request);
    const refusal = refusalOf(id, thrown);
    const { code, message } = refusal;
    this.failed(request, { status: STATUS[code], code, message, requestId: id }, { members, user });
    return this.ended(startedAt, refusal.code, refuseThrown(request, thrown, refusal, id));
  }

  /** Records a failed request, on a route for callers with an API key. */
  failed(
    request: Request,
    failure: { status: number; code: string; message: string; requestId: string },
    sent: Sent,
  ): void {
    if (this.#failures === null) return;
    const { route } = this.#counts;
    recordFailure(this.#failures, request, { ...failure, method: request.method, route }, sent);
  }

  /** Records the calls of a batch that failed, in an answer with the status 200. */
  failedInside(request: Request, handled: Handled, sent: Members | null): void {
    const { status, body, requestId: id = requestId(request) } = write(handled);
    if (this.#failures === null || status !== 200 || sent === null) return;
    const { route } = this.#counts;
    for (const { members, ...failure } of failedCallsOf(body, sent)) {
      recordFailure(this.#failures, request, { ...failure, method: request.method, route, requestId: id }, {
        members,
      });
    }
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
  called(startedAt: number, request: Request, answer: Answer, members: Members | null = null): Answer {
    const code = codeOf(answer);
    if (!answer.ok) {
      const { message } = answer.error;
      this.failed(request, { status: statusOf(answer), code, message, requestId: requestId(request) }, {
        members,
      });
    }
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
