// The forms that metrics have here. Each reads its value when somebody asks.

import { Counter, Gauge, type Registry } from "prom-client";

/** A value that goes up and down; null for no sample. */
export function addGauge(registry: Registry, name: string, help: string, read: () => number | null): void {
  new Gauge({
    name,
    help,
    registers: [registry],
    collect() {
      const value = read();
      if (value === null) this.remove();
      else this.set(value);
    },
  });
}

/** A value that only grows while the process lives. */
export function addCounter(registry: Registry, name: string, help: string, read: () => number): void {
  new Counter({
    name,
    help,
    registers: [registry],
    collect() {
      this.reset();
      this.inc(read());
    },
  });
}

/** A counter with a value for each set of labels. */
export function addCounters<Label extends string>(
  registry: Registry,
  name: string,
  help: string,
  labelNames: Label[],
  read: () => Iterable<readonly [Record<Label, string>, number]>,
): void {
  new Counter({
    name,
    help,
    labelNames,
    registers: [registry],
    collect() {
      this.reset();
      for (const [labels, value] of read()) this.inc(labels, value);
    },
  });
}
