// The spans that the runtime makes, on a tracer that keeps them. `trace_long_test.ts` follows a call through the whole
// program to a collector.

import assert from "node:assert/strict";
import type { Link, Span, SpanOptions, SpanStatus, Tracer } from "@opentelemetry/api";
import { Spans } from "../../src/process/counts/spans.ts";

interface Kept {
  readonly name: string;
  readonly attributes: Record<string, unknown>;
  /** Ids of the spans that it links to. */
  readonly links: readonly string[];
  error: string | null;
  isEnded: boolean;
}

/** A tracer with spans that a test can read. */
function keepingTracer() {
  const kept: Kept[] = [];
  const startSpan = (name: string, { attributes = {}, links = [] }: SpanOptions = {}): Span => {
    const one: Kept = {
      name,
      attributes: { ...attributes },
      links: links.map((link: Link) => link.context.spanId),
      error: null,
      isEnded: false,
    };
    const spanId = `span_${kept.push(one)}`;
    return {
      spanContext: () => ({ traceId: "t", spanId, traceFlags: 1 }),
      setAttribute: (key: string, value: unknown) => void (one.attributes[key] = value),
      setStatus: ({ message = "" }: SpanStatus) => void (one.error = message),
      end: () => void (one.isEnded = true),
    } as unknown as Span;
  };
  return { kept, spans: new Spans({ startSpan } as unknown as Tracer) };
}

const shown = ({ name, error, isEnded }: Kept) =>
  `${name}${isEnded ? "" : " open"}${error === null ? "" : ` failed: ${error}`}`;

Deno.test("a call waits in its mailbox, is decided, and waits for its batch, one span after the other", async () => {
  const { kept, spans } = keepingTracer();
  const batch = spans.batch();
  const call = spans.call("reserve", "live");
  call.decides();
  assert.deepEqual(kept.map(shown), ["batch open", "mailbox", "decide open"]);
  call.decided({ ok: true, answer: { reasons: ["limit_reached"] } });
  const waiting = call.waits({ durable: Promise.resolve(), span: batch });
  assert.deepEqual(kept.map(shown), ["batch open", "mailbox", "decide", "append open"]);
  await waiting;
  batch.end();
  assert.deepEqual(kept.map(shown), ["batch", "mailbox", "decide", "append"]);
  const common = { "holdfast.command": "reserve", "holdfast.mode": "live" };
  const decided = { ...common, "holdfast.outcome": "ok", "holdfast.reasons": ["limit_reached"] };
  assert.deepEqual(kept.map(({ attributes }) => attributes), [{}, common, decided, common]);
  assert.deepEqual(kept.at(-1)?.links, [batch.context.spanId]);
});

Deno.test("a refusal is named by its code, and an error by its class without its message", () => {
  const { kept, spans } = keepingTracer();
  const refused = spans.call("track", "test");
  refused.decides();
  refused.decided({ ok: false, refusal: { code: "limit_reached", message: "secret" } });
  const broken = spans.call("track", "test");
  broken.leaves(new TypeError("secret"));
  spans.batch().end(new Error("secret"));
  assert.deepEqual(kept.map(shown), [
    "mailbox",
    "decide",
    "mailbox failed: TypeError",
    "batch failed: Error",
  ]);
  assert.equal(kept[1]?.attributes["holdfast.outcome"], "limit_reached");
  assert.doesNotMatch(JSON.stringify(kept), /secret/);
});

Deno.test("a drain links to its batches, to 128 at most", () => {
  const { kept, spans } = keepingTracer();
  const batches = Array.from({ length: 130 }, () => spans.batch().context);
  spans.drain([null, ...batches]).end();
  assert.deepEqual(kept.at(-1)?.links, batches.slice(0, 128).map(({ spanId }) => spanId));
  assert.deepEqual(kept.at(-1)?.attributes, { "holdfast.batches": 131 });
});
