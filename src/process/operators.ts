// The people who may sign in to the console, as settings name them: each with a role and a token of their own.

/** The role of a person: admin may do everything, agent grants credits up to a cap and releases holds, support is read-only. */
export type Role = "admin" | "agent" | "support";

/** The calls that write and that an agent may make, by their operation ids. */
const CALLS_OF_AGENTS: ReadonlySet<string> = new Set(["grantCredits", "release"]);

/** Whether people of a role may make a call that writes. */
export function roleMayWrite(role: Role, callId: string): boolean {
  return role === "admin" || (role === "agent" && CALLS_OF_AGENTS.has(callId));
}

/** Units of credits that an agent may grant in a UTC day, unless a setting has another number. */
export const AGENT_GRANTS_DEFAULT = 100;

/** A person with the token that they sign in with. */
export interface OperatorToken {
  readonly name: string;
  readonly role: Role;
  readonly token: string;
}

/** Shorter ones could be guessed. */
export const SECRET_LENGTH_MIN = 16;

const ENTRY = /^([A-Za-z0-9._@-]{1,64}):(admin|agent|support):([^:]*)$/;
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
      return `must be name:role:token,... with the role admin, agent or support; ${at} is not`;
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
