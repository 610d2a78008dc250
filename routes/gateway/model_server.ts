// Requests to the model server, and the parts of its answers that go back to callers: status, body, and the headers about
// the answer. Headers about the account behind this service's key are not passed on.

import type { ModelServer } from "../../src/process/features.ts";
import { GATEWAY_LIMITS } from "../../src/process/gateway_limits.ts";
import { joined } from "../http/body.ts";
import { Refused } from "../http/errors.ts";
import { headersOf } from "../http/respond.ts";
import type { Dialect } from "./dialects.ts";
import { CUT_OFF, readerOf } from "./metered_body.ts";

/** A request to a model server. */
export interface Asked {
  readonly path: string;
  /** null for a GET. */
  readonly body: Uint8Array<ArrayBuffer> | null;
  /** The content type of the body. */
  readonly type?: string;
}

/**
 * Asks the server. A compressed answer is decompressed, though none was asked for.
 *
 * @throws Refused with `generation_failed` when there is no answer, or one that can't be passed on
 */
export async function askServer(
  { urlOf, keyHeaders, asked, passesQuery }: Dialect,
  { baseUrl, apiKey }: ModelServer,
  { path, body, type = "application/json" }: Asked,
  request: Request,
  signal: AbortSignal,
): Promise<Response> {
  const headers = new Headers({
    ...keyHeaders(apiKey),
    // Compressed pieces would come late.
    "accept-encoding": "identity",
    "user-agent": "holdfast",
  });
  if (body !== null) headers.set("content-type", type);
  for (const name of asked) {
    const value = request.headers.get(name);
    if (value !== null) headers.set(name, value);
  }
  const query = passesQuery ? new URL(request.url).search : "";
  const method = body === null ? "GET" : "POST";
  // A redirect could send the key to another host.
  const asking = fetch(urlOf(baseUrl, path) + query, { method, headers, body, signal, redirect: "manual" });
  const answer = await asking.catch(() => {
    throw serverFailed("The model server did not answer");
  });
  const fault = faultOf(answer);
  if (fault === null) return decompressed(answer);
  discard(answer);
  throw serverFailed(`The model server answered ${fault}`);
}

/** How the formats of `DecompressionStream` are called in a header. */
const FORMATS: Readonly<Record<string, CompressionFormat>> = {
  gzip: "gzip",
  "x-gzip": "gzip",
  deflate: "deflate",
  br: "brotli",
};

function encodingOf({ headers }: Response): string {
  return headers.get("content-encoding")?.trim().toLowerCase() ?? "";
}

/** What can't be passed on of an answer; null for nothing. */
function faultOf(answer: Response): string | null {
  const { status } = answer;
  if (status < 200 || status > 599) return `${status}, which is no status of an answer`;
  const encoding = encodingOf(answer);
  const isKnown = encoding === "" || encoding === "identity" || Object.hasOwn(FORMATS, encoding);
  return isKnown ? null : "with an unknown Content-Encoding";
}

/** The runtime decompresses nothing where a request says which encodings it takes. */
function decompressed(answer: Response): Response {
  const { body, status, headers } = answer;
  const format = FORMATS[encodingOf(answer)];
  if (format === undefined || body === null) return answer;
  return new Response(body.pipeThrough(new DecompressionStream(format)), { status, headers });
}

/** Ends the connection of an answer that is not read. */
function discard({ body }: Response): void {
  void body?.cancel().catch(() => {});
}

/**
 * Reads an answer without metering: whole and within a bounded time, so that neither a server that stalls nor a reader that
 * takes nothing keeps a connection to the server.
 *
 * @param asking makes the answer, or has it already
 * @throws Refused with `generation_failed` when it is cut off, too long or too slow
 */
export async function wholeInTime(
  signal: AbortSignal,
  asking: (signal: AbortSignal) => Response | Promise<Response>,
): Promise<Response> {
  const ending = new AbortController();
  const end = () => ending.abort();
  signal.addEventListener("abort", end);
  if (signal.aborted) end();
  const timer = setTimeout(end, GATEWAY_LIMITS.plainMs);
  try {
    const answer = await asking(ending.signal);
    const reader = readerOf(answer, ending.signal);
    const pieces: Uint8Array[] = [];
    let length = 0;
    while (true) {
      const read = await reader.read().catch(() => null);
      if (ending.signal.aborted) throw serverFailed("The model server did not end its answer in time");
      if (read === null) throw serverFailed(CUT_OFF);
      if (read.done) break;
      pieces.push(read.value);
      length += read.value.byteLength;
      if (length <= GATEWAY_LIMITS.plainBytesMax) continue;
      end();
      throw serverFailed(`The model server answered more than ${GATEWAY_LIMITS.plainBytesMax} bytes`);
    }
    return new Response(BODILESS.has(answer.status) ? null : joined(pieces, length), answer);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", end);
  }
}

/** Whether the server refused this service's key: its message would be about that key. */
export function refusesKey({ status }: Response): boolean {
  return status === 401 || status === 403;
}

/** The refusal when the server refused this service's key. */
export function keyRefused(answer: Response): Refused {
  discard(answer);
  return serverFailed(`The model server refused this service's key with ${answer.status}`);
}

/** The refusal when the server gave no usable answer. */
export function serverFailed(message: string): Refused {
  return new Refused("generation_failed", message);
}

/**
 * Returns an answer of the server with another body.
 *
 * @param more headers to add
 */
export function passedOn(
  { passed, idHeader }: Dialect,
  answer: Response,
  body: BodyInit | null,
  id: string,
  more: Readonly<Record<string, string>> = {},
): Response {
  const headers = headersOf(id, answer.headers.get("content-type") ?? "application/json");
  if (idHeader !== null) headers[idHeader] = id;
  for (const name of passed) {
    const value = answer.headers.get(name);
    if (value !== null) headers[name] = value;
  }
  const { status } = answer;
  return new Response(BODILESS.has(status) ? null : body, { status, headers: { ...headers, ...more } });
}

/** The statuses of answers without a body. */
const BODILESS: ReadonlySet<number> = new Set([204, 205, 304]);
