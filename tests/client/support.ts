// Clients of a service in this process, and a fetch that does what a test says.

import assert from "node:assert/strict";
import {
  type ClientOptions,
  createClient,
  type HoldfastClient,
  HoldfastError,
} from "../../src/client/client.ts";
import type { TestApp, TestService } from "../support/test_service.ts";

export const BASE_URL = "http://service.test";

/** A request that the client sent. */
export interface Sent {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly headers: Headers;
  readonly body: string | null;
}

/** A fetch to a service in this process. */
export function fetchOf(service: Pick<TestService, "http">) {
  return async (url: string, init: RequestInit): Promise<Response> =>
    await service.http.fetch(new Request(url, init));
}

/** A client of an app, by default with its live secret key. */
export function clientOf(
  service: TestService,
  app: TestApp,
  options: Partial<ClientOptions> = {},
): HoldfastClient {
  return createClient({ apiKey: app.secretLive, baseUrl: BASE_URL, fetch: fetchOf(service), ...options });
}

/** The request that a fetch was given. */
export function sentOf(url: string, init: RequestInit): Sent {
  const { pathname, search } = new URL(url);
  return {
    method: init.method ?? "GET",
    path: pathname + search,
    headers: new Headers(init.headers),
    body: init.body === undefined ? null : init.body as string,
  };
}

/** A fetch that keeps what is sent and gives one reply after the other; the last one again and again. */
export function scriptedFetch(...replies: readonly (() => Response | Promise<Response>)[]) {
  const sent: Sent[] = [];
  const fetch = async (url: string, init: RequestInit): Promise<Response> => {
    const reply = replies[Math.min(sent.length, replies.length - 1)];
    sent.push(sentOf(url, init));
    if (reply === undefined) throw new TypeError("Nothing was to be sent");
    return await reply();
  };
  return { sent, fetch };
}

/** A success with this data. */
export function succeed(data: unknown = {}) {
  return () => Response.json({ ok: true, data });
}

/** An error of the service. */
export function fail(status: number, code: string, headers: Record<string, string> = {}) {
  const body = { ok: false, error: { code, message: `It is ${code}` } };
  return () => Response.json(body, { status, headers: { "x-request-id": "req_1", ...headers } });
}

/** The reply of a connection that breaks. */
export function breakOff(): never {
  throw new TypeError("connection reset");
}

/** The error of a call that must fail. */
export async function errorOf(promise: Promise<unknown>): Promise<HoldfastError> {
  const error = await promise.then(() => null, (thrown) => thrown);
  assert.ok(error instanceof HoldfastError, String(error));
  return error;
}
