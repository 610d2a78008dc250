// Sessions: a signed cookie, valid for twelve hours and only for the console. It contains no secret of the operator.
// Signing out stores the session's ID, so that a copy of the cookie is invalid in every process.

import { createHmac } from "node:crypto";
import { equalsSecret } from "../../../src/process/secrets/hash.ts";
import { randomText } from "../../../src/process/secrets/random.ts";
import { openToken, signToken } from "../../../src/process/secrets/signed_token.ts";
import { roleMayWrite } from "../../../src/process/operators.ts";
import type { CallDefinition } from "../../contract/definition.ts";
import type { Operator, Operators } from "./operators.ts";

const COOKIE = "holdfast_console";
const LASTS_S = 12 * 3600;
const ID_LENGTH = 32;

/** The session of a signed-in operator. */
export interface Session {
  readonly id: string;
  readonly operator: Operator;
  /** Real time in milliseconds. */
  readonly until: number;
}

/** A new session of an operator. */
export function newSession(operator: Operator, now: number): Session {
  return { id: randomText(ID_LENGTH), operator, until: now + LASTS_S * 1000 };
}

/** The set-cookie header that starts a session. */
export function cookieOf({ id, operator, until }: Session, isSecure: boolean): string {
  const value = signToken(operator.sessionKey, { id, name: operator.name, until });
  return `${COOKIE}=${value}; Max-Age=${LASTS_S}; ${attributes(isSecure)}`;
}

/** The set-cookie header that removes it. */
export function expiredCookie(isSecure: boolean): string {
  return `${COOKIE}=; Max-Age=0; ${attributes(isSecure)}`;
}

function attributes(isSecure: boolean): string {
  return `Path=/console; HttpOnly; SameSite=Strict${isSecure ? "; Secure" : ""}`;
}

/** The session in a request's cookie; null without a valid one. The caller checks whether it was signed out. */
export async function sessionOf(
  request: Request,
  operators: Operators,
  now: number,
): Promise<Session | null> {
  for (const part of (request.headers.get("cookie") ?? "").split(";")) {
    const [name, value = ""] = part.trim().split("=", 2);
    if (name !== COOKIE) continue;
    for (const operator of await operators.all()) {
      const payload = openToken(value, [operator.sessionKey])?.payload as
        | Partial<Session & Operator>
        | undefined;
      if (payload === undefined || payload.name !== operator.name) continue;
      const { id, until } = payload;
      if (typeof id === "string" && typeof until === "number" && until > now) return { id, operator, until };
    }
  }
  return null;
}

/** The token in every form of a session, so that no other site can send one. */
export function csrfToken({ id, operator }: Session): string {
  return createHmac("sha256", operator.sessionKey).update(`csrf ${id}`).digest("base64url");
}

/** Whether a form carries the token of the session. */
export function isOwnForm(session: Session, presented: string | null): boolean {
  return presented !== null && equalsSecret(presented, csrfToken(session));
}

/** Whether the operator may change everything. */
export function mayChange({ operator }: Session): boolean {
  return operator.role === "admin";
}

/** Whether the operator may make a call of the API that writes. */
export function mayMake({ operator }: Session, { id }: Pick<CallDefinition, "id">): boolean {
  return roleMayWrite(operator.role, id);
}
