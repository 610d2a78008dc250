// Keys of users: a team or a program gets a key that acts for one user alone, at the gateway and for its own usage.

import type { CallOptions, Transport } from "./transport.ts";
import { pathMember } from "./wire.ts";
import type { CreatedUserKey, UserKey, UserKeyInput } from "./wire_types.ts";

/** `client.userKeys`. */
export class UserKeys {
  readonly #transport: Transport;

  /** Called by the client. */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Creates a key of a user. The key is in this answer alone: a retry gets a new key, never the same one again.
   *
   * @example
   * ```ts
   * const { userKeyId, key } = await client.userKeys.create("user_1", { name: "CI" });
   * console.log(key.slice(0, 8)); // "uk_live_"
   * console.log((await client.userKeys.list("user_1")).map(({ name }) => name)); // ["CI"]
   * await client.userKeys.revoke("user_1", userKeyId);
   * ```
   */
  async create(userId: string, input: UserKeyInput = {}, call?: CallOptions): Promise<CreatedUserKey> {
    const path = pathOf(userId);
    return await this.#transport.send({ method: "POST", path, access: "secret", body: input }, call);
  }

  /** Lists the keys of a user that are not revoked, newest first. */
  async list(userId: string, call?: CallOptions): Promise<readonly UserKey[]> {
    const wire = { method: "GET", path: pathOf(userId), access: "secret" } as const;
    return (await this.#transport.send<{ keys: readonly UserKey[] }>(wire, call)).keys;
  }

  /** Revokes a key. Every call that begins after the answer refuses it. */
  async revoke(userId: string, userKeyId: string, call?: CallOptions): Promise<void> {
    const path = `${pathOf(userId)}/${pathMember("userKeyId", userKeyId)}`;
    await this.#transport.send({ method: "DELETE", path, access: "secret" }, call);
  }
}

function pathOf(userId: string): string {
  return `/users/${pathMember("userId", userId)}/keys`;
}
