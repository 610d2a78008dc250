// Features: what a user may use at all, by its plan, the plans of the users above and the defaults of the catalog.

import type { CallOptions, Transport } from "./transport.ts";
import { pathMember } from "./wire.ts";
import type { UserFeature, UserFeatures } from "./wire_types.ts";

/** `client.features`. */
export class Features {
  readonly #transport: Transport;

  /** Called by the client. */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

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
    return this.#transport.send({ method: "GET", path: "/features", access: "any", query: { userId } }, call);
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
    const wire = { method: "GET", path, access: "any", query: { userId } } as const;
    return (await this.#transport.send<UserFeature>(wire, call)).value === true;
  }
}
