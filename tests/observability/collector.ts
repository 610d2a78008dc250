// An OpenTelemetry collector on a free port: it takes OTLP over HTTP as JSON and keeps everything.

/** A span that arrived. */
export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  /** 2 for an error. */
  readonly status: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  /** The span ids of its links. */
  readonly links: readonly string[];
}

/** Collects what a process exports. */
export class Collector implements AsyncDisposable {
  readonly #texts: { readonly path: string; readonly text: string }[] = [];
  readonly #server: Deno.HttpServer<Deno.NetAddr>;

  constructor() {
    this.#server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
      this.#texts.push({ path: new URL(request.url).pathname, text: await request.text() });
      return Response.json({});
    });
  }

  /** Environment variables that make a process export here. */
  get settings(): Record<string, string> {
    return {
      OTEL_DENO: "true",
      OTEL_DENO_METRICS: "false",
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${this.#server.addr.port}`,
      OTEL_BSP_SCHEDULE_DELAY: "100",
      OTEL_BLRP_SCHEDULE_DELAY: "100",
    };
  }

  /** Everything that arrived, as text. */
  get text(): string {
    return this.#texts.map(({ text }) => text).join("\n");
  }

  get paths(): ReadonlySet<string> {
    return new Set(this.#texts.map(({ path }) => path));
  }

  get spans(): CollectedSpan[] {
    return this.#texts.filter(({ path }) => path === "/v1/traces")
      .flatMap(({ text }) => JSON.parse(text).resourceSpans)
      .flatMap(({ scopeSpans }) => scopeSpans)
      .flatMap(({ spans }) => spans)
      .map(readSpan);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }
}

interface WireSpan extends Omit<CollectedSpan, "attributes" | "links" | "status"> {
  readonly status: { readonly code: number };
  readonly attributes: readonly { readonly key: string; readonly value: WireValue }[];
  readonly links: readonly { readonly spanId: string }[];
}

interface WireValue {
  readonly stringValue?: string;
  readonly intValue?: string | number;
  readonly doubleValue?: number;
  readonly arrayValue?: { readonly values: readonly WireValue[] };
}

function readSpan({ status, attributes, links, ...span }: WireSpan): CollectedSpan {
  return {
    ...span,
    status: status.code,
    attributes: Object.fromEntries(attributes.map(({ key, value }) => [key, readValue(value)])),
    links: links.map(({ spanId }) => spanId),
  };
}

function readValue({ stringValue, intValue, doubleValue, arrayValue }: WireValue): unknown {
  if (arrayValue !== undefined) return arrayValue.values.map(readValue);
  return stringValue ?? (intValue === undefined ? doubleValue : Number(intValue));
}
