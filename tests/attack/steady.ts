// A worker: the calls of a tenant who does nothing wrong, at a steady rate, on a thread of its own. It ends when it is
// asked to, and posts how its calls fared.

import { Histogram } from "../bench/histogram.ts";
import { STEADY_USERS } from "./steady_users.ts";

/** Whom the calls are of, and how many there are in a second. */
export interface SteadyLoad {
  readonly origin: string;
  readonly secretKey: string;
  readonly rate: number;
}

/** How the calls fared. Latencies are in milliseconds, from when a call was due. */
export interface SteadyReport {
  readonly calls: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** Calls that failed, by status and code, or by what cut them off. */
  readonly failures: Readonly<Record<string, number>>;
}

/** The kinds of calls, in turn. Each tenth call is one of more than 16 KiB. */
const KINDS = [reserve, commit, canUse, keyed, usage, reserve, commit, newUser, feed, batch] as const;
const TICK_MS = 5;
const TEXT = "A picture of a lighthouse. ".repeat(30);

type Call = {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  readonly key?: string;
};

let load: SteadyLoad;
let sent = 0;
let isEnding = false;
const held: string[] = [];
const failures: Record<string, number> = {};
const latencies = new Histogram();

const user = () => STEADY_USERS[sent % STEADY_USERS.length];

function reserve(): Call {
  const body = { userId: user(), event: "image.generated", prompt: TEXT };
  return { method: "POST", path: "/v1/reserve", body };
}

function commit(): Call {
  const reservationId = held.shift();
  return reservationId === undefined
    ? canUse()
    : { method: "POST", path: "/v1/commit", body: { reservationId } };
}

function canUse(): Call {
  return { method: "POST", path: "/v1/can-use", body: { userId: user(), event: "image.generated" } };
}

function keyed(): Call {
  const body = { userId: user(), event: "image.generated" };
  return { method: "POST", path: "/v1/track", body, key: crypto.randomUUID() };
}

function usage(): Call {
  return { method: "GET", path: `/v1/usage?userId=${user()}` };
}

function newUser(): Call {
  return {
    method: "POST",
    path: "/v1/track",
    body: { userId: crypto.randomUUID(), event: "image.generated" },
  };
}

function feed(): Call {
  return { method: "GET", path: `/v1/events?userId=${user()}&limit=5` };
}

function batch(): Call {
  const events = Array.from({ length: 20 }, () => ({
    userId: user(),
    event: "image.generated",
    metadata: { text: TEXT },
  }));
  return { method: "POST", path: "/v1/track/batch", body: { events } };
}

async function send(dueMs: number): Promise<void> {
  const { method, path, body, key } = KINDS[sent++ % KINDS.length]!();
  let outcome: string | null = null;
  try {
    const response = await fetch(`${load.origin}/api${path}`, {
      method,
      headers: {
        authorization: `Bearer ${load.secretKey}`,
        "content-type": "application/json",
        ...key === undefined ? {} : { "idempotency-key": key },
      },
      ...body === undefined ? {} : { body: JSON.stringify(body) },
      signal: AbortSignal.timeout(30_000),
    });
    const answer = await response.json();
    if (response.status !== 200) outcome = `${path.split("?")[0]} ${response.status} ${answer.error?.code}`;
    else if (path === "/v1/reserve") held.push(answer.data.reservationId);
  } catch (error) {
    outcome = `${path.split("?")[0]} ${(error as Error).name}`;
  }
  latencies.record((performance.now() - dueMs) * 1000);
  if (outcome !== null) failures[outcome] = (failures[outcome] ?? 0) + 1;
}

async function run(): Promise<void> {
  const startedMs = performance.now();
  const open = new Set<Promise<void>>();
  for (let due = 0; !isEnding;) {
    const passed = (performance.now() - startedMs) / 1000 * load.rate;
    for (; due < passed; due++) {
      const call = send(startedMs + due * 1000 / load.rate);
      open.add(call);
      call.finally(() => open.delete(call));
    }
    await new Promise((resolve) => setTimeout(resolve, TICK_MS));
  }
  await Promise.all(open);
  const report: SteadyReport = {
    calls: latencies.count,
    p50Ms: latencies.percentileMs(0.5),
    p99Ms: latencies.percentileMs(0.99),
    maxMs: latencies.maxMs,
    failures,
  };
  self.postMessage(report);
  self.close();
}

declare const self: {
  onmessage: (event: MessageEvent<SteadyLoad | "end">) => void;
  postMessage(report: SteadyReport): void;
  close(): void;
};

self.onmessage = ({ data }) => {
  if (data === "end") isEnding = true;
  else {
    load = data;
    run();
  }
};
