// Reads who met a limit. Section 1 of beyond.md, "Refusals".

import type { CallOptions, Transport } from "./transport.ts";
import type { RefusalPage, RefusalQuery } from "./wire_types.ts";

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
