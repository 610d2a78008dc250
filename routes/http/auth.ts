// Who may call: API keys, their classes and modes, the end-user token of public keys, and the admin token.

import type { Realm } from "../../actors/call.ts";
import type { Directory } from "../../actors/directory.ts";
import type { Mode } from "../../actors/port.ts";
import type { Millis } from "../../src/domain/values/period.ts";
import { TOKEN_LIMITS } from "../../src/process/limits.ts";
import { equalsSecret } from "../../src/process/secrets/hash.ts";
import { openToken } from "../../src/process/secrets/signed_token.ts";
import { type App, type Caller, identitySecretsOf } from "../../src/tenant/registry.ts";
import type { AuditWorld } from "../../src/audit/audit.ts";
import { RateLimited, Refused, unknownPath } from "./errors.ts";
import type { KeyedDefinition } from "../contract/definition.ts";
import { endUserId } from "../contract/fields.ts";
import type { Guesses } from "./guesses.ts";

/** The end user that a token names, or for whom a user's key acts. */
export interface EndUser {
  readonly userId: string;
  /** When the user's key expires; null for never, absent for a token. */
  readonly expiresAt?: Millis | null;
}

/** What decides who may make a call. A request that is no call of the API has no method, and takes no read-only key. */
export type CallAccess =
  & Pick<KeyedDefinition, "access" | "takesUserKey" | "isRead">
  & Partial<Pick<KeyedDefinition, "method">>;

/** Where endpoints get what they work on: running terms, of the one database of this process or of several. */
export interface Source<World> {
  /** A running term, for what is about no workspace. @throws MayNotAnswer while this process may not answer */
  requireServing(): World;
  /** The caller with a key, null for an unknown key, and the term of its database. @throws MayNotAnswer */
  find(presented: string | null): { readonly world: World; readonly caller: Caller | null };
}

const END_USER_TOKEN = "x-end-user-token";
const BEARER = "Bearer ";
/** The names of authentication schemes are not case-sensitive. */
const ANY_BEARER = /^bearer +/i;

/**
 * Returns the running term and the caller; refuses while this process may not answer, then an unknown key. A user's key is
 * not checked yet: `identify` does that.
 *
 * @param keyHeader the header that has the key, if it is there; else it is the bearer token
 */
export function authenticate<World>(
  request: Request,
  source: Source<World>,
  keyHeader: string | null = null,
): { world: World; caller: Caller } {
  const { world, caller } = source.find(presentedKey(request, keyHeader));
  if (caller === null) throw new Refused("invalid_key", "The API key is missing, malformed or revoked");
  return { world, caller };
}

/**
 * Refuses a caller who may not use an endpoint; returns the end user of the token, where the endpoint needs one.
 *
 * @param nowMs the real moment, by which tokens expire
 */
export function authorize(
  request: Request,
  { access, takesUserKey, method, isRead }: CallAccess,
  caller: Caller,
  nowMs: number,
): EndUser | null {
  if (caller.ofUser !== null) {
    if (takesUserKey === true) return null;
    throw new Refused("requires_secret_key", "This call needs a secret key; a user's key does not allow it");
  }
  if (caller.key.class === "reader" && method !== "GET" && isRead !== true) {
    throw new Refused("forbidden", "A read-only key may make calls that only read");
  }
  const isPublic = caller.key.class === "public";
  switch (access) {
    case "any":
      return null;
    case "any_user":
      return isPublic && request.headers.has(END_USER_TOKEN) ? endUserOf(request, caller, nowMs) : null;
    case "token":
      return endUserOf(request, caller, nowMs);
    case "end_user":
      return isPublic ? endUserOf(request, caller, nowMs) : null;
    case "hidden":
      if (isPublic) throw unknownPath(request);
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

/** The admin token, and the limit of guesses at it. */
export interface AdminAccess {
  /** Null where no token is set: the admin API is off. */
  readonly token: string | null;
  readonly guesses: Guesses;
}

/**
 * Refuses a wrong or missing admin token. A wrong one is counted and recorded.
 *
 * @param address the address at the other end of the connection
 * @throws RateLimited for a wrong token above the limit of guesses
 */
export async function authorizeAdmin(
  request: Request,
  { token, guesses }: AdminAccess,
  world: AuditWorld,
  address: string,
): Promise<void> {
  if (token === null) {
    throw new Refused("not_implemented", "The admin API is off: set HOLDFAST_ADMIN_TOKEN to switch it on");
  }
  const presented = bearerOf(request);
  if (presented !== null && equalsSecret(presented, token)) return;
  if (presented !== null) {
    const guess = guesses.begin(address, world.clock.now());
    await guesses.record(world, guess, "api");
    if (guess.waitS > 0) {
      throw new RateLimited(guess.waitS, `Too many wrong tokens; retry in ${guess.waitS} s`);
    }
  }
  throw new Refused("invalid_key", "The admin token is missing or wrong");
}

/** Refuses the user of a token who asks for another user; aliases of one user are the same user. */
export async function requireSameUser(
  directory: Pick<Directory, "isSameUser">,
  { realm }: Realm,
  endUser: EndUser | null,
  userId: string,
): Promise<void> {
  if (endUser === null || endUser.userId === userId) return;
  if (await directory.isSameUser(realm, endUser.userId, userId)) return;
  if (endUser.expiresAt === undefined) forbid();
  throw new Refused("forbidden", "The key acts for its own user alone");
}

/** The text that a request presents as its API key; null for none. */
export function presentedKey(request: Request, keyHeader: string | null): string | null {
  return (keyHeader === null ? null : request.headers.get(keyHeader)) ?? bearerOf(request);
}

function bearerOf(request: Request): string | null {
  const header = request.headers.get("authorization");
  if (header === null) return null;
  if (header.startsWith(BEARER)) return header.slice(BEARER.length);
  return ANY_BEARER.test(header) ? header.replace(ANY_BEARER, "") : null;
}

function endUserOf(request: Request, { app, key }: Caller, nowMs: number): EndUser {
  const token = request.headers.get(END_USER_TOKEN);
  if (token === null) throw new Refused("forbidden", "This call needs the header X-End-User-Token");
  return readEndUserToken(token, identitySecretsOf(app, nowMs), key.mode, nowMs) ?? forbid();
}

/**
 * Returns when a token that is valid now ends: by its own expiry, or when the secret that signed it expires. Null for an
 * invalid token.
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

const TOKEN_DAYS = TOKEN_LIMITS.aheadMs / 86_400_000;

/**
 * Returns the user of a token that is valid for a mode at a real moment, or null.
 *
 * @throws Refused for a signed token that ends too late: its maker has to know why, and mostly wrote milliseconds
 */
function readEndUserToken(
  token: string,
  secrets: readonly string[],
  keyMode: Mode,
  nowMs: number,
): EndUser | null {
  const payload = openToken(token, secrets)?.payload;
  if (typeof payload !== "object" || payload === null) return null;
  const { userId, exp, mode = keyMode } = payload as Record<string, unknown>;
  if (typeof exp !== "number" || exp * 1000 <= nowMs) return null;
  if (exp * 1000 > nowMs + TOKEN_LIMITS.aheadMs) {
    throw new Refused(
      "forbidden",
      `exp of the end-user token must be in Unix seconds and at most ${TOKEN_DAYS} days ahead`,
    );
  }
  if (mode !== keyMode) return null;
  // A token names only users that a call could name.
  const isUser = typeof userId === "string" && userId.isWellFormed() && !userId.includes("\0") &&
    endUserId.safeParse(userId).success;
  return isUser ? { userId } : null;
}

function forbid(): never {
  throw new Refused("forbidden", "The end-user token does not allow this");
}
