// What a service says of itself. Metrics: they parse, they count what happened, and the README and the dashboard name
// all of them and no other. Log lines: a request that meets a bug has one, and no other request has any.

import assert from "node:assert/strict";
import { makeDashboard } from "../../src/operations/metrics/dashboard.ts";
import { type Family, parsePrometheus, total } from "./prometheus.ts";
import { appWithUser, dataOf, holdImages, serviceOfFile } from "../routes/support.ts";
import { send } from "../support/test_service.ts";
import { linesOf } from "./log_lines.ts";

const service = serviceOfFile();

async function scrape(): Promise<Map<string, Family>> {
  const answer = await send(service.http, "GET", "/metrics", undefined, {});
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  return parsePrometheus(answer.body);
}

/** How much each metric grew meanwhile. */
async function growth(work: () => Promise<unknown>) {
  const before = await scrape();
  await work();
  const after = await scrape();
  return (name: string, labels: Record<string, string> = {}) =>
    total(after, name, labels) - total(before, name, labels);
}

const route = (method: string, path: string, code: string) => ({ method, route: `/api${path}`, code });

Deno.test("requests are counted by route and code", async () => {
  const app = await appWithUser(service);
  const grew = await growth(async () => {
    await holdImages(app);
    await app.call("POST", "/reserve", { userId: "u" });
    await app.call("POST", "/reserve", { userId: "u", event: "image.x" }, { key: "sk_live_wrong" });
    await app.call("POST", "/track", { userId: "u", event: "image.x", count: 1000 });
    await app.call("GET", "/users/some-user");
    await app.call("GET", "/nothing-of-ours");
    await service.admin("GET", "/apps/app_unknown");
    await send(service.http, "GET", "/api/v1/export-download?token=bad", undefined, {});
  });
  const requests = (labels: Record<string, string>) => grew("holdfast_requests_total", labels);
  assert.equal(requests(route("POST", "/v1/reserve", "ok")), 1);
  assert.equal(requests(route("POST", "/v1/reserve", "invalid_request")), 1);
  assert.equal(requests(route("POST", "/v1/reserve", "invalid_key")), 1);
  assert.equal(requests(route("POST", "/v1/track", "limit_reached")), 1);
  assert.equal(requests(route("GET", "/v1/users/:userId", "ok")), 1);
  assert.equal(requests({ method: "any", route: "none", code: "not_found" }), 1);
  assert.equal(requests(route("GET", "/admin/v1/apps/:appId", "not_found")), 1);
  assert.equal(requests(route("GET", "/v1/export-download", "invalid_or_expired_token")), 1);
  assert.equal(requests({}), 8);
  assert.equal(total(await scrape(), "holdfast_requests_in_flight"), 0);
});

Deno.test("an answer repeated under an idempotency key counts as a replay, with the code of the first answer", async () => {
  const app = await appWithUser(service);
  const call = () =>
    app.call("POST", "/track", { userId: "u", event: "image.x", count: 1000 }, {
      headers: { "idempotency-key": "k" },
    });
  const grew = await growth(async () => {
    await call();
    await call();
  });
  assert.equal(grew("holdfast_requests_total", route("POST", "/v1/track", "limit_reached")), 2);
  assert.equal(grew("holdfast_replays_total"), 1);
  assert.equal(grew("holdfast_turns_total", { command: "track" }), 1);
});

Deno.test("reserves are counted by mode, and by outcome", async () => {
  const app = await appWithUser(service);
  const reserve = (body: object, key = app.secretLive) =>
    dataOf(app.call("POST", "/reserve", { userId: "u", event: "image.x", ...body }, { key }));
  const grew = await growth(async () => {
    await reserve({});
    await reserve({ count: 2 });
    await reserve({ count: 1000 });
    await reserve({ event: "nothing.matches" });
    await reserve({ userId: "unknown" });
    await reserve({}, app.secretTest);
  });
  const outcomes = (mode: string, outcome: string) => grew("holdfast_reserves_total", { mode, outcome });
  assert.equal(outcomes("live", "allowed"), 2);
  assert.equal(outcomes("live", "limit_reached"), 1);
  assert.equal(outcomes("live", "unmatched_event"), 1);
  assert.equal(outcomes("live", "no_subscription"), 1);
  assert.equal(outcomes("test", "no_subscription"), 1);
  assert.equal(grew("holdfast_reserves_total"), 6);
});

Deno.test("one in 16 decisions and one in 16 requests is timed, always the first", async () => {
  const app = await appWithUser(service);
  const before = await scrape();
  const turns = total(before, "holdfast_turns_total", { command: "canUse" });
  assert.equal(turns, 0);
  const grew = await growth(async () => {
    for (let index = 0; index < 33; index++) {
      await dataOf(app.call("POST", "/can-use", { userId: "u", event: "image.x" }));
    }
  });
  assert.equal(grew("holdfast_turns_total", { command: "canUse" }), 33);
  assert.equal(grew("holdfast_decide_seconds_count"), 3);
  assert.equal(grew("holdfast_requests_total", route("POST", "/v1/can-use", "ok")), 33);
  const timed = total(await scrape(), "holdfast_request_seconds_count", { route: "/api/v1/can-use" });
  assert.equal(timed, 3);
});

Deno.test("appends, drains, loads and users in memory are counted; after a drain the backlog is 0", async () => {
  const app = await appWithUser(service);
  const { term } = service.serving();
  await term.flush();
  const held = await scrape();
  const grew = await growth(async () => {
    await dataOf(app.call("POST", "/subscriptions", { userId: "fresh", planId: "plan_pro" }));
    const now = await scrape();
    assert.ok(total(now, "holdfast_drain_backlog_changes") > 0);
    assert.ok(total(now, "holdfast_drain_backlog_bytes") > 0);
    assert.ok(total(now, "holdfast_drain_backlog_age_seconds") > 0);
    await term.flush();
  });
  assert.equal(grew("holdfast_append_seconds_count"), 1);
  assert.equal(grew("holdfast_append_changes_count"), 1);
  assert.equal(grew("holdfast_drain_seconds_count"), 1);
  assert.ok(grew("holdfast_append_changes_sum") > 0);
  assert.equal(grew("holdfast_drain_changes_sum"), grew("holdfast_append_changes_sum"));
  assert.ok(grew("holdfast_append_bytes_total") > 0);
  assert.equal(grew("holdfast_load_seconds_count"), 1);
  assert.equal(grew("holdfast_actors_started_total"), 1);
  const after = await scrape();
  assert.equal(total(after, "holdfast_actors"), total(held, "holdfast_actors") + 1);
  for (const name of ["backlog_changes", "backlog_bytes", "backlog_age_seconds"]) {
    assert.equal(total(after, `holdfast_drain_${name}`), 0, name);
  }
});

Deno.test("the wait for a load is timed, and the calls behind it are shown as waiting", async () => {
  const app = await appWithUser(service);
  const reservationId = await holdImages(app);
  await dataOf(app.call("POST", "/release", { reservationId }));
  const { term, store } = service.serving();
  await term.flush();
  // The next turn lets go of what was settled, so that the one after it has to load.
  await holdImages(app);
  const load = store.loadReservation.bind(store);
  const { promise, resolve } = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  store.loadReservation = async (...args) => {
    begun.resolve();
    await promise;
    return await load(...args);
  };
  try {
    const grew = await growth(async () => {
      const late = app.call("POST", "/commit", { reservationId });
      await begun.promise;
      const next = holdImages(app);
      while (term.mailboxes.waitingTurns === 0) await new Promise((next) => setTimeout(next, 1));
      const now = await scrape();
      assert.equal(total(now, "holdfast_mailboxes_busy"), 1);
      assert.equal(total(now, "holdfast_mailbox_waiting_turns"), 1);
      assert.equal(total(now, "holdfast_requests_in_flight"), 2);
      resolve();
      assert.equal((await late).body.error.code, "reservation_not_pending");
      await next;
    });
    assert.equal(grew("holdfast_mailbox_seconds_count"), 2);
    assert.equal(total(await scrape(), "holdfast_mailboxes_busy"), 0);
    assert.equal(total(await scrape(), "holdfast_mailbox_waiting_turns"), 0);
  } finally {
    store.loadReservation = load;
  }
});

Deno.test("sweeps are counted with their rows, and a failed one as failed", async () => {
  const app = await appWithUser(service);
  await holdImages(app);
  service.clock.advance(3_600_000);
  const grew = await growth(async () => {
    assert.equal((await service.admin("POST", "/sweep")).body.data.expiredReservations > 0, true);
    const { database } = service.serving();
    const query = database.query.bind(database);
    database.query = () => Promise.reject(new Error("A test broke the sweep"));
    await service.admin("POST", "/move-history").finally(() => database.query = query);
  });
  for (const sweep of ["due", "idempotency", "history", "prompt_logs", "erasures"]) {
    assert.equal(grew("holdfast_sweeps_total", { sweep, result: "finished" }), 1, sweep);
  }
  assert.equal(grew("holdfast_sweeps_total", { sweep: "history", result: "failed" }), 1);
  assert.ok(grew("holdfast_sweep_rows_total", { sweep: "due" }) >= 1);
  const at = total(await scrape(), "holdfast_sweep_finished_timestamp_seconds", { sweep: "due" });
  assert.equal(at, service.clock.now() / 1000);
});

Deno.test("a term that a fault ends is counted, and the gauges of a term have no sample without one", async () => {
  const grew = await growth(() => service.restart());
  assert.equal(grew("holdfast_terms_total"), 1);
  assert.equal(grew("holdfast_terms_lost_total"), 1);
  service.serving().term.fail(new Error("A test ended the term"));
  const without = await scrape();
  assert.equal(total(without, "holdfast_serving"), 0);
  assert.deepEqual(without.get("holdfast_drain_backlog_changes")?.samples, []);
  assert.deepEqual(without.get("holdfast_beat_age_seconds")?.samples, []);
  await service.service.ready();
  const serving = await scrape();
  assert.equal(total(serving, "holdfast_serving"), 1);
  assert.equal(total(serving, "holdfast_state", { state: "serving" }), 1);
  assert.equal(total(serving, "holdfast_state"), 1);
});

Deno.test("a bug is logged once, with the request's id and without the key in its message", async () => {
  const app = await service.newApp();
  const { directory } = service.serving().term;
  const runById = directory.runById;
  directory.runById = () => {
    throw new TypeError(`cannot read "Bearer ${app.secretLive}"`);
  };
  const lines = await linesOf(async () => {
    const headers = { "x-request-id": "request-9" };
    const body = { userId: "u", event: "image.x", prompt: "a prompt" };
    const answer = await app.call("POST", "/reserve", body, { headers }).finally(() => {
      directory.runById = runById;
    });
    assert.equal(answer.status, 500);
    assert.equal(answer.headers.get("x-request-id"), "request-9");
  });
  assert.equal(lines.length, 1);
  const [{ level, requestId, error, stack }] = lines as [Record<string, string>];
  assert.deepEqual([level, requestId, error], ["error", "request-9", 'cannot read "Bearer ***"']);
  assert.match(stack ?? "", /dispatch\.ts/);
  const text = JSON.stringify(lines);
  for (const secret of [app.secretLive, "a prompt"]) assert.ok(!text.includes(secret));
});

Deno.test("neither a refusal nor an answer writes a line at the default level", async () => {
  const app = await service.newApp();
  const lines = await linesOf(async () => {
    await app.call("GET", "/plans");
    await app.call("GET", "/plans", undefined, { key: "sk_live_wrong" });
    await app.call("POST", "/reserve", "no JSON");
  });
  assert.deepEqual(lines, []);
});

const NAMES = /\b(?:holdfast|process)_[a-z_]+/g;

Deno.test("the README names every metric with its type and labels, and no other", async () => {
  const families = await scrape();
  const readme = await Deno.readTextFile(new URL("../../src/operations/metrics/README.md", import.meta.url));
  const rows = readme.matchAll(/^\| `((?:holdfast|process)_\w+)` *\| (\w+) *\| *(?:`([\w ]+)`)? *\|/gm);
  const named = new Map(
    Array.from(
      rows,
      ([, name, type, labels]) => [name as string, { type, labels: labels?.split(" ") ?? [] }],
    ),
  );
  assert.deepEqual([...named.keys()].sort(), [...families.keys()].sort());
  for (const { name, type, samples } of families.values()) {
    assert.equal(named.get(name)?.type, type, name);
    const labels = new Set(samples.flatMap((sample) => Object.keys(sample.labels)));
    labels.delete("le");
    assert.deepEqual([...labels].sort(), named.get(name)?.labels.toSorted(), name);
  }
  const [alerts = ""] = /```yaml[^`]+```/.exec(readme) ?? [];
  const asked = alerts.match(NAMES) ?? [];
  assert.ok(asked.length >= 10);
  for (const name of asked) assertExists(families, name);
});

Deno.test("every metric on the dashboard exists, and the dashboard shows every metric", async () => {
  const families = await scrape();
  const expressions = makeDashboard().panels.flatMap((panel) => "targets" in panel ? panel.targets : []).map((
    { expr },
  ) => expr);
  assert.ok(expressions.length > 30);
  const shown = new Set<string>();
  for (const expression of expressions) {
    const names = expression.match(NAMES) ?? [];
    assert.ok(names.length > 0, expression);
    for (const name of names) shown.add(assertExists(families, name));
  }
  assert.deepEqual([...families.keys()].filter((name) => !shown.has(name)), []);
});

/** The family that a name of a query belongs to. */
function assertExists(families: ReadonlyMap<string, Family>, name: string): string {
  const base = name.replace(/_(bucket|sum|count)$/, "");
  const family = families.get(name) ?? families.get(base);
  assert.ok(family !== undefined, `there is no metric ${name}`);
  assert.equal(family.type === "histogram", family.name !== name, `${name} is asked as what it is`);
  return family.name;
}
