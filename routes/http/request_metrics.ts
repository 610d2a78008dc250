// Observes the requests of one route. Requests are always counted; spans and access lines are written only when tracing
// or debug logging is on. There is one observer a route, made when the route is mounted, so that a request only adds to
// numbers.

import { type Answer, headOf, type WrittenAnswer } from "./answer.ts";
import { refusalOf, refuseThrown, requestId, respond } from "./respond.ts";
import { isLogged, log } from "../../src/process/log.ts";
import type { AnswerCode, RequestCounts, RouteCounts } from "../../src/process/counts/request_counts.ts";
import type { Spans } from "../../src/process/counts/spans.ts";

/** The route of every request that no route matches. */
export const NO_ROUTE = "none";

/** What requests are observed by: counts, and spans where they are traced. */
export interface Observed {
  readonly counts: { readonly requests: Pick<RequestCounts, "of"> };
  readonly spans: Spans | null;
}

/** Observes the requests of a route. */
export class RouteWatch {
  readonly #counts: RouteCounts;
  readonly #spans: Spans | null;
  /** Whether each request gets a span or an access line. */
  readonly #tellsEach: boolean;

  /** @param route the path with its places, never one that a caller sent */
  constructor({ counts, spans }: Observed, method: string, route: string) {
    this.#counts = counts.requests.of(method, route);
    this.#spans = spans;
    this.#tellsEach = spans !== null || isLogged("debug");
  }

  /** A request begins; the answer is for `answered`, `threw` or `ended`. */
  starts(): number {
    const startedAt = this.#counts.starts();
    return this.#tellsEach && startedAt === 0 ? performance.now() : startedAt;
  }

  /** The response to a request that has its answer. */
  answered(startedAt: number, request: Request, answer: WrittenAnswer): Response {
    const isReplayed = answer.isReplayed === true;
    if (isReplayed) this.#counts.replayed += 1;
    return this.ended(startedAt, answer.code, respond(request, answer, isReplayed, answer.requestId));
  }

  /** The response to what a request threw. */
  threw(startedAt: number, request: Request, thrown: unknown): Response {
    const id = requestId(request);
    const refusal = refusalOf(id, thrown);
    return this.ended(startedAt, refusal.code, refuseThrown(request, thrown, refusal, id));
  }

  /** A response that is on its way. */
  ended(startedAt: number, code: AnswerCode, response: Response): Response {
    this.#counts.ends(code, startedAt);
    if (this.#tellsEach) this.#tell(startedAt, code, response.status, response.headers.get("x-request-id"));
    return response;
  }

  /** The answer to a call that came from within the process, and goes back as a value. */
  called(startedAt: number, request: Request, answer: Answer): Answer {
    const { code, status } = headOf(answer);
    this.#counts.ends(code, startedAt);
    if (this.#tellsEach) this.#tell(startedAt, code, status, requestId(request));
    return answer;
  }

  #tell(startedAt: number, code: AnswerCode, status: number, id: string | null): void {
    const { method, route } = this.#counts;
    this.#spans?.request(method, route, code, id);
    const ms = Math.round((performance.now() - startedAt) * 1000) / 1000;
    log("debug", "Answered", { requestId: id, method, route, status, code, ms });
  }
}
