// Tokens that let a page with a public key read the usage of its own user. Your backend signs them with the app's
// identity secret, which must never leave the backend.

import { invalidInput } from "./errors.ts";

/** The user of a token, and how long it is valid. */
export interface EndUserTokenInput {
  /** The app's identity secret, shown once when the app was created. */
  readonly identitySecret: string;
  readonly userId: string;
  /** An hour by default, 400 days at most. */
  readonly expiresInSeconds?: number | undefined;
  /** Set to make the token valid with keys of one mode only. */
  readonly mode?: "live" | "test" | undefined;
}

const HOUR_S = 3600;
const LONGEST_S = 400 * 24 * HOUR_S;

/**
 * Signs the token of an end user, for `endUserToken` of a client with a public key.
 *
 * @example In your backend, where you know who is signed in
 * ```ts
 * const endUserToken = await signEndUserToken({ identitySecret, userId: "user_1", expiresInSeconds: 900 });
 * const page = createClient({ apiKey: "pk_live_...", baseUrl: "https://holdfast.example.com", endUserToken });
 * const { credits } = await page.credits.list({ userId: "user_1" });
 * console.log(credits); // []
 * ```
 */
export async function signEndUserToken(
  { identitySecret, userId, expiresInSeconds = HOUR_S, mode }: EndUserTokenInput,
): Promise<string> {
  if (!(expiresInSeconds > 0 && expiresInSeconds <= LONGEST_S)) {
    throw invalidInput("expiresInSeconds: must be greater than 0 and at most 400 days");
  }
  const now = Date.now() / 1000;
  const exp = Math.min(Math.ceil(now + expiresInSeconds), Math.floor(now + LONGEST_S));
  const encoder = new TextEncoder();
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", encoder.encode(identitySecret), algorithm, false, [
    "sign",
  ]);
  const payload = base64url(encoder.encode(JSON.stringify({ userId, exp, mode })));
  const signature = await crypto.subtle.sign("HMAC", key, encoder.encode(payload));
  return `${payload}.${base64url(new Uint8Array(signature))}`;
}

function base64url(bytes: Uint8Array): string {
  const text = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  return text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
