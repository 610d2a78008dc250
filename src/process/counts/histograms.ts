// Makes histograms of the metrics library, with their buckets. A histogram belongs to no registry until `metrics.ts` adds it
// to the registry of its service.

import { Histogram } from "prom-client";

/** Buckets in seconds for work in memory: 5 microseconds to 50 milliseconds. */
export const MEMORY_SECONDS = [
  0.000_005,
  0.000_01,
  0.000_025,
  0.000_05,
  0.000_1,
  0.000_25,
  0.000_5,
  0.001,
  0.005,
  0.01,
  0.05,
];

/** Buckets in seconds for waits on the store or the network: a quarter of a millisecond to 10 seconds. */
export const STORE_SECONDS = [
  0.000_25,
  0.000_5,
  0.001,
  0.002_5,
  0.005,
  0.01,
  0.025,
  0.05,
  0.1,
  0.25,
  0.5,
  1,
  2.5,
  5,
  10,
];

/** Buckets for the number of changes in one batch or drain. */
export const BATCH_CHANGES = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 10_000, 50_000, 100_000];

/** A histogram with these upper bounds. */
export function makeHistogram<Label extends string = never>(
  name: string,
  help: string,
  buckets: number[],
  labelNames: Label[] = [],
): Histogram<Label> {
  return new Histogram({ name, help, buckets, labelNames, registers: [] });
}
