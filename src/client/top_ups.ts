// Top-ups: packs that users buy automatically when their credits run low.

import { CallGroup } from "./call_group.ts";
import type { CallOptions } from "./transport.ts";
import { pathMember } from "./wire.ts";
import type { DeletedTopUp, TopUpInput, TopUpPage, TopUpQuery, TopUpSetting } from "./wire_types.ts";

/** `client.topUps`. */
export class TopUps extends CallGroup {
  /**
   * Lets a user buy a pack automatically. The first time your backend gives the customer and the saved card in Stripe; with
   * a public key and an end-user token leave them out.
   *
   * @example
   * ```ts
   * const card = { stripeCustomerId: "cus_1", stripePaymentMethodId: "pm_1" };
   * const setting = { packId: "cpk_image_topup", below: 3, maxPerMonth: 5000, enabled: false };
   * await client.topUps.set("user_1", { ...setting, ...card });
   * console.log((await client.topUps.get("user_1")).enabled); // false
   * console.log((await client.topUps.list("user_1")).topUps); // []
   * console.log((await client.topUps.remove("user_1")).underWay); // false
   * ```
   */
  set(userId: string, input: TopUpInput, call?: CallOptions): Promise<TopUpSetting> {
    return this.send("PUT", pathOf(userId), "any", call, input);
  }

  /** Reads the setting of a user; rejects with `not_found` where there is none. */
  get(userId: string, call?: CallOptions): Promise<TopUpSetting> {
    return this.send("GET", pathOf(userId), "any", call);
  }

  /** Removes the setting. A top-up that may be paid already goes on. */
  remove(userId: string, call?: CallOptions): Promise<DeletedTopUp> {
    return this.send("DELETE", pathOf(userId), "any", call);
  }

  /** Lists the top-ups of a user, newest first. */
  list(userId: string, query: TopUpQuery = {}, call?: CallOptions): Promise<TopUpPage> {
    const path = `${pathOf(userId)}s`;
    return this.send("GET", path, "any", call, query);
  }
}

function pathOf(userId: string): string {
  return `/users/${pathMember("userId", userId)}/top-up`;
}
