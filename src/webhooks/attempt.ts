// One attempt over the network: resolves the name, checks that the address may be called, signs, sends to that very
// address, and reads the answer up to a bound, so that the connection can be reused. Signature and headers are those
// of Standard Webhooks.

import { lookup } from "node:dns/promises";
import {
  Agent as HttpAgent,
  type ClientRequest,
  type IncomingMessage,
  request as requestHttp,
} from "node:http";
import { Agent as HttpsAgent, request as requestHttps } from "node:https";
import { Webhook } from "standardwebhooks";
import { SENDER_LIMITS } from "../process/webhook_limits.ts";
import { hostOf, isAddress, isPublicAddress, urlFault } from "../process/address.ts";
import type { Attempt, AttemptResult } from "./transport.ts";

/** What attempts use. */
export interface Surroundings {
  /** Whether `http` and addresses of private networks may be used. */
  readonly allowsPrivate: boolean;
  /** The time for a whole attempt. */
  readonly answerMs: number;
  /** Resolves the addresses of a name. */
  resolve(name: string): Promise<readonly string[]>;
  /** Whether an address may be called. */
  mayCall(address: string): boolean;
  /** Certificates of authorities, instead of those that the system trusts. */
  readonly ca?: string;
}

/** The real network. */
export function realSurroundings(allowsPrivate: boolean): Surroundings {
  return {
    allowsPrivate,
    answerMs: SENDER_LIMITS.answerMs,
    resolve: async (name) => (await lookup(name, { all: true })).map(({ address }) => address),
    mayCall: (address) => allowsPrivate || isPublicAddress(address),
  };
}

/** A fault that ends an attempt, with a message for the customer. */
class Fault extends Error {}

/** Makes attempts, with connections that are reused. */
export class Caller {
  readonly #surroundings: Surroundings;
  readonly #https: HttpsAgent;
  readonly #http: HttpAgent;

  constructor(surroundings: Surroundings) {
    this.#surroundings = surroundings;
    const { ca } = surroundings;
    const { idleConnectionsMax: maxFreeSockets, idleConnectionMs: timeout } = SENDER_LIMITS;
    const options = { keepAlive: true, maxFreeSockets, timeout };
    this.#http = new HttpAgent(options);
    this.#https = new HttpsAgent(ca === undefined ? options : { ...options, ca });
  }

  /** Makes an attempt; rejects when the signal ends it. */
  async attempt(attempt: Attempt, signal: AbortSignal): Promise<AttemptResult> {
    const { answerMs } = this.#surroundings;
    const deadline = new AbortController();
    const timer = setTimeout(() => deadline.abort(), answerMs);
    try {
      const { status, text } = await this.#send(attempt, AbortSignal.any([signal, deadline.signal]));
      const result = { status, fault: faultOfStatus(status) };
      return text === "" ? result : { ...result, answer: text };
    } catch (error) {
      signal.throwIfAborted();
      if (deadline.signal.aborted) return { status: null, fault: `no answer within ${answerMs / 1000} s` };
      return { status: null, fault: textOf(error) };
    } finally {
      clearTimeout(timer);
    }
  }

  /** Closes idle connections. */
  close(): void {
    this.#http.destroy();
    this.#https.destroy();
  }

  /** Sends to the first address that accepts a connection; returns the answer. */
  async #send(attempt: Attempt, ends: AbortSignal): Promise<Answer> {
    const url = new URL(attempt.url);
    const headers = headersOf(attempt, url);
    let fault: unknown = new Fault("the name has no address");
    for (const address of await until(ends, this.#addressesOf(url))) {
      try {
        return await this.#sendTo(address, url, headers, attempt.body, ends);
      } catch (error) {
        if (ends.aborted || !NOT_CONNECTED.has(codeOf(error))) throw error;
        fault = error;
      }
    }
    throw fault;
  }

  /** Resolves the addresses of a URL, and checks that each may be called. */
  async #addressesOf(url: URL): Promise<readonly string[]> {
    const { allowsPrivate, resolve, mayCall } = this.#surroundings;
    const fault = urlFault(url.href, allowsPrivate);
    if (fault !== null) throw new Fault(`the URL ${fault}`);
    const host = hostOf(url);
    const addresses = isAddress(host) ? [host] : await resolve(host);
    if (!addresses.every(mayCall)) throw new Fault("the name resolves to a private address");
    return addresses;
  }

  /** Sends on a connection to an address; returns the answer when it is read up to the bound. */
  async #sendTo(
    address: string,
    url: URL,
    headers: Readonly<Record<string, string>>,
    body: string,
    ends: AbortSignal,
  ): Promise<Answer> {
    while (true) {
      const call = this.#open(address, url, headers);
      try {
        return await exchange(call, body, ends);
      } catch (error) {
        // The peer closed an idle connection just when it was reused.
        if (ends.aborted || !call.reusedSocket || !CLOSED.has(codeOf(error))) throw error;
      }
    }
  }

  #open(host: string, url: URL, headers: Readonly<Record<string, string>>): ClientRequest {
    const { port, pathname, search } = url;
    const options = { host, path: pathname + search, method: "POST", headers };
    if (url.protocol === "http:") {
      return requestHttp({ ...options, port: port === "" ? 80 : Number(port), agent: this.#http });
    }
    const name = hostOf(url);
    return requestHttps({
      ...options,
      port: port === "" ? 443 : Number(port),
      agent: this.#https,
      // The certificate must be for the name, although the connection is to an address.
      ...isAddress(name) ? {} : { servername: name },
    });
  }
}

const NOT_CONNECTED: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EADDRNOTAVAIL",
  "ETIMEDOUT",
]);
const CLOSED: ReadonlySet<string> = new Set(["ECONNRESET", "EPIPE", "ECONNABORTED"]);

function headersOf({ messageId, at, body, secrets }: Attempt, { host }: URL): Record<string, string> {
  const moment = new Date(at);
  return {
    host,
    "content-type": "application/json",
    "content-length": String(new TextEncoder().encode(body).byteLength),
    "user-agent": "Holdfast-Webhooks",
    "webhook-id": messageId,
    "webhook-timestamp": String(Math.floor(at / 1000)),
    "webhook-signature": secrets.map((secret) => new Webhook(secret).sign(messageId, moment, body)).join(" "),
  };
}

/** An answer of an endpoint. */
interface Answer {
  readonly status: number;
  /** Its first bytes. */
  readonly text: string;
}

/** Sends a body and reads the answer. */
function exchange(call: ClientRequest, body: string, ends: AbortSignal): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let status: number | null = null;
    const kept = new Beginning();
    const finish = (error: unknown) => {
      ends.removeEventListener("abort", end);
      // The status has arrived, whatever happens to the rest of the answer.
      if (status === null) reject(error);
      else resolve({ status, text: kept.text });
    };
    const end = () => {
      finish(ends.reason);
      call.destroy();
    };
    ends.addEventListener("abort", end, { once: true });
    if (ends.aborted) return end();
    call.on("error", finish);
    call.on("close", () => finish(new Fault("the connection was closed without an answer")));
    call.on("response", (answer: IncomingMessage) => {
      status = answer.statusCode ?? null;
      readSome(answer, kept, () => call.destroy()).then(() => finish(new Fault("the answer has no status")));
    });
    call.end(body);
  });
}

/** The first bytes of an answer. */
class Beginning {
  readonly #bytes = new Uint8Array(SENDER_LIMITS.answerKeptBytes);
  #length = 0;

  add(chunk: Uint8Array): void {
    const some = chunk.subarray(0, this.#bytes.length - this.#length);
    this.#bytes.set(some, this.#length);
    this.#length += some.length;
  }

  /** As text; what is not UTF-8 is replaced. */
  get text(): string {
    return new TextDecoder().decode(this.#bytes.subarray(0, this.#length));
  }
}

/** Reads an answer up to a bound, so that its connection can be reused; a longer answer ends the connection. */
function readSome(answer: IncomingMessage, kept: Beginning, cut: () => void): Promise<void> {
  return new Promise((resolve) => {
    let bytes = 0;
    answer.on("data", (chunk: Uint8Array) => {
      bytes += chunk.byteLength;
      kept.add(chunk);
      if (bytes <= SENDER_LIMITS.answerBytesMax) return;
      cut();
      resolve();
    });
    for (const event of ["end", "error", "close"]) answer.on(event, () => resolve());
  });
}

/** Resolves with the work, or rejects when the signal comes first. */
async function until<T>(ends: AbortSignal, work: Promise<T>): Promise<T> {
  ends.throwIfAborted();
  const { promise, reject } = Promise.withResolvers<never>();
  const end = () => reject(ends.reason);
  ends.addEventListener("abort", end, { once: true });
  try {
    return await Promise.race([work, promise]);
  } finally {
    ends.removeEventListener("abort", end);
  }
}

function faultOfStatus(status: number): string | null {
  if (status >= 200 && status < 300) return null;
  return status >= 300 && status < 400
    ? `answered ${status}; redirects are not followed`
    : `answered ${status}`;
}

function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : "";
}

const FAULTS: readonly (readonly [code: RegExp, text: string])[] = [
  [/^(ENOTFOUND|EAI_\w+|ENODATA|ESERVFAIL)$/, "the name could not be looked up"],
  [/^ECONNREFUSED$/, "the connection was refused"],
  [/^(EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|ETIMEDOUT)$/, "the address could not be reached"],
  [/^(ECONNRESET|EPIPE|ECONNABORTED)$/, "the connection was closed without an answer"],
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, "the certificate is for another name"],
  [/^CERT_HAS_EXPIRED$/, "the certificate has expired"],
  [/CERT|SSL|TLS|SIGNATURE/, "the certificate could not be verified, or TLS failed"],
  [/^HPE_/, "the answer is not HTTP"],
];

/** Describes what went wrong, without the address that the name resolved to. */
function textOf(error: unknown): string {
  if (error instanceof Fault) return error.message;
  const code = codeOf(error);
  return FAULTS.find(([pattern]) => pattern.test(code))?.[1] ?? "the message could not be sent";
}
