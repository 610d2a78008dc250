// Examples of the reference: calls and answers as a service gave them on its example catalog. A test makes them anew
// and compares; `deno task examples` writes them.

import recorded from "./examples.json" with { type: "json" };
import type { RefusalCode } from "../../src/domain/values/refusal.ts";

/** A call as it was sent, and what was answered. */
export interface Example {
  /** Members of the path and of the query. */
  readonly parameters?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly answer: unknown;
}

/** What was recorded of an endpoint: a success, and refusals by their code. */
export interface Recorded {
  readonly success?: Example;
  readonly refusals?: Readonly<Partial<Record<RefusalCode, unknown>>>;
}

/** The examples of an endpoint. */
export function examplesOf(operationId: string): Recorded {
  return (recorded as Readonly<Record<string, Recorded>>)[operationId] ?? {};
}
