// Keys of users: a team or a program gets a key that acts for one user alone, at the gateway and for its own usage.

import { CallGroup } from "./call_group.ts";
import type { CallOptions } from "./transport.ts";
import { pathMember } from "./wire.ts";
import type { CreatedUserKey, UserKey, UserKeyInput } from "./wire_types.ts";

/** `client.userKeys`. */
export class UserKeys extends CallGroup {
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
    return await this.send("POST", pathOf(userId), "secret", call, input);
  }

  /** Lists the keys of a user that are not revoked, newest first. */
  async list(userId: string, call?: CallOptions): Promise<readonly UserKey[]> {
    return (await this.send<{ keys: readonly UserKey[] }>("GET", pathOf(userId), "secret", call)).keys;
  }

  /** Revokes a key. Every call that begins after the answer refuses it. */
  async revoke(userId: string, userKeyId: string, call?: CallOptions): Promise<void> {
    const path = `${pathOf(userId)}/${pathMember("userKeyId", userKeyId)}`;
    await this.send("DELETE", path, "secret", call);
  }
}

function pathOf(userId: string): string {
  return `/users/${pathMember("userId", userId)}/keys`;
}
