// Metrics that are read when they are asked for: each is a name, a help text and a function that yields its samples
// from numbers which something else counts. The registry of the client library checks names and writes the text.

import { type Metric, Registry } from "prom-client";
import type { Histogram } from "./histogram.ts";

export type Labels = Readonly<Record<string, string>>;

/** A value of a metric. */
export interface Sample {
  readonly value: number;
  readonly labels?: Labels;
  /** Where it is not the metric's own name. */
  readonly metricName?: string;
}

/** Metrics to be written as Prometheus text. */
export class Exposition {
  readonly #registry = new Registry();

  /** The content type of the text. */
  get contentType(): string {
    return this.#registry.contentType;
  }

  /** The text of all metrics as they are now. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }

  /** A value that goes up and down; null for no sample. */
  gauge(name: string, help: string, read: () => number | null | readonly Sample[]): void {
    this.#register(name, help, "gauge", () => samplesOf(read()));
  }

  /** A value that only grows while the process lives. */
  counter(name: string, help: string, read: () => number | readonly Sample[]): void {
    this.#register(name, help, "counter", () => samplesOf(read()));
  }

  /** A histogram, or one for each set of labels. */
  histogram(name: string, help: string, read: () => readonly (readonly [Labels, Histogram])[]): void {
    this.#register(
      name,
      help,
      "histogram",
      () => read().flatMap(([labels, each]) => histogramSamples(name, labels, each)),
    );
  }

  #register(name: string, help: string, type: string, read: () => readonly Sample[]): void {
    const metric = { name, help, type, get: () => Promise.resolve({ name, help, type, values: read() }) };
    // The registry asks a metric for no more than this; its type lists its own classes alone.
    this.#registry.registerMetric(metric as unknown as Metric);
  }
}

function samplesOf(read: number | null | readonly Sample[]): readonly Sample[] {
  if (read === null) return [];
  return typeof read === "number" ? [{ value: read }] : read;
}

function histogramSamples(name: string, labels: Labels, histogram: Histogram): Sample[] {
  const { bounds, sum } = histogram;
  const counts = histogram.cumulative();
  const bucket = (value: number, index: number): Sample => ({
    metricName: `${name}_bucket`,
    labels: { ...labels, le: index < bounds.length ? String(bounds[index]) : "+Inf" },
    value,
  });
  return [
    ...counts.map(bucket),
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: counts.at(-1) as number },
  ];
}
