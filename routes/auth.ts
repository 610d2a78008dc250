// Who may call: API keys, their classes and modes, the end-user token of public keys, and the admin token.
// Specification, "Authentication"; section 2 of the decisions.

import { createHmac, timingSafeEqual } from "node:crypto";
import { Buffer } from "node:buffer";
import type { Realm } from "../actors/actor.ts";
import type { Term } from "../actors/term.ts";
import { equalsSecret } from "../src/secrets/hash.ts";
import type { Service, Serving } from "../src/service/service.ts";
import type { Caller } from "../src/tenant/registry.ts";
import { Refused } from "./errors.ts";
import { endUserId } from "./schemas/fields.ts";

/**
 * Who may call an operation: `secret` a secret key; `credit_write` a secret key, a public one is `forbidden`; `hidden`
 * a secret key, to a public one the path is unknown; `any` either key; `end_user` a secret key, or a public key with
 * an end-user token; `token` either key, always with a token; `test_secret` a secret key of test mode.
 */
export type Access = "secret" | "credit_write" | "hidden" | "any" | "end_user" | "token" | "test_secret";

/** An end user as a token names one. */
export interface EndUser {
  readonly userId: string;
}

const BEARER = "Bearer ";

/** The running term and the caller; refuses while this process is not the writer, then an unknown key. */
export function authenticate(request: Request, service: Service): { serving: Serving; caller: Caller } {
  const serving = service.requireServing();
  const presented = bearerOf(request);
  const caller = presented === null ? null : serving.registry.authenticate(presented);
  if (caller === null) throw new Refused("invalid_key", "The API key is missing, malformed or revoked");
  return { serving, caller };
}

/**
 * Refuses a caller without the right to an operation; answers the end user of a token that the operation needs.
 *
 * @param nowMs the real moment, by which tokens expire
 */
export function authorize(request: Request, access: Access, caller: Caller, nowMs: number): EndUser | null {
  const isPublic = caller.key.class === "public";
  switch (access) {
    case "any":
      return null;
    case "token":
      return endUserOf(request, caller, nowMs);
    case "end_user":
      return isPublic ? endUserOf(request, caller, nowMs) : null;
    case "hidden":
      if (isPublic) throw new Refused("not_found", "Nothing answers at this path");
      return null;
    case "credit_write":
      if (isPublic) throw new Refused("forbidden", "Credits are written with a secret key only");
      return null;
    case "secret":
    case "test_secret":
      if (isPublic) throw new Refused("requires_secret_key", "This call needs a secret key");
      if (access === "test_secret" && caller.key.mode !== "test") {
        throw new Refused("forbidden", "This call needs a key of test mode");
      }
      return null;
  }
}

/** Refuses a wrong or missing admin token. */
export function authorizeAdmin(request: Request, adminToken: string | null): void {
  const presented = bearerOf(request);
  if (adminToken === null || presented === null || !equalsSecret(presented, adminToken)) {
    throw new Refused("invalid_key", "The admin token is missing or wrong");
  }
}

/** Refuses a token's user who asks for somebody else; aliases of one user are the same user. */
export async function requireSameUser(
  { directory }: Term,
  { realm }: Realm,
  endUser: EndUser | null,
  userId: string,
): Promise<void> {
  if (endUser === null || endUser.userId === userId) return;
  // Only the token's own user is looked up: the caller cannot make the service load anybody else.
  const { state } = await directory.actorOf(realm, endUser.userId);
  const ids = [state.user.id, ...state.aliases.map(({ id }) => id)];
  if (!ids.includes(userId)) forbid();
}

function bearerOf(request: Request): string | null {
  const header = request.headers.get("authorization");
  if (header === null || !header.startsWith(BEARER)) return null;
  return header.slice(BEARER.length);
}

function endUserOf(request: Request, { app }: Caller, nowMs: number): EndUser {
  const token = request.headers.get("x-end-user-token");
  if (token === null) throw new Refused("forbidden", "This call needs the header X-End-User-Token");
  return readEndUserToken(token, app.record.identitySecret, nowMs) ?? forbid();
}

/** The user of a valid token at a real moment, or null: base64url(JSON) "." base64url(HMAC-SHA-256). */
export function readEndUserToken(token: string, secret: string, nowMs: number): EndUser | null {
  const [payload, signature, ...rest] = token.split(".");
  if (payload === undefined || signature === undefined || rest.length > 0) return null;
  const expected = Buffer.from(createHmac("sha256", secret).update(payload).digest("base64url"));
  const presented = Buffer.from(signature);
  if (presented.length !== expected.length || !timingSafeEqual(presented, expected)) return null;
  try {
    const { userId, exp } = JSON.parse(Buffer.from(payload, "base64url").toString()) as Record<
      string,
      unknown
    >;
    if (typeof exp !== "number" || exp * 1000 <= nowMs) return null;
    // Whom no call could name, a token cannot name either.
    const isUser = typeof userId === "string" && userId.isWellFormed() && !userId.includes("\0") &&
      endUserId.safeParse(userId).success;
    return isUser ? { userId } : null;
  } catch {
    return null;
  }
}

function forbid(): never {
  throw new Refused("forbidden", "The end-user token does not allow this");
}
