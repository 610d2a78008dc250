// One fuzzing: bursts of requests to every route, each answer judged, the tables judged after each burst, and what
// was refused sent once more to see that it changes nothing.

import { textOf } from "../support/event_stream.ts";
import assert from "node:assert/strict";
import { Random } from "../model/random.ts";
import { bookFaults, changedTables, digestOf } from "./books.ts";
import { faultsOf, type FuzzAnswer } from "./oracle.ts";
import { curlOf, type FuzzRequest, Requests, routesOf } from "./requests.ts";
import { type FuzzScene, TIGHT_USER } from "./scene.ts";

/** Something that went wrong, and the request where one alone is to blame. */
interface Finding {
  readonly text: string;
  readonly request: FuzzRequest | null;
  readonly answer: FuzzAnswer | null;
}

/** What a fuzzing did. */
export interface FuzzReport {
  requests: number;
  bursts: number;
  readonly statuses: Map<number, number>;
  /** Routes that were answered with success at least once. */
  readonly succeeded: Set<string>;
  readonly findings: Finding[];
}

const BURST_REQUESTS = 150;
const AT_A_TIME = 8;
const RESENT_MAX = 60;
const POOL_MAX = 150;
const ID_MEMBER =
  /"(reservationId|balanceId|eventId|runId|jobId|keyId|webhookId|messageId)":"([^"]{1,200})"/g;

/** Runs bursts until stopped or until something is found. */
export async function fuzz(
  scene: FuzzScene,
  seed: number,
  goesOn: (report: FuzzReport) => boolean,
): Promise<FuzzReport> {
  const random = new Random(seed);
  const requests = new Requests(random, scene);
  const report: FuzzReport = {
    requests: 0,
    bursts: 0,
    statuses: new Map(),
    succeeded: new Set(),
    findings: [],
  };
  while (report.findings.length === 0 && goesOn(report)) {
    const refused = await burst(scene, requests, report);
    report.findings.push(...(await bookFaults(scene)).map((text) => ({ text, request: null, answer: null })));
    if (report.findings.length === 0) report.findings.push(...await resend(scene, refused));
    report.bursts++;
  }
  return report;
}

/** Sends a burst, some requests at a time; answers those that were refused. */
async function burst(scene: FuzzScene, requests: Requests, report: FuzzReport): Promise<FuzzRequest[]> {
  const refused: FuzzRequest[] = [];
  for (let sent = 0; sent < BURST_REQUESTS; sent += AT_A_TIME) {
    const batch = Array.from({ length: AT_A_TIME }, () => requests.next());
    const answers = await Promise.all(batch.map((request) => send(scene, request)));
    for (const [at, request] of batch.entries()) {
      const answer = answers[at] as FuzzAnswer;
      for (const text of faultsOf(request, answer, scene)) report.findings.push({ text, request, answer });
      report.requests++;
      report.statuses.set(answer.status, (report.statuses.get(answer.status) ?? 0) + 1);
      if (answer.status === 200) report.succeeded.add(`${request.method} ${request.route.path}`);
      if (answer.status >= 400 && answer.status < 429) refused.push(request);
      // A commit may pass a quota, so holds of the tight user are never committed.
      if (request.body?.includes(TIGHT_USER) !== true) learn(scene, answer);
    }
  }
  return refused;
}

/** Sends a request to the service in this process. */
export async function send({ service }: FuzzScene, request: FuzzRequest): Promise<FuzzAnswer> {
  const { method, path, headers, body } = request;
  const bytes = body === null ? null : new TextEncoder().encode(body);
  const length = bytes === null ? {} : { "content-length": String(bytes.byteLength) };
  const init = { method, headers: latin(headers, length), body: bytes };
  const response = await service.http.fetch(new Request(`http://service.test${path}`, init));
  await breathe();
  return { status: response.status, headers: response.headers, text: await textOf(response) };
}

/** Lets timers run, as every arrival at a port does: a row of refusals in one process would keep the lease's beat out. */
export function breathe(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}

/** Header values as bytes, one character each: a header holds no other text. */
function latin(
  headers: Readonly<Record<string, string>>,
  more: Record<string, string>,
): Record<string, string> {
  const bytes = (text: string) =>
    [...new TextEncoder().encode(text)].map((byte) => String.fromCharCode(byte)).join("");
  const entries = Object.entries(headers).map(([name, value]) => [name, bytes(value)]);
  return { ...Object.fromEntries(entries), ...more };
}

/** Ids that answers name are used by later requests. */
function learn({ pools }: FuzzScene, { status, text }: FuzzAnswer): void {
  if (status !== 200) return;
  for (const [, name = "", id = ""] of text.matchAll(ID_MEMBER)) {
    const pool = pools.get(name);
    if (pool === undefined || pool.includes(id)) continue;
    pool.push(id);
    if (pool.length > POOL_MAX) pool.splice(0, 1);
  }
}

/** Sends refused requests again, without their idempotency keys: whatever is refused again left no trace. */
async function resend(scene: FuzzScene, refused: readonly FuzzRequest[]): Promise<Finding[]> {
  let left = refused.slice(0, RESENT_MAX).map((request) => {
    const { "idempotency-key": _, ...headers } = request.headers;
    return { ...request, headers };
  });
  while (left.length > 0) {
    const before = await digestOf(scene);
    const again: FuzzRequest[] = [];
    for (const request of left) {
      const { status } = await send(scene, request);
      if (status >= 400 && status < 429) again.push(request);
    }
    // A request that succeeds now may have changed anything: the rest is tried without it.
    if (again.length < left.length) {
      left = again;
      continue;
    }
    const changed = changedTables(before, await digestOf(scene));
    if (changed.length === 0) return [];
    if (left.length === 1) {
      return [{ text: `Refused, and changed ${changed.join()}`, request: left[0] ?? null, answer: null }];
    }
    const half = left.slice(0, Math.ceil(left.length / 2));
    const inHalf = await resend(scene, half);
    if (inHalf.length > 0) return inHalf;
    left = left.slice(half.length);
  }
  return [];
}

/** Fuzzes for some bursts, and fails where something was found or hardly a request was accepted. */
export async function assertNothingFound(scene: FuzzScene, seed: number, burstsMax: number): Promise<void> {
  const report = await fuzz(scene, seed, ({ bursts }) => bursts < burstsMax);
  const found = report.findings.map(({ text, request, answer }) =>
    `${text}\n${request === null ? "" : curlOf(request, null)}\n${answer?.text ?? ""}`
  );
  assert.deepEqual(found, [], `seed ${seed}`);
  // A generator that only made refusals would find nothing: most routes must have been passed.
  const names = routesOf(scene).filter(({ method }) => method !== "OPTIONS")
    .map(({ method, path }) => `${method} ${path}`);
  const missed = names.filter((name) => !report.succeeded.has(name));
  assert.ok(missed.length < names.length / 2, `Never answered with success: ${missed.join(", ")}`);
  assert.ok((report.statuses.get(503) ?? 0) < report.requests / 20);
}
