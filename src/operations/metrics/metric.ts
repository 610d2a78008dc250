// The kinds of rows that metrics.ts is made of.

import type { Counts } from "../../cluster/counts.ts";
import type { Service, Serving } from "../../cluster/service.ts";

/** Samples of a metric with labels. */
export type Samples = Iterable<readonly [labels: Readonly<Record<string, string>>, value: number]>;

/** One metric; `read` gives its value, null for no sample, or a value for each set of labels. */
export interface Metric {
  readonly type: "gauge" | "counter";
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
  readonly read: (service: Service) => number | null | Samples;
}

/** A value that goes up and down. */
export function gauge(name: string, help: string, read: (service: Service) => number | null): Metric {
  return { type: "gauge", name, help, labels: [], read };
}

/** A gauge of the running term, without a sample while the process does not serve. */
export function ofTerm(
  name: string,
  help: string,
  read: (serving: Serving) => number | null | undefined,
): Metric {
  return gauge(name, help, ({ serving }) => serving === null ? null : read(serving) ?? null);
}

/** A value that only grows while the process lives. */
export function counter(name: string, help: string, read: (counts: Counts) => number): Metric {
  return { type: "counter", name, help, labels: [], read: ({ counts }) => read(counts) };
}

/** A counter with a value for each set of labels. */
export function counters(
  name: string,
  help: string,
  labels: string[],
  read: (counts: Counts) => Samples,
): Metric {
  return { type: "counter", name, help, labels, read: ({ counts }) => read(counts) };
}
