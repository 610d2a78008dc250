// Signed tokens: base64url(JSON) "." base64url(HMAC-SHA-256 of the first part as sent), without padding. End-user
// tokens and export links have this form.

import { Buffer } from "node:buffer";
import { createHmac } from "node:crypto";
import { equalsSecret } from "./hash.ts";

/** The payload of a token with a valid signature. */
interface OpenedToken {
  /** Undefined when the first part is not JSON. */
  readonly payload: unknown;
  /** Whether the first part is the text that `signToken` writes: other base64 texts can decode to the same bytes. */
  readonly isCanonical: boolean;
}

/** Returns a token with a payload. */
export function signToken(secret: string, payload: unknown): string {
  const first = Buffer.from(JSON.stringify(payload)).toString("base64url");
  return `${first}.${signatureOf(secret, first)}`;
}

/** Opens a token that one of the secrets signed; null for any other text. */
export function openToken(token: string, secrets: readonly string[]): OpenedToken | null {
  const [first, signature, ...rest] = token.split(".");
  if (first === undefined || signature === undefined || rest.length > 0) return null;
  // Compared as text, so that another encoding of the same signature is refused.
  if (!secrets.some((secret) => equalsSecret(signature, signatureOf(secret, first)))) return null;
  const bytes = Buffer.from(first, "base64url");
  return { payload: parseOrUndefined(bytes.toString()), isCanonical: bytes.toString("base64url") === first };
}

function signatureOf(secret: string, first: string): string {
  return createHmac("sha256", secret).update(first).digest("base64url");
}

function parseOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
