// The people who may sign in to the console, as settings name them: each with a role and a token of their own.

/** What a person may do: an admin everything, support looks and changes nothing. */
export type Role = "admin" | "support";

/** A person with the token that they sign in with. */
export interface OperatorToken {
  readonly name: string;
  readonly role: Role;
  readonly token: string;
}

/** Shorter ones could be guessed. */
export const SECRET_LENGTH_MIN = 16;

const ENTRY = /^([A-Za-z0-9._@-]{1,64}):(admin|support):([^:]*)$/;
/** Names that the audit log gives to others. */
const TAKEN_NAMES = ["admin", "support", "unknown"];

/**
 * Reads a list of people, "name:role:token,...".
 *
 * @returns what is wrong with it as a text, which holds no token
 */
export function readOperators(text: string): readonly OperatorToken[] | string {
  const operators: OperatorToken[] = [];
  for (const [index, entry] of text.split(",").entries()) {
    const at = `entry ${index + 1}`;
    const [, name, role, token] = ENTRY.exec(entry.trim()) ?? [];
    if (name === undefined || role === undefined || token === undefined) {
      return `must be name:role:token,... with the role admin or support; ${at} is not`;
    }
    if (TAKEN_NAMES.includes(name)) return `cannot name anybody "${name}"; ${at} does`;
    if (operators.some((other) => other.name === name)) return `must name everybody once; ${at} does not`;
    if (token.length < SECRET_LENGTH_MIN) {
      return `must have tokens of at least ${SECRET_LENGTH_MIN} characters; that of ${at} is shorter`;
    }
    operators.push({ name, role: role as Role, token });
  }
  return operators;
}

/** Whether two of these people have the same token, so that nobody could say who it was. */
export function shareToken(operators: readonly OperatorToken[]): boolean {
  return new Set(operators.map(({ token }) => token)).size < operators.length;
}
