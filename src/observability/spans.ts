// The way of a call as spans: the wait in the mailbox, the decision, the wait for the append; batches and drains as
// spans of their own, since they belong to many calls, with links. Without tracing none of this is made: the runtime
// holds null. The span of the request itself is the one that Deno makes.
//
// What a span says is the operation, the mode, the outcome and the reasons: never an end-user id, a key or a text of
// a prompt. Deno's own spans would hold whole addresses, and those hold user ids and the tokens of export links, so
// they are left out where spans take attributes.

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
import type { CommandName } from "../domain/command.ts";
import type { Result } from "../domain/result.ts";

/** Batches that one drain links to. */
const DRAIN_LINKS_MAX = 128;
/** Attributes that may hold an end-user id or a token. */
const HIDDEN = new Set(["url.full", "url.path", "url.query"]);

/** Spans of a batch on its way to the journal, and of a drain. */
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

  /** The spans of a call, which waits in a mailbox from now on. */
  call(command: CommandName, mode: "live" | "test"): CallSpans {
    return new CallSpans(this.#tracer, command, mode);
  }

  /** A batch that begins to fill: a trace of its own. */
  batch(): WorkSpan {
    return workSpan(this.#tracer.startSpan("batch", {}, ROOT_CONTEXT));
  }

  /** A drain of batches. */
  drain(batches: readonly (SpanContext | null)[]): WorkSpan {
    const links: Link[] = batches.filter((each) => each !== null).slice(0, DRAIN_LINKS_MAX)
      .map((each) => ({ context: each }));
    const attributes = { "holdfast.batches": batches.length };
    return workSpan(this.#tracer.startSpan("drain", { links, attributes }, ROOT_CONTEXT));
  }

  /** Names the request that is being answered. */
  request(method: string, route: string, code: string, requestId: string | null): void {
    const span = trace.getActiveSpan();
    if (span === undefined) return;
    span.updateName(`${method} ${route}`);
    span.setAttribute("http.route", route);
    span.setAttribute("holdfast.code", code);
    if (requestId !== null) span.setAttribute("holdfast.request_id", requestId);
  }

  /** The trace that the running call belongs to, for logs. */
  traceId(): string | undefined {
    return trace.getActiveSpan()?.spanContext().traceId;
  }
}

/** The spans of one call, one after the other under the request. */
export class CallSpans {
  readonly #tracer: Tracer;
  readonly #parent: Context;
  readonly #attributes: Record<string, string>;
  /** The one that has not ended. */
  #span: Span | null;

  constructor(tracer: Tracer, command: CommandName, mode: "live" | "test") {
    this.#tracer = tracer;
    this.#parent = context.active();
    this.#attributes = { "holdfast.command": command, "holdfast.mode": mode };
    this.#span = this.#start("mailbox");
  }

  /** The turn begins. */
  decides(): void {
    this.#span?.end();
    this.#span = this.#start("decide");
  }

  /** The turn has its result. */
  decided(result: Result<unknown>): void {
    const span = this.#span;
    span?.setAttribute("holdfast.outcome", result.ok ? "ok" : result.refusal.code);
    const reasons = result.ok ? (result.answer as { readonly reasons?: readonly string[] }).reasons : [];
    if (reasons !== undefined && reasons.length > 0) {
      span?.setAttribute("holdfast.reasons", [...reasons]);
    }
    this.leaves();
  }

  /** Waits for a batch. */
  async waits({ durable, span }: { readonly durable: Promise<void>; readonly span: WorkSpan | null }) {
    this.#span = this.#start("append", span === null ? [] : [{ context: span.context }]);
    await durable;
    this.leaves();
  }

  /** Ends what is under way: done, failed, or gone on with another user. */
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

/** The kind of an error; its message may hold what a caller sent. */
function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error;
}

/** Starts tracing where the OTEL_ variables made Deno trace; null where they did not. */
export function openSpans(): Spans | null {
  const tracer = trace.getTracer("holdfast");
  const probe = tracer.startSpan("start", {}, ROOT_CONTEXT);
  probe.end();
  if (!isSpanContextValid(probe.spanContext())) return null;
  hideAddresses(Object.getPrototypeOf(probe));
  return new Spans(tracer);
}

/**
 * Makes spans of every kind leave addresses out. Deno sets those of a request before any handler runs, and a later value
 * would stand beside the first one, so nothing but the method that takes attributes is early enough.
 */
function hideAddresses(spans: { setAttribute: Span["setAttribute"] }): void {
  const setAttribute = spans.setAttribute;
  spans.setAttribute = function (this: Span, name, value) {
    return HIDDEN.has(name) ? this : setAttribute.call(this, name, value);
  };
}
