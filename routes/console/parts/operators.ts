// Who may sign in: the admin token, the support token, and further people with a token each.

import { scryptSync } from "node:crypto";
import type { OperatorToken, Role } from "../../../src/process/operators.ts";
import { equalsSecret } from "../../../src/process/secrets/hash.ts";

/** A person who may sign in. */
export interface Operator {
  readonly name: string;
  readonly role: Role;
  /** Signs the person's sessions. It is derived from the token: every process accepts them, and a new token ends them. */
  readonly sessionKey: string;
}

/** The people who may sign in to a process. */
export class Operators {
  readonly #known: readonly { readonly token: string; readonly operator: Operator }[];

  constructor(tokens: readonly OperatorToken[]) {
    this.#known = tokens.map(({ name, role, token }) => ({
      token,
      operator: { name, role, sessionKey: sessionKeyOf(token) },
    }));
  }

  get all(): readonly Operator[] {
    return this.#known.map(({ operator }) => operator);
  }

  /** The owner of a token, compared in constant time; null for an invalid token. */
  byToken(presented: string): Operator | null {
    let found: Operator | null = null;
    for (const { token, operator } of this.#known) {
      if (equalsSecret(presented, token)) found = operator;
    }
    return found;
  }
}

const KEY_BYTES = 32;
const keys = new Map<string, string>();

/**
 * The key of a person's sessions. A stranger who has seen a cookie may try tokens against its signature, so making the key
 * of a token is slow (some 50 ms). It is made once for each token, when the process starts.
 */
function sessionKeyOf(token: string): string {
  const known = keys.get(token);
  if (known !== undefined) return known;
  const key = scryptSync(token, "holdfast console session", KEY_BYTES).toString("base64url");
  keys.set(token, key);
  return key;
}
