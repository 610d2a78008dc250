// Replays against a real service: whatever the way was (refusals, retries, an interruption), the counters are the
// sums of the events, and the summary says what happened.

import assert from "node:assert/strict";
import { EXIT } from "../../src/cli/shell.ts";
import { replay, type ReplayPlan, Tally } from "./replay_run.ts";
import { runReplay } from "./replay.ts";
import { type TraceRow } from "./trace.ts";
import type { TestApp } from "../support/test_service.ts";
import { proveCounters } from "./counter_proof.ts";
import {
  runTask,
  serve,
  type ServedService,
  spawnTask,
  testShell,
  withFile,
  withService,
} from "../tasks/support.ts";

const NEVER = new AbortController().signal;

function catalogOf(quota: number) {
  const group = { label: "Tokens", unit: "tokens", quota, matches: [{ event: "chat.*" }] };
  return {
    plans: [{
      id: "plan_chat",
      name: "Chat",
      rank: 1,
      period: { type: "monthly", anchor: "calendar" },
      limits: [{ id: "lg_tokens", ...group }],
    }],
  };
}

/** Rows 10 ms apart; sizes that differ, so that a request counted for another user would show. */
function rowsOf(count: number): TraceRow[] {
  return Array.from({ length: count }, (_, index) => ({
    index,
    atMs: 1_700_000_000_000 + index * 10,
    contextTokens: (index * 37) % 101,
    generatedTokens: (index * 11) % 13,
  }));
}

function traceText(rows: readonly TraceRow[]): string {
  const lines = rows.map(({ atMs, contextTokens, generatedTokens }) =>
    `${new Date(atMs).toISOString().replace("T", " ").replace("Z", "")},${contextTokens},${generatedTokens}`
  );
  return ["TIMESTAMP,ContextTokens,GeneratedTokens", ...lines, ""].join("\r\n");
}

async function prove(service: ServedService, app: TestApp, prefix = "user_") {
  await service.serving().term.flush();
  const proof = await proveCounters(
    service.store.database,
    prefix,
    async (userId) => (await app.call("GET", `/usage?userId=${userId}`)).body.data.counters,
  );
  assert.deepEqual(proof.differences, []);
  assert.equal(proof.openHolds, 0);
  return proof;
}

function planOf(
  service: { url: string },
  app: TestApp,
  tally: Tally,
  changes: Partial<ReplayPlan> = {},
): ReplayPlan {
  return {
    url: service.url,
    key: app.secretLive,
    users: 7,
    prefix: "user_",
    event: "chat.code",
    speed: null,
    connections: 16,
    retriesMax: 5,
    runId: crypto.randomUUID(),
    stop: NEVER,
    onRetry: () => tally.retried++,
    ...changes,
  };
}

async function* streamOf(rows: readonly TraceRow[]): AsyncGenerator<TraceRow> {
  yield* rows;
}

async function subscribed(service: ServedService, quota = 1_000_000): Promise<TestApp> {
  const app = await service.newApp(catalogOf(quota));
  for (let user = 0; user < 7; user++) {
    await app.call("POST", "/subscriptions", { userId: `user_${user}`, planId: "plan_chat" });
  }
  return app;
}

Deno.test("a replay as a program counts for every user exactly what the trace says", async () => {
  await withService(async (service) => {
    const app = await service.newApp(catalogOf(1_000_000));
    const rows = rowsOf(150);
    await withFile("trace.csv", traceText(rows), async (file) => {
      const args = [file, "--key", app.secretLive, "--url", service.url, "--users", "7"];
      const outcome = await runTask("replay", [...args, "--plan", "plan_chat", "--json"]);
      assert.equal(outcome.code, EXIT.ok, outcome.err);
      const summary = JSON.parse(outcome.out);
      const tokens = rows.reduce((sum, row) => sum + row.contextTokens + row.generatedTokens, 0);
      assert.deepEqual(
        [summary.sent, summary.allowed, summary.committed, summary.failed, summary.tokens.committed],
        [150, 150, 150, 0, tokens],
      );
      assert.ok(summary.latency.reserve.p50Ms <= summary.latency.reserve.maxMs);
    });
    const proof = await prove(service, app);
    assert.equal(proof.users, 7);
    for (let user = 0; user < 7; user++) {
      const own = rows.filter(({ index }) => index % 7 === user);
      const sum = own.reduce((total, row) => total + row.contextTokens + row.generatedTokens, 0);
      const usage = await app.call("GET", `/usage?userId=user_${user}`);
      assert.equal(usage.body.data.counters[0].count, sum);
    }
  });
});

Deno.test("refusals are counted by reason and are no failure", async () => {
  await withService(async (service) => {
    const app = await service.newApp(catalogOf(400));
    await withFile("trace.csv", traceText(rowsOf(120)), async (file) => {
      const args = [file, "--key", app.secretLive, "--url", service.url, "--users", "7", "--plan", "Chat"];
      const { shell, out } = testShell();
      assert.equal(await runReplay(args, shell, NEVER), EXIT.ok);
      const [, refused = ""] = out().match(/Refused: limit_reached +(\d+)/) ?? [];
      const [, allowed = ""] = out().match(/Allowed +(\d+)/) ?? [];
      assert.ok(Number(refused) > 0);
      assert.equal(Number(refused) + Number(allowed), 120);
      assert.equal((await prove(service, app)).totals.lg_tokens?.events, Number(allowed));
    });
  });
});

Deno.test("a call with a lost answer is sent again with its key and counts once", async () => {
  await withService(async (service) => {
    const app = await subscribed(service);
    const seen = new Set<string>();
    const flaky = serve(async (request) => {
      const key = request.headers.get("idempotency-key") ?? "";
      const isFirst = !seen.has(key);
      seen.add(key);
      if (isFirst && seen.size % 3 === 0) return later();
      const answer = await service.http.fetch(request);
      // The service did the work, but its caller never learns.
      return isFirst && seen.size % 3 === 1 ? later() : answer;
    });
    const tally = new Tally();
    await replay(planOf(flaky, app, tally), streamOf(rowsOf(200)), tally);
    await flaky.close();
    assert.deepEqual([tally.sent, tally.committed, tally.failed], [200, 200, 0]);
    assert.ok(tally.retried > 100);
    const proof = await prove(service, app);
    assert.deepEqual([proof.totals.lg_tokens?.events, proof.totals.lg_tokens?.taken], [
      200,
      tally.committedTokens,
    ]);
  });
});

function later(): Response {
  return new Response("{}", { status: 503, headers: { "retry-after": "0" } });
}

Deno.test("retries are bounded, and a failed call is counted by its code and makes the exit status 1", async () => {
  let calls = 0;
  const body = JSON.stringify({ ok: false, error: { code: "unavailable", message: "Not now" } });
  const away = serve(() => {
    calls++;
    return new Response(body, { status: 503, headers: { "retry-after": "0" } });
  });
  const tally = new Tally();
  const plan = planOf(away, { secretLive: "sk_live_x" } as TestApp, tally, { retriesMax: 3 });
  await replay(plan, streamOf(rowsOf(5)), tally);
  assert.deepEqual([calls, tally.retried, [...tally.failedByCode]], [20, 15, [["reserve unavailable", 5]]]);
  await away.close();

  await withService(async (service) => {
    const app = await subscribed(service);
    await withFile("trace.csv", traceText(rowsOf(3)), async (file) => {
      const { shell, out } = testShell();
      const args = [file, "--key", app.secretLive, "--url", service.url, "--event", "chat.*"];
      assert.equal(await runReplay(args, shell, NEVER), EXIT.refused);
      assert.match(out(), /Failed: reserve invalid_request +3\n/);
      assert.match(out(), /reserve invalid_request +event: must/);
    });
  });
});

Deno.test("a multiple of real time is kept", async () => {
  await withService(async (service) => {
    const app = await subscribed(service);
    const tally = new Tally();
    await replay(planOf(service, app, tally, { speed: 2 }), streamOf(rowsOf(101)), tally);
    assert.equal(tally.committed, 101);
    assert.ok(tally.durationMs >= 495, `${tally.durationMs} ms for a second at double speed`);
  });
});

Deno.test("Ctrl-C ends a replay with every hold settled and the summary so far", async () => {
  await withService(async (service) => {
    const app = await subscribed(service);
    await withFile("trace.csv", traceText(rowsOf(10_000)), async (file) => {
      const args = [file, "--url", service.url, "--users", "7", "--speed", "1", "--json"];
      const { process, outcome } = await spawnTask("replay", args, { HOLDFAST_KEY: app.secretLive });
      const isUnderWay = async () => (await app.call("GET", "/events?limit=1")).body.data.events.length > 0;
      for (let tries = 0; tries < 400 && !(await isUnderWay()); tries++) await pause(50);
      process.kill("SIGINT");
      const { code, out, err } = await outcome;
      assert.equal(code, EXIT.interrupted, err);
      assert.match(err, /Stopping: waiting for the calls in flight/);
      const summary = JSON.parse(out);
      assert.equal(summary.isComplete, false);
      assert.ok(summary.sent > 0 && summary.sent < 10_000);
      assert.equal((await prove(service, app)).totals.lg_tokens?.events, summary.committed);
    });
  });
});

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

Deno.test("a broken trace, a wrong key and an unreachable service send no call", async () => {
  await withService(async (service) => {
    const app = await subscribed(service);
    const faulty = traceText(rowsOf(50)) + "2023-11-16 18:17:03,1,x\r\n";
    await withFile(
      "faulty.csv",
      faulty,
      (broken) =>
        withFile("trace.csv", traceText(rowsOf(50)), async (file) => {
          const { url } = service;
          const rows: [number, string[], RegExp][] = [
            [
              EXIT.refused,
              [broken, "--key", app.secretLive, "--url", url],
              /, line 52: GeneratedTokens.*\nNothing was/,
            ],
            [EXIT.refused, [file, "--key", "sk_live_unknown", "--url", url], /^Refused \(invalid_key\)/],
            [
              EXIT.refused,
              [file, "--key", app.secretLive, "--url", url, "--plan", "none"],
              /^Cannot subscribe user_0/,
            ],
            [EXIT.usage, [file, "--key", app.publicLive, "--url", url], /^--key: is not a secret key/],
            [EXIT.usage, [file, "--url", url], /^--key: required/],
            [EXIT.usage, ["/none.csv", "--key", app.secretLive], /^Cannot read/],
            [EXIT.usage, [file, "--speed", "0"], /Must be "max" or a number above 0$/],
            [EXIT.usage, [file, "--users", "0"], /Must be a whole number from 1/],
            [
              EXIT.unreachable,
              [file, "--key", app.secretLive, "--url", "http://127.0.0.1:9"],
              /^Cannot reach the/,
            ],
          ];
          for (const [code, args, message] of rows) {
            const { shell, out, err } = testShell();
            assert.equal(await runReplay(args, shell, NEVER), code, args.join(" "));
            assert.match(err(), message);
            assert.equal(out(), "");
          }
        }),
    );
    assert.deepEqual((await app.call("GET", "/events")).body.data.events, []);
  });
});
