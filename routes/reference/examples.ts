// Examples of the reference: requests and answers, recorded from a service with the example catalog. A test records them
// again and compares; `deno task examples` writes them.

import recorded from "./examples.json" with { type: "json" };
import type { RefusalCode } from "../../src/domain/values/refusal.ts";

/** A request and its answer. */
export interface Example {
  /** Members of the path and of the query. */
  readonly parameters?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly answer: unknown;
}

/** Recorded examples of a call: a success, and refusals by their codes. */
export interface Recorded {
  readonly success?: Example;
  readonly refusals?: Readonly<Partial<Record<RefusalCode, unknown>>>;
}

/** Returns the examples of a call. */
export function examplesOf(operationId: string): Recorded {
  return (recorded as Readonly<Record<string, Recorded>>)[operationId] ?? {};
}
