// Tokens that let a page with a public key read the usage of its own user. Your backend signs them with the app's
// identity secret, which must never leave the backend.

import { invalidInput } from "./errors.ts";

/** The user of a token, and how long it is valid. */
export interface EndUserTokenInput {
  /** The app's identity secret, shown once when the app was created. */
  readonly identitySecret: string;
  readonly userId: string;
  /** An hour by default. */
  readonly expiresInSeconds?: number | undefined;
}

const HOUR_S = 3600;

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
  { identitySecret, userId, expiresInSeconds = HOUR_S }: EndUserTokenInput,
): Promise<string> {
  if (!(expiresInSeconds > 0 && expiresInSeconds <= Number.MAX_SAFE_INTEGER / 2)) {
    throw invalidInput("expiresInSeconds: must be greater than 0");
  }
  const exp = Math.ceil(Date.now() / 1000 + expiresInSeconds);
  const encoder = new TextEncoder();
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", encoder.encode(identitySecret), algorithm, false, [
    "sign",
  ]);
  const payload = base64url(encoder.encode(JSON.stringify({ userId, exp })));
  const signature = await crypto.subtle.sign("HMAC", key, encoder.encode(payload));
  return `${payload}.${base64url(new Uint8Array(signature))}`;
}

function base64url(bytes: Uint8Array): string {
  const text = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  return text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
