// Keys of users as clients use them, through any node: they are made and revoked, read their user's usage and that of
// another, and go along when two users become one.

import type { Client } from "./clients.ts";
import type { Call, SimRequest } from "./history.ts";
import type { Random } from "../model/random.ts";
import type { Tenant } from "./tenants.ts";

interface KnownKey {
  readonly userKeyId: string;
  readonly key: string;
  readonly userId: string;
}

const USERS = 5;
const KEYS_MAX = 6;

/** Requests about the users of a workspace who have keys of their own, and with these keys. */
export class KeyHolders {
  readonly #random: Random;
  readonly #tenant: Tenant;
  readonly #keys: KnownKey[] = [];

  constructor(random: Random, tenant: Tenant) {
    this.#random = random;
    this.#tenant = tenant;
  }

  next(): { readonly client: Client; readonly request: SimRequest } {
    const random = this.#random;
    const kind = random.weighted({ create: 2, revoke: 1, merge: 0.7, use: 6 });
    const known = this.#keys.slice(-KEYS_MAX);
    const tenant = this.#tenant;
    const client = { tenant, bearer: tenant.key };
    const userId = this.#someone();
    if (kind === "merge") {
      return { client, request: { op: "alias", input: { from: userId, to: this.#someone() } } };
    }
    if (kind === "create" || known.length === 0) {
      return { client, request: { op: "createUserKey", input: { userId } } };
    }
    const { userKeyId, key, userId: holder } = random.pick(known);
    if (kind === "revoke") {
      return { client, request: { op: "revokeUserKey", input: { userId: holder, userKeyId, key } } };
    }
    const input = { userId: random.chance(0.8) ? holder : userId };
    return { client: { tenant, bearer: key }, request: { op: "ownUsage", input } };
  }

  /** Takes the outcome of a call. */
  observe({ request: { op, input }, answer }: Call): void {
    const { userKeyId, key } = answer?.model.data ?? {};
    if (op !== "createUserKey" || typeof userKeyId !== "string") return;
    this.#keys.push({ userKeyId, key: String(key), userId: String(input["userId"]) });
  }

  #someone(): string {
    return `holder-${this.#random.whole(1, USERS)}`;
  }
}
