// Who may call: API keys, their classes and modes, the end-user token of public keys, and the admin token.
// Specification, "Authentication"; section 2 of the decisions.

import type { Realm } from "../../actors/actor.ts";
import type { Directory } from "../../actors/directory.ts";
import { equalsSecret } from "../../src/process/secrets/hash.ts";
import { openToken } from "../../src/process/secrets/signed_token.ts";
import { type App, type Caller, identitySecretsOf, type Registry } from "../../src/tenant/registry.ts";
import { Refused } from "./errors.ts";
import type { Access } from "../contract/definition.ts";
import { endUserId } from "../contract/fields.ts";

/** An end user as a token names one. */
export interface EndUser {
  readonly userId: string;
}

const BEARER = "Bearer ";
/** Names of authentication schemes have no case. */
const ANY_BEARER = /^bearer +/i;

/** The running term and the caller; refuses while this process may answer nothing, then an unknown key. */
export function authenticate<World extends { readonly registry: Pick<Registry, "authenticate"> }>(
  request: Request,
  source: { requireServing(): World },
): { world: World; caller: Caller } {
  const world = source.requireServing();
  const presented = bearerOf(request);
  const caller = presented === null ? null : world.registry.authenticate(presented);
  if (caller === null) throw new Refused("invalid_key", "The API key is missing, malformed or revoked");
  return { world, caller };
}

/**
 * Refuses a caller without the right to an endpoint; answers the end user of a token that the endpoint needs.
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

/**
 * Refuses a wrong or missing admin token.
 *
 * @param adminToken null where none is set, which switches the admin API off
 */
export function authorizeAdmin(request: Request, adminToken: string | null): void {
  if (adminToken === null) {
    throw new Refused("not_implemented", "The admin API is off: set HOLDFAST_ADMIN_TOKEN to switch it on");
  }
  const presented = bearerOf(request);
  if (presented === null || !equalsSecret(presented, adminToken)) {
    throw new Refused("invalid_key", "The admin token is missing or wrong");
  }
}

/** Refuses a token's user who asks for somebody else; aliases of one user are the same user. */
export async function requireSameUser(
  directory: Pick<Directory, "isSameUser">,
  { realm }: Realm,
  endUser: EndUser | null,
  userId: string,
): Promise<void> {
  if (endUser === null || endUser.userId === userId) return;
  if (!await directory.isSameUser(realm, endUser.userId, userId)) forbid();
}

function bearerOf(request: Request): string | null {
  const header = request.headers.get("authorization");
  if (header === null) return null;
  if (header.startsWith(BEARER)) return header.slice(BEARER.length);
  return ANY_BEARER.test(header) ? header.replace(ANY_BEARER, "") : null;
}

function endUserOf(request: Request, { app }: Caller, nowMs: number): EndUser {
  const token = request.headers.get("x-end-user-token");
  if (token === null) throw new Refused("forbidden", "This call needs the header X-End-User-Token");
  return readEndUserToken(token, identitySecretsOf(app, nowMs), nowMs) ?? forbid();
}

/**
 * Until when a token that is valid now stays so, as far as is known: its own end, or that of the secret which signed it;
 * null for one that is not valid.
 */
export function endOfToken(token: string, { record }: App, nowMs: number): number | null {
  const secrets = [{ secret: record.identitySecret, validUntil: Infinity }, ...record.oldIdentitySecrets];
  const ends = secrets.flatMap(({ secret, validUntil }) => {
    const payload = openToken(token, [secret])?.payload as { exp?: unknown } | null | undefined;
    return typeof payload?.exp === "number" ? [Math.min(payload.exp * 1000, validUntil)] : [];
  });
  const end = Math.max(...ends);
  return end > nowMs ? end : null;
}

/** The user of a token that is valid at a real moment, or null. */
function readEndUserToken(token: string, secrets: readonly string[], nowMs: number): EndUser | null {
  const payload = openToken(token, secrets)?.payload;
  if (typeof payload !== "object" || payload === null) return null;
  const { userId, exp } = payload as Record<string, unknown>;
  if (typeof exp !== "number" || exp * 1000 <= nowMs) return null;
  // Whom no call could name, a token cannot name either.
  const isUser = typeof userId === "string" && userId.isWellFormed() && !userId.includes("\0") &&
    endUserId.safeParse(userId).success;
  return isUser ? { userId } : null;
}

function forbid(): never {
  throw new Refused("forbidden", "The end-user token does not allow this");
}
