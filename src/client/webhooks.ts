// Verifies messages of webhooks: that a request was signed by the service, and recently. The signature is that of
// Standard Webhooks.

import { HoldfastError } from "./errors.ts";
import type { WebhookData } from "./wire_types.ts";

/** A type of message. */
export type WebhookType = keyof WebhookData;

/** A message of one of these types. Compare `type`, and TypeScript knows the type of `data`. */
export type WebhookMessage<Type extends WebhookType = WebhookType> = {
  readonly [Name in Type]: {
    readonly type: Name;
    /** When it happened. */
    readonly timestamp: string;
    readonly data: WebhookData[Name];
  };
}[Type];

/** A request that may be a message. */
export interface WebhookRequest {
  /** The webhook's secret, `whsec_...`; a list if several webhooks have the same address. */
  readonly secret: string | readonly string[];
  /** `request.headers` of a web request, or the headers object of Node. */
  readonly headers: WebhookHeaders;
  /** The unchanged body as text or bytes. A body that was parsed and written again has another signature. */
  readonly body: string | Uint8Array;
}

/** Headers of the web or of Node. */
export type WebhookHeaders =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

/** The most by which the time of a message may differ from this clock. An older message may be a replayed copy. */
const TOLERANCE_S = 300;

/**
 * Verifies that a request is a message of the service, and returns the message. A message may arrive more than once, each
 * time with the same `webhook-id`: remember the ids that you have handled. Later versions of the service may send new
 * types: answer 200 and ignore them.
 *
 * @throws HoldfastError with code `invalid_webhook` when it is not: answer 400 then, and do nothing
 *
 * @example In a route of your backend
 * ```ts
 * const body = '{"type":"ping","timestamp":"2026-11-22T10:00:00.000Z","data":{"appId":"app_1","mode":"live"}}';
 * const headers = { "webhook-id": "whm_1", "webhook-timestamp": "1795341600", "webhook-signature": "v1,c2lnbmVk" };
 * try {
 *   const message = await verifyWebhook({ secret: "whsec_c2VjcmV0", headers, body });
 *   if (message.type === "usage.threshold_reached") console.warn(message.data.thresholdPercent);
 * } catch (error) {
 *   if (!(error instanceof HoldfastError)) throw error;
 *   console.log(error.code); // "invalid_webhook"
 * }
 * ```
 */
export async function verifyWebhook({ secret, headers, body }: WebhookRequest): Promise<WebhookMessage> {
  const [id, timestamp, signatures] = ["id", "timestamp", "signature"]
    .map((name) => headerOf(headers, `webhook-${name}`)) as [string, string, string];
  checkTime(timestamp);
  const bytes = bytesOf(body);
  const signed = joined(new TextEncoder().encode(`${id}.${timestamp}.`), bytes);
  const presented = signatures.split(" ").flatMap((signature) => {
    const [version, text = ""] = signature.split(",", 2);
    return version === "v1" ? [fromBase64(text)] : [];
  }).filter((signature) => signature !== null);
  for (const key of (typeof secret === "string" ? [secret] : secret)) {
    if (await isSignedWith(key, presented, signed)) return messageOf(bytes);
  }
  throw invalid("No signature matches this secret and body");
}

/** Whether any of the signatures matches this secret. The comparison takes the same time wherever they differ. */
async function isSignedWith(
  secret: string,
  signatures: readonly Uint8Array<ArrayBuffer>[],
  signed: Uint8Array<ArrayBuffer>,
): Promise<boolean> {
  const bytes = secret.startsWith(SECRET_PREFIX) ? fromBase64(secret.slice(SECRET_PREFIX.length)) : null;
  // An invalid secret is a mistake of the caller, not of the request.
  if (bytes === null || bytes.length === 0) {
    throw new TypeError('secret: must be "whsec_" and base64, as shown when the webhook was created');
  }
  const key = await crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, [
    "verify",
  ]);
  for (const signature of signatures) {
    if (await crypto.subtle.verify("HMAC", key, signature, signed)) return true;
  }
  return false;
}

const SECRET_PREFIX = "whsec_";

function headerOf(headers: WebhookHeaders, name: string): string {
  const value = typeof headers.get === "function" ? headers.get(name) : memberOf(headers as object, name);
  if (typeof value === "string" && value !== "") return value;
  throw invalid(`Missing header: ${name}`);
}

/** The value of a header. Node has names in lower case and some values as lists; elsewhere names may have any case. */
function memberOf(headers: object, name: string): unknown {
  const [, value] = Object.entries(headers).find(([given]) => given.toLowerCase() === name) ?? [];
  return Array.isArray(value) ? value[0] : value;
}

function checkTime(timestamp: string): void {
  const sentAt = /^\d{1,12}$/.test(timestamp) ? Number(timestamp) : NaN;
  const now = Math.floor(Date.now() / 1000);
  if (Number.isNaN(sentAt)) throw invalid("Invalid header: webhook-timestamp");
  if (Math.abs(now - sentAt) > TOLERANCE_S) {
    throw invalid(`The timestamp is outside the tolerance of ${TOLERANCE_S} s: it is ${now - sentAt} s ago`);
  }
}

function bytesOf(body: string | Uint8Array): Uint8Array {
  if (typeof body === "string") return new TextEncoder().encode(body);
  if (ArrayBuffer.isView(body)) return body;
  throw new TypeError("body: must be the unchanged text or bytes of the request, not a parsed object");
}

function messageOf(bytes: Uint8Array): WebhookMessage {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch (cause) {
    throw invalid("The body is not JSON", cause);
  }
}

function joined(head: Uint8Array, tail: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(head.length + tail.length);
  bytes.set(head);
  bytes.set(tail, head.length);
  return bytes;
}

/** The bytes of a base64 text, or null. */
function fromBase64(text: string): Uint8Array<ArrayBuffer> | null {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return null;
  }
}

function invalid(message: string, cause?: unknown): HoldfastError {
  return new HoldfastError({ code: "invalid_webhook", status: 0, message, cause });
}
