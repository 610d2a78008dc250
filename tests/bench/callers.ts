// The load of many callers in one process: each asks again as soon as it has its answer. They share one client: that of
// the service, or one of Redis, which pipelines by itself. A process of its own; reads a plan from stdin and prints a report.
import { createClient } from "../../src/client/client.ts";
import { evalOf } from "./contestants/redis.ts";
import { callReport, Histogram } from "./histogram.ts";
import { type CallReport, EVENTS, namesOf } from "./load_plan.ts";

/** What the callers ask. */
export interface CallersPlan {
  readonly asked: "holdfast" | "redis";
  /** Where the client of the service sends each call by itself: the most connections that it may use. Null: together. */
  readonly connections: number | null;
  readonly port: number;
  readonly authorization: string;
  readonly callers: number;
  readonly warmupMs: number;
  readonly measureMs: number;
  readonly seed: number;
}

/** What they report. */
export interface CallersReport {
  readonly report: CallReport;
  /** All calls, measured or not. */
  readonly answered: number;
  readonly failed: number;
  readonly firstFailure: string | null;
}

/** Asks once; rejects where the reserve is not allowed. */
type Ask = (userId: string) => Promise<void>;

/** A `fetch` that has at most so many requests under way; the others wait in order. */
function atMost(connections: number): typeof fetch {
  let free = connections;
  const waiting: (() => void)[] = [];
  return async (input, init) => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      const response = await fetch(input, init);
      // A connection is free once the body of its answer was read.
      return new Response(await response.arrayBuffer(), response);
    } finally {
      const next = waiting.shift();
      if (next === undefined) free += 1;
      else next();
    }
  };
}

function holdfastOf({ port, authorization, connections }: CallersPlan): Ask {
  const apiKey = authorization.replace("Bearer ", "");
  const singly = connections === null ? {} : { coalesce: false, fetch: atMost(connections) };
  const client = createClient({ apiKey, baseUrl: `http://127.0.0.1:${port}`, ...singly });
  return async (userId) => {
    const { allowed } = await client.reserve(userId, EVENTS.plan, undefined, undefined, { count: 1 });
    if (!allowed) throw new Error("refused");
  };
}

async function redisOf({ port }: CallersPlan): Promise<Ask> {
  const reserve = await evalOf(port);
  let id = 0;
  return async (userId) => {
    const reservationId = `rsv_${Date.now().toString(36)}${(++id).toString(36)}`;
    const expiresAt = new Date(Date.now() + 600_000).toISOString();
    const { allowed } = await reserve({ userId, event: EVENTS.plan, count: 1, reservationId, expiresAt });
    if (!allowed) throw new Error("refused");
  };
}

async function run(plan: CallersPlan): Promise<CallersReport> {
  const ask = plan.asked === "redis" ? await redisOf(plan) : holdfastOf(plan);
  const names = namesOf("spread", plan.seed);
  const times = new Histogram();
  const from = performance.now() + plan.warmupMs;
  const until = from + plan.measureMs;
  let next = 0;
  let answered = 0;
  let failed = 0;
  let firstFailure: string | null = null;
  const call = async () => {
    for (let begun = performance.now(); begun < until; begun = performance.now()) {
      try {
        await ask(names[next++ % names.length] as string);
        answered += 1;
        const now = performance.now();
        if (begun >= from && now < until) times.record((now - begun) * 1000);
      } catch (error) {
        failed += 1;
        firstFailure ??= String(error);
      }
    }
  };
  await Promise.all(Array.from({ length: plan.callers }, call));
  return { report: callReport(times, plan.measureMs / 1000), answered, failed, firstFailure };
}

if (import.meta.main) {
  const plan: CallersPlan = JSON.parse(await new Response(Deno.stdin.readable).text());
  console.log(JSON.stringify(await run(plan)));
  Deno.exit(0);
}
