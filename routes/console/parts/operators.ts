// Who may sign in: the admin token, the support token, and further people with a token each.

import { scrypt } from "node:crypto";
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
  readonly #tokens: readonly OperatorToken[];

  constructor(tokens: readonly OperatorToken[]) {
    this.#tokens = tokens;
  }

  all(): Promise<readonly Operator[]> {
    return Promise.all(this.#tokens.map(operatorOf));
  }

  /** The owner of a token, compared in constant time; null for an invalid token. */
  async byToken(presented: string): Promise<Operator | null> {
    let found: OperatorToken | null = null;
    for (const known of this.#tokens) {
      if (equalsSecret(presented, known.token)) found = known;
    }
    return found && await operatorOf(found);
  }
}

const KEY_BYTES = 32;
const keys = new Map<string, Promise<string>>();

async function operatorOf({ name, role, token }: OperatorToken): Promise<Operator> {
  return { name, role, sessionKey: await sessionKeyOf(token) };
}

/**
 * The key of a person's sessions. A stranger who has seen a cookie may try tokens against its signature, so making the key
 * of a token is slow (some 50 ms). It is made once for each token, beside the calls, when a session first needs it.
 */
function sessionKeyOf(token: string): Promise<string> {
  let key = keys.get(token);
  if (key === undefined) keys.set(token, key = makeSessionKey(token));
  return key;
}

function makeSessionKey(token: string): Promise<string> {
  return new Promise((resolve, reject) => {
    scrypt(token, "holdfast console session", KEY_BYTES, (error, key) => {
      if (error === null) resolve(key.toString("base64url"));
      else reject(error);
    });
  });
}
