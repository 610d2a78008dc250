// The compose call: a model's structured answer about one user.

import type { CallOptions, WireCall } from "./transport.ts";
import type { Generated, OptedOut } from "./wire_types.ts";

/** A generation, or none because the user opted out of AI personalization. */
export type ComposeAnswer<Output = Readonly<Record<string, unknown>>> =
  | (Omit<Generated, "output"> & { readonly output: Output })
  | OptedOut;

/** Options of a compose. */
export interface ComposeOptions extends CallOptions {
  /** An open run of the user: the generation counts there. */
  readonly runId?: string | undefined;
}

/** The service waits up to a minute for the model. */
const COMPOSE_TIMEOUT_MS = 90_000;

/** The request of a compose call. */
export function composeCall(
  type: string,
  userId: string,
  vars: Readonly<Record<string, unknown>> | undefined,
  runId: string | undefined,
): WireCall {
  return {
    method: "POST",
    path: "/compose",
    access: "secret",
    body: { type, userId, vars, runId },
    timeoutMinMs: COMPOSE_TIMEOUT_MS,
  };
}
