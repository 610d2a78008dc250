// Reads refused calls: users who hit a limit.

import { CallGroup } from "./call_group.ts";
import type { CallOptions } from "./transport.ts";
import type { RefusalPage, RefusalQuery } from "./wire_types.ts";

/** `client.refusals`. */
export class Refusals extends CallGroup {
  /**
   * Reads users who hit a limit, newest first: for sales of larger plans, and for support. Kept for 90 days.
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
    return this.send("GET", "/refusals", "secret", call, query);
  }
}
