// The spans of a call: the wait in the mailbox, the decision, the wait for the append. Batches and drains serve many
// calls, so they are spans of their own, with links. Deno makes the span of the request itself. Without tracing the
// runtime has null instead of `Spans`.
//
// A span may say command, mode, outcome and reasons, but never an end-user id, a key or a prompt. Deno puts the address
// of each request on its span, and addresses hold user ids and the tokens of export links: `hideAddresses` leaves those
// attributes out.

import {
  type Context,
  context,
  isSpanContextValid,
  type Link,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanStatusCode,
  trace,
  type Tracer,
} from "@opentelemetry/api";
import type { CommandName } from "../../domain/command.ts";
import type { Result } from "../../domain/state/result.ts";

/** The most batches that one drain links to. */
const DRAIN_LINKS_MAX = 128;
/** Attributes that may hold an end-user id or a token. */
const HIDDEN = new Set(["url.full", "url.path", "url.query"]);

/** The span of a batch in flight to the journal, or of a drain. */
export interface WorkSpan {
  readonly context: SpanContext;
  set(name: string, value: number): void;
  end(fault?: unknown): void;
}

/** Makes spans. */
export class Spans {
  readonly #tracer: Tracer;

  constructor(tracer: Tracer) {
    this.#tracer = tracer;
  }

  /** Starts the spans of a call that begins to wait in a mailbox. */
  call(command: CommandName, mode: "live" | "test"): CallSpans {
    return new CallSpans(this.#tracer, command, mode);
  }

  /** Starts the span of a new batch, as a trace of its own. */
  batch(): WorkSpan {
    return workSpan(this.#tracer.startSpan("batch", {}, ROOT_CONTEXT));
  }

  /** Starts the span of a drain. */
  drain(batches: readonly (SpanContext | null)[]): WorkSpan {
    const links: Link[] = batches.filter((each) => each !== null).slice(0, DRAIN_LINKS_MAX)
      .map((each) => ({ context: each }));
    const attributes = { "holdfast.batches": batches.length };
    return workSpan(this.#tracer.startSpan("drain", { links, attributes }, ROOT_CONTEXT));
  }

  /** Adds route and outcome to Deno's span of the current request. */
  request(method: string, route: string, code: string, requestId: string | null): void {
    const span = trace.getActiveSpan();
    if (span === undefined) return;
    span.updateName(`${method} ${route}`);
    span.setAttribute("http.route", route);
    span.setAttribute("holdfast.code", code);
    if (requestId !== null) span.setAttribute("holdfast.request_id", requestId);
  }

  /** The trace of the current call, for log lines. */
  traceId(): string | undefined {
    return trace.getActiveSpan()?.spanContext().traceId;
  }
}

/** The spans of one call, one after the other under the request. */
export class CallSpans {
  readonly #tracer: Tracer;
  readonly #parent: Context;
  readonly #attributes: Record<string, string>;
  /** The open span. */
  #span: Span | null;

  constructor(tracer: Tracer, command: CommandName, mode: "live" | "test") {
    this.#tracer = tracer;
    this.#parent = context.active();
    this.#attributes = { "holdfast.command": command, "holdfast.mode": mode };
    this.#span = this.#start("mailbox");
  }

  /** Ends the wait and starts the turn. */
  decides(): void {
    this.#span?.end();
    this.#span = this.#start("decide");
  }

  /** Ends the turn. */
  decided(result: Result<unknown>): void {
    const span = this.#span;
    span?.setAttribute("holdfast.outcome", result.ok ? "ok" : result.refusal.code);
    const reasons = result.ok ? (result.answer as { readonly reasons?: readonly string[] }).reasons : [];
    if (reasons !== undefined && reasons.length > 0) {
      span?.setAttribute("holdfast.reasons", [...reasons]);
    }
    this.leaves();
  }

  /** Waits until the batch with the call's changes is durable. */
  async waits({ durable, span }: { readonly durable: Promise<void>; readonly span: WorkSpan | null }) {
    this.#span = this.#start("append", span === null ? [] : [{ context: span.context }]);
    await durable;
    this.leaves();
  }

  /** Ends the open span: the step is done or failed, or the call continues with another user. */
  leaves(error?: unknown): void {
    const span = this.#span;
    this.#span = null;
    if (error !== undefined) span?.setStatus({ code: SpanStatusCode.ERROR, message: nameOf(error) });
    span?.end();
  }

  #start(name: string, links: Link[] = []): Span {
    return this.#tracer.startSpan(name, { attributes: this.#attributes, links }, this.#parent);
  }
}

function workSpan(span: Span): WorkSpan {
  return {
    context: span.spanContext(),
    set: (name, value) => span.setAttribute(name, value),
    end: (fault) => {
      if (fault !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: nameOf(fault) });
      span.end();
    },
  };
}

/** The class of an error. Its message is left out, since it may repeat input of a caller. */
function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error;
}

/** The spans of a process; null unless the OTEL_ variables made Deno trace. */
export function openSpans(): Spans | null {
  const tracer = trace.getTracer("holdfast");
  const probe = tracer.startSpan("start", {}, ROOT_CONTEXT);
  probe.end();
  if (!isSpanContextValid(probe.spanContext())) return null;
  hideAddresses(Object.getPrototypeOf(probe));
  return new Spans(tracer);
}

/**
 * Makes every span ignore the attributes that hold addresses. Deno sets them before any handler runs, and setting them
 * again adds a second value beside the first, so the method that sets attributes is the only place early enough.
 */
function hideAddresses(spans: { setAttribute: Span["setAttribute"] }): void {
  const setAttribute = spans.setAttribute;
  spans.setAttribute = function (this: Span, name, value) {
    return HIDDEN.has(name) ? this : setAttribute.call(this, name, value);
  };
}
