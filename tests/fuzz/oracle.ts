// Checks every answer, whatever the request: its envelope, its code with its status, its headers, and that it
// contains no secret, no other app's data, no stack and no SQL. The table of codes shares nothing with the product.

import type { FuzzRequest } from "./requests.ts";
import { isStream } from "../support/event_stream.ts";
import { FOREIGN_MARK, type FuzzScene, PROMPT_MARK } from "./scene.ts";

/** An answer with its body as text. */
export interface FuzzAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

const CODES: Readonly<Record<string, number>> = {
  invalid_request: 400,
  invalid_quantity: 400,
  invalid_key: 401,
  invalid_or_expired_token: 401,
  requires_secret_key: 403,
  forbidden: 403,
  consent_required: 403,
  not_found: 404,
  credit_pack_not_found: 404,
  credit_balance_not_found: 404,
  method_not_allowed: 405,
  alias_conflict: 409,
  alias_cycle: 409,
  parent_cycle: 409,
  path_too_long: 409,
  reservation_not_pending: 409,
  run_ended: 409,
  already_canceled: 409,
  trial_used: 409,
  idempotency_conflict: 409,
  catalog_in_use: 409,
  payload_too_large: 413,
  workspace_limit_reached: 429,
  test_quota_exceeded: 429,
  ai_budget_exceeded: 429,
  no_subscription: 429,
  unmatched_event: 429,
  unpriced_model: 429,
  limit_reached: 429,
  reservation_headroom_exceeded: 429,
  member_limit_reached: 429,
  run_limit_reached: 429,
  rate_limited: 429,
  generation_failed: 502,
  not_implemented: 501,
  unavailable: 503,
};

/** Where answers have the envelope; other paths are pages, a document, or speak a protocol of their own. */
const ENVELOPED = /^\/(api\/v1|api\/admin\/v1|healthz|readyz)(\/|$)/;
const REQUEST_ID = /^[A-Za-z0-9._-]{1,100}$/;
/** Traces of the inside in a refusal. */
const INSIDE =
  /\bat .+:\d+:\d+|\.ts:\d|node_modules|ext:\w|file:\/\/|postgres|pglite|syntax error|duplicate key|violates|relation "|\b(select|insert|update|delete)\b.+\b(from|into|set)\b|TypeError|RangeError/i;

/** What is wrong with an answer; empty where nothing is. */
export function faultsOf(request: FuzzRequest, answer: FuzzAnswer, scene: FuzzScene): string[] {
  const faults = headerFaults(answer);
  const isJson = answer.headers.get("content-type")?.startsWith("application/json") === true;
  const isRaw = !ENVELOPED.test(request.route.path) ||
    (answer.status === 200 && /\/(export-download|what-if)$/.test(request.route.path));
  if (answer.status >= 500 && !EXCUSED.has(answer.status)) faults.push(`status ${answer.status}`);
  if (isRaw) return [...faults, ...leaks(request, answer, scene)];
  if (isStream(answer.headers)) faults.push(...eventFaults(request, answer));
  else if (!isJson) faults.push("no JSON");
  if (request.method !== "HEAD" && isJson) faults.push(...envelopeFaults(answer));
  if (isTogether(request) && answer.status === 200) faults.push(...resultFaults(request, answer, scene));
  return [...faults, ...leaks(request, answer, scene)];
}

/** Faults of others and settings that are missing: the model's, the erasure that a call waited for. */
const EXCUSED = new Set([501, 502, 503]);

function headerFaults({ status, headers }: FuzzAnswer): string[] {
  const faults: string[] = [];
  if (!REQUEST_ID.test(headers.get("x-request-id") ?? "")) faults.push("no X-Request-Id");
  if (headers.get("x-content-type-options") !== "nosniff") faults.push("no nosniff");
  if (headers.get("referrer-policy") === null) faults.push("no Referrer-Policy");
  if (status === 503 && !/^[1-9]\d*$/.test(headers.get("retry-after") ?? "")) faults.push("no Retry-After");
  for (const name of headers.keys()) if (name === "x-injected") faults.push("a header was injected");
  return faults;
}

/** A stream begins with a state, of an object without an envelope. */
function eventFaults({ method }: FuzzRequest, { status, text }: FuzzAnswer): string[] {
  if (status !== 200) return [`a stream with status ${status}`];
  if (method === "HEAD") return [];
  const data = /^event: usage\ndata: (\{.+\})\n\n$/.exec(text)?.[1];
  return data !== undefined && "counters" in JSON.parse(data) ? [] : ["a stream without a state"];
}

function envelopeFaults({ status, text }: FuzzAnswer): string[] {
  let body: { ok?: unknown; data?: unknown; error?: Record<string, unknown> };
  try {
    body = JSON.parse(text);
  } catch {
    return ["not JSON"];
  }
  const names = Object.keys(body).sort().join();
  if (status === 200) return body.ok === true && names === "data,ok" ? [] : [`envelope ${names}`];
  const { code, message, details: _, ...rest } = body.error ?? {};
  const faults = body.ok === false && names === "error,ok" ? [] : [`envelope ${names}`];
  if (CODES[String(code)] !== status) faults.push(`code ${code} with status ${status}`);
  if (typeof message !== "string" || message === "") faults.push("no message");
  if (Object.keys(rest).length > 0) faults.push(`error has ${Object.keys(rest).join()}`);
  return faults;
}

/** Whether a request has calls with results of their own. */
function isTogether({ method, route }: FuzzRequest): boolean {
  return method === "POST" && route.path === "/api/v1/batch";
}

/** Each result is what the call would have been answered alone. */
function resultFaults(request: FuzzRequest, { text }: FuzzAnswer, scene: FuzzScene): string[] {
  const { results } = JSON.parse(text).data as { results: { status: number; replayed?: boolean }[] };
  const { calls } = JSON.parse(request.body as string) as { calls: unknown[] };
  const faults = results.length === calls.length ? [] : ["not one result for each call"];
  for (const [place, { status, replayed: _, ...result }] of results.entries()) {
    const { retryAfterSeconds, ...body } = result as { readonly retryAfterSeconds?: number };
    faults.push(...envelopeFaults({ status, headers: new Headers(), text: JSON.stringify(body) }));
    if (status >= 500 && !EXCUSED.has(status)) faults.push(`status ${status} at ${place}`);
    if (status === 503 && !(Number(retryAfterSeconds) >= 1)) faults.push("no retryAfterSeconds");
    const isForeign = scene.foreignIds.some((id) => JSON.stringify(calls[place]).includes(id));
    if (status === 200 && isForeign) faults.push("found another app's id");
  }
  return faults;
}

function leaks(request: FuzzRequest, { status, text }: FuzzAnswer, scene: FuzzScene): string[] {
  const faults: string[] = [];
  const sent = `${decoded(request.path)} ${request.body ?? ""} ${Object.values(request.headers).join(" ")}`;
  const isForeign = request.headers.authorization?.endsWith(scene.foreign.publicLive) === true;
  for (const secret of scene.secrets) if (text.includes(secret)) faults.push("shows a secret");
  if (text.includes(FOREIGN_MARK) && !isForeign) faults.push("shows another app's data");
  if (status === 200 && !isTogether(request) && scene.foreignIds.some((id) => isNamed(request, id))) {
    faults.push("found another app's id");
  }
  if (status === 200) return faults;
  if (text.includes(PROMPT_MARK)) faults.push("a refusal shows a prompt");
  const inside = INSIDE.exec(text)?.[0];
  if (inside !== undefined && !sent.includes(inside)) faults.push(`shows internals: ${inside}`);
  return faults;
}

/** Whether a request is about this id alone. */
function isNamed({ path, body }: FuzzRequest, id: string): boolean {
  return path.split("/").includes(id) || body?.includes(`"reservationId":"${id}"`) === true ||
    body?.includes(`"balanceId":"${id}"`) === true;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
