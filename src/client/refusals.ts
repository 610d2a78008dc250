// Reads who met a limit. Section 1 of beyond.md, "Refusals".

import type { ReserveReason } from "./metering_shapes.ts";
import type { CallOptions, Transport } from "./transport.ts";

/** Which refused calls to list. */
export interface RefusalQuery {
  readonly userId?: string | undefined;
  readonly event?: string | undefined;
  /** 1 to 100, 20 by default. */
  readonly limit?: number | undefined;
  /** 0 to 10,000. */
  readonly offset?: number | undefined;
}

/** Refused reserves, tracks and composes of a user that are alike in event and reasons, within one hour of UTC. */
export interface Refusal {
  readonly userId: string;
  readonly event: string;
  /** A cap of the workspace refuses whatever the user's plan says. */
  readonly reasons:
    readonly (ReserveReason | "workspace_limit_reached" | "test_quota_exceeded" | "ai_budget_exceeded")[];
  /** The limit groups without room for the newest call, in the plan's order. */
  readonly groupIds: readonly string[];
  readonly count: number;
  readonly firstAt: string;
  readonly lastAt: string;
}

/** A page of refused calls, newest first. */
export interface RefusalPage {
  readonly refusals: readonly Refusal[];
  readonly limit: number;
  readonly offset: number;
}

/** `client.refusals`. */
export class Refusals {
  readonly #transport: Transport;

  /** Called by the client. */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Reads who met a limit, newest first: for whoever sells a larger plan, or answers a customer. Kept for 90 days.
   *
   * @example
   * ```ts
   * await client.reserve("user_1", "image.render", 1, {}, { count: 101 });
   * const { refusals } = await client.refusals.list({ userId: "user_1", limit: 10 });
   * console.log(refusals[0]?.reasons); // ["limit_reached"]
   * console.log(refusals[0]?.count); // 1
   * ```
   */
  list(query: RefusalQuery = {}, call?: CallOptions): Promise<RefusalPage> {
    return this.#transport.send({ method: "GET", path: "/refusals", access: "secret", query }, call);
  }
}
