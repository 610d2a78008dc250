// Features: what a user may use at all, by its plan, the plans of the users above and the defaults of the catalog.

import { CallGroup } from "./call_group.ts";
import type { CallOptions } from "./transport.ts";
import { pathMember } from "./wire.ts";
import type { UserFeature, UserFeatures } from "./wire_types.ts";

/** `client.features`. */
export class Features extends CallGroup {
  /**
   * Reads the features of a user, each with the user whose subscription gives it. With a public key and an end-user token
   * leave `userId` out.
   *
   * @example
   * ```ts
   * const { features } = await client.features.get("user_1");
   * console.log(features["seats"]); // { value: 5, from: "plan", of: "user_1" }
   * console.log(features["support"]); // { value: "mail", from: "default", of: null }
   * ```
   */
  get(userId?: string, call?: CallOptions): Promise<UserFeatures> {
    return this.send("GET", "/features", "any", call, { userId });
  }

  /**
   * Whether a feature of a user has the value `true`. A key that the catalog does not name rejects with `not_found`. With a
   * public key and an end-user token `userId` may be undefined.
   *
   * @example
   * ```ts
   * console.log(await client.features.isOn("user_1", "sso")); // true
   * console.log(await client.features.isOn("user_without_plan", "sso")); // false
   * ```
   */
  async isOn(userId: string | undefined, key: string, call?: CallOptions): Promise<boolean> {
    const path = `/features/${pathMember("key", key)}`;
    return (await this.send<UserFeature>("GET", path, "any", call, { userId })).value === true;
  }
}
