// The load generator over autocannon, told and reporting the same as our own (generator.ts). It takes several times
// the processor time for a request, so that on a small machine it, not the server, is what limits the echo: the
// ratios to the echo are then those of the design's first measurements, and milder than the default's.
import library from "npm:autocannon@9.0.0";
import { callReport, Histogram } from "./histogram.ts";
import {
  coldUserId,
  commitOf,
  isPair,
  type LoadPlan,
  type LoadReport,
  namesOf,
  requestOf,
  successOf,
  userId,
} from "./load_plan.ts";

/** What a pair of calls keeps between them on its connection. */
interface PairContext {
  reservationId?: string;
}

/** The parts of the library that are used here; it brings no types of its own. */
interface LibraryRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly setupRequest: (request: object, context: PairContext) => object;
  readonly onResponse: (status: number, body: string, context: PairContext) => void;
}

interface Instance {
  on(
    event: "response",
    listener: (client: object, status: number, bytes: number, responseTimeMs: number) => void,
  ): void;
}

const autocannon = library as unknown as (
  options: object,
  done: (error: Error | null, result: { readonly duration: number }) => void,
) => Instance;

/** What one run counted. */
class Counts {
  readonly first = new Histogram();
  readonly commit = new Histogram();
  readonly failures: Record<string, number> = {};
  firstFailure: string | null = null;
  nextCold: number;

  constructor({ firstCold }: LoadPlan) {
    this.nextCold = firstCold;
  }

  fail(kind: string, detail: string): void {
    this.failures[kind] = (this.failures[kind] ?? 0) + 1;
    this.firstFailure ??= `${kind}: ${detail.slice(0, 300)}`;
  }
}

/** Names of users, one after the other. */
function nextNameOf({ users, seed }: LoadPlan, counts: Counts): () => string {
  if (users === "cold") return () => coldUserId(counts.nextCold++);
  const names = users === "hot" ? [userId(0)] : namesOf(users, seed);
  let next = 0;
  return () => names[next++ % names.length]!;
}

/** The requests that every connection goes round. */
function requestsOf(plan: LoadPlan, counts: Counts): LibraryRequest[] {
  const headers = { authorization: plan.authorization, "content-type": "application/json" };
  const nextName = nextNameOf(plan, counts);
  const [method, path] = requestOf(plan.calls, plan.paidBy, "");
  const first: LibraryRequest = {
    method,
    path,
    headers,
    setupRequest: (request) => {
      const [, path, body] = requestOf(plan.calls, plan.paidBy, nextName());
      return body === null ? { ...request, path } : { ...request, body };
    },
    onResponse: (status, body, context) => {
      if (status !== 200) return counts.fail(String(status), body);
      const success = successOf(plan.calls);
      if (success !== null && !body.includes(success)) return counts.fail("refused", body);
      if (isPair(plan.calls)) context.reservationId = JSON.parse(body).data.reservationId;
    },
  };
  if (!isPair(plan.calls)) return [first];
  const commit: LibraryRequest = {
    method: "POST",
    path: "/api/v1/commit",
    headers,
    setupRequest: (request, context) => ({
      ...request,
      body: commitOf(plan.calls, context.reservationId ?? ""),
    }),
    onResponse: (status, body) => {
      if (status !== 200) counts.fail(String(status), body);
    },
  };
  return [first, commit];
}

/** Runs for a time; answers the seconds that it took. */
function run(plan: LoadPlan, counts: Counts, ms: number): Promise<number> {
  const answers = new WeakMap<object, number>();
  return new Promise((resolve, reject) => {
    const instance = autocannon({
      url: `http://127.0.0.1:${plan.port}`,
      connections: plan.connections,
      duration: Math.max(1, Math.round(ms / 1000)),
      ...(plan.rate === null ? {} : { overallRate: plan.rate }),
      requests: requestsOf(plan, counts),
    }, (error, result) => error ? reject(error) : resolve(result.duration));
    instance.on("response", (client, status, _bytes, responseTimeMs) => {
      const answered = answers.get(client) ?? 0;
      answers.set(client, answered + 1);
      if (status !== 200) return;
      const isCommit = isPair(plan.calls) && answered % 2 === 1;
      (isCommit ? counts.commit : counts.first).record(responseTimeMs * 1000);
    });
  });
}

if (import.meta.main) {
  const plan: LoadPlan = JSON.parse(await new Response(Deno.stdin.readable).text());
  const warmup = new Counts(plan);
  await run(plan, warmup, plan.warmupMs);
  const counts = new Counts({ ...plan, firstCold: warmup.nextCold });
  const seconds = await run(plan, counts, plan.measureMs);
  const all = new Histogram();
  all.add(counts.first);
  all.add(counts.commit);
  const report: LoadReport = {
    seconds,
    first: callReport(counts.first, seconds),
    nextCold: counts.nextCold,
    commit: isPair(plan.calls) ? callReport(counts.commit, seconds) : null,
    all: callReport(all, seconds),
    bySecond: [],
    longestPauseMs: null,
    answered: {
      first: warmup.first.count + counts.first.count,
      commit: warmup.commit.count + counts.commit.count,
    },
    failures: counts.failures,
    firstFailure: counts.firstFailure,
  };
  console.log(JSON.stringify(report));
  Deno.exit(0);
}
