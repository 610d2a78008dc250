// The people who may sign in to the console, as settings name them: each with a role and a token of their own.

/** The role of a person: admin may do everything, support is read-only. */
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
/** Names that the audit log uses for others. */
const TAKEN_NAMES = ["admin", "support", "unknown"];

/**
 * Reads a list of people, "name:role:token,...".
 *
 * @returns the people, or what is wrong as a text, which never has a token
 */
export function readOperators(text: string): readonly OperatorToken[] | string {
  const operators: OperatorToken[] = [];
  for (const [index, entry] of text.split(",").entries()) {
    const at = `entry ${index + 1}`;
    const [, name, role, token] = ENTRY.exec(entry.trim()) ?? [];
    if (name === undefined || role === undefined || token === undefined) {
      return `must be name:role:token,... with the role admin or support; ${at} is not`;
    }
    if (TAKEN_NAMES.includes(name)) return `must not use the name "${name}"; ${at} does`;
    if (operators.some((other) => other.name === name)) {
      return `must name each person once; ${at} repeats a name`;
    }
    if (token.length < SECRET_LENGTH_MIN) {
      return `must have tokens of at least ${SECRET_LENGTH_MIN} characters; that of ${at} is shorter`;
    }
    operators.push({ name, role: role as Role, token });
  }
  return operators;
}

/** Whether two of these people have the same token, so that a sign-in could not be attributed. */
export function shareToken(operators: readonly OperatorToken[]): boolean {
  return new Set(operators.map(({ token }) => token)).size < operators.length;
}
