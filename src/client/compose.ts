// Compose: a model's structured answer for one user. Specification, "Compose"; section 10 of the decisions.

import type { WireCall } from "./transport.ts";

/** What a generation cost. */
export interface ComposeUsage {
  /** The model's id in the catalog. */
  readonly model: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costCents: number;
  readonly eventId: string;
}

/** A generation, or none because the user opted out of AI personalization. */
export type ComposeAnswer<Output = Readonly<Record<string, unknown>>> =
  | {
    readonly status: "generated";
    readonly generationId: string;
    /** Matches the type's output schema. */
    readonly output: Output;
    readonly usage: ComposeUsage;
  }
  | {
    readonly status: "opted_out";
    readonly generationId: null;
    readonly output: null;
    readonly usage: null;
  };

/** The service waits up to a minute for the model. */
const COMPOSE_TIMEOUT_MS = 90_000;

/** The request of a compose call. */
export function composeCall(
  type: string,
  userId: string,
  vars: Readonly<Record<string, unknown>> | undefined,
): WireCall {
  return {
    method: "POST",
    path: "/compose",
    access: "secret",
    body: { type, userId, vars },
    timeoutMinMs: COMPOSE_TIMEOUT_MS,
  };
}
