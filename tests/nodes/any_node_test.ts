// Every call may go to any node, and every node gives the same answer to the letter. On a server only.

import assert from "node:assert/strict";
import type { Recorded } from "../../routes/reference/examples.ts";
import { makeTour } from "../routes/reference/tour.ts";
import { examples } from "../routes/reference/document.ts";
import { CATALOG } from "../routes/support.ts";
import { type Answer, send, type TestApp } from "../support/test_service.ts";
import { testServerUrl } from "../support/test_store.ts";
import { Nodes, type TestMember } from "./support.ts";

const ignore = testServerUrl() === null;
const TWINS = 15;

let nodes: Nodes;
if (!ignore) {
  Deno.test.beforeAll(async () => {
    nodes = await Nodes.open({ nodes: 3, fronts: 1 });
  });
  Deno.test.afterAll(() => nodes[Symbol.asyncDispose]());
}

/** Makes an app with a user "u", and nodes in three roles: the owner, another owner, and a front. */
async function appOfThree(
  workspace: Record<string, unknown> = {},
  catalog: object = CATALOG,
): Promise<{ app: TestApp; takers: TestMember[] }> {
  const app = await (nodes.all[0] as TestMember).newApp(catalog, workspace);
  const made = await app.call("POST", "/subscriptions", { userId: "u", planId: "plan_pro" });
  assert.equal(made.status, 200);
  return { app, takers: [nodes.ownerOf(app), nodes.strangerTo(app), nodes.fronts[0] as TestMember] };
}

/** What callers see of an answer, without ids of the single call. */
function shown({ status, headers, body }: Answer): unknown {
  const seen = Object.fromEntries([...headers].filter(([name]) => name !== "x-request-id"));
  const text = JSON.stringify(body).replaceAll(headers.get("x-request-id") ?? "", "");
  return { status, seen, text };
}

function answerOf(recorded: Recorded | undefined): { data: { erasures: number } } {
  return recorded?.success?.answer as { data: { erasures: number } };
}

async function assertSame(takers: readonly TestMember[], ask: (node: TestMember) => Promise<Answer>) {
  const [first, ...others] = await Promise.all(takers.map(ask));
  for (const other of others) assert.deepEqual(shown(other), shown(first as Answer));
  return first as Answer;
}

Deno.test({
  name: "a tour through every call gets the same answers, to the letter, when each call goes to another node",
  ignore,
  fn: async () => {
    let turn = 0;
    const tour = await makeTour(async (clock, features, ids) => {
      const parts = { ...(clock && { clock }), ...(features && { features }), ...(ids && { ids }) };
      const others = await Nodes.open({ nodes: 3, fronts: 1, ...parts });
      return others.asService(() => others.all[turn++ % others.all.length] as TestMember);
    });
    // The erasure may have run by itself before the sweep; it never runs twice.
    const swept = answerOf(tour.sweep);
    assert.ok(swept.data.erasures <= 1, String(swept.data.erasures));
    swept.data.erasures = answerOf(examples.sweep).data.erasures;
    // Each node writes the failed requests that it answered, within seconds: another one may not list them yet.
    const own = { listRequests: tour.listRequests, listUnknownKeys: tour.listUnknownKeys };
    assert.ok(own.listRequests !== undefined && own.listUnknownKeys !== undefined);
    assert.deepEqual({ ...tour, ...own }, { ...examples, ...own });
    assert.ok(turn > 60, String(turn));
  },
});

Deno.test({
  name: "calls that are refused before their decision are refused equally by every node",
  ignore,
  fn: async () => {
    const { app, takers } = await appOfThree();
    const strays: readonly [method: string, path: string, body?: unknown, key?: string][] = [
      ["GET", "/api/v1/nothing"],
      ["PUT", "/api/v1/reserve"],
      ["GET", "/api/v1/usage?userId=u", undefined, "sk_live_unknown"],
      ["GET", "/api/v1/usage?userId=u", undefined, app.publicLive],
      ["GET", "/api/v1/usage"],
      ["POST", "/api/v1/reserve", { userId: "u", event: "image.x", count: -1 }],
      ["POST", "/api/v1/reserve", "{"],
      ["POST", "/api/v1/reserve", "[".repeat(200_000) + "]".repeat(200_000)],
      ["POST", "/api/v1/track", { userId: "u", event: "image.x", metadata: { x: "y".repeat(1024 * 1024) } }],
      ["POST", "/api/v1/compose", { type: "none", userId: "u" }],
      ["GET", "/api/v1/export-download?token=wrong"],
      ["GET", "/api/admin/v1/workspaces"],
      ["GET", "/api/admin/v1/apps/app_none/keys", undefined, app.secretLive],
      ["OPTIONS", "/api/v1/plans"],
    ];
    for (const [method, path, body, key = app.secretLive] of strays) {
      const { status } = await assertSame(takers, ({ http }) => send(http, method, path, body, { key }));
      assert.ok(method === "OPTIONS" || status >= 400, `${method} ${path}: ${status}`);
    }
  },
});

Deno.test({
  name: "a body of the largest size is the same call through every node",
  ignore,
  fn: async () => {
    const { app, takers } = await appOfThree();
    const pairs = Array.from({ length: 500 }, (_, place) => ({
      from: `${place}`.padEnd(200, "é").slice(0, 200),
      to: `t${place}`.padEnd(200, "ü").slice(0, 200),
    }));
    const spaces = " ".repeat(
      1024 * 1024 - 2 - new TextEncoder().encode(JSON.stringify({ pairs, dryRun: true })).length,
    );
    const text = JSON.stringify({ pairs, dryRun: true }).replace(/}$/, `${spaces}}`);
    const { status, body } = await assertSame(
      takers,
      (node) => node.ask(app.secretLive, "POST", "/customers/alias/batch", text),
    );
    assert.deepEqual([status, body.data?.results?.length], [200, 500], JSON.stringify(body).slice(0, 300));
  },
});

Deno.test({
  name: "an idempotent call sent to two nodes at once runs once, and both return its answer byte for byte",
  ignore,
  fn: async () => {
    const { app, takers } = await appOfThree();
    const body = {
      userId: "u",
      event: "image.x",
      count: 1,
      metadata: { odd: "\u2028 \u0000é".replace("\u0000", "") },
    };
    for (let round = 0; round < TWINS; round++) {
      const headers = { "idempotency-key": `twin-${round}`, "x-request-id": `r${round}` };
      const twins = await Promise.all(
        [...takers, ...takers].map((node) => node.ask(app.secretLive, "POST", "/track", body, { headers })),
      );
      assert.equal(new Set(twins.map(({ body }) => JSON.stringify(body))).size, 1);
      assert.deepEqual(twins.map(({ status }) => status), twins.map(() => 200));
      const replayed = twins.filter(({ headers }) => headers.get("idempotent-replayed") === "true");
      assert.equal(replayed.length, twins.length - 1);
      const prefixes = twins.map(({ headers }) => headers.get("idempotency-key-prefix"));
      assert.equal(
        prefixes.filter((prefix) => prefix !== null).length,
        1,
        "the look-up's answer has it, from any node",
      );
    }
    const { body: usage } = await assertSame(
      takers,
      (node) => node.ask(app.secretLive, "GET", "/usage?userId=u"),
    );
    assert.equal(usage.data.counters[0].count, TWINS);
    const other = { headers: { "idempotency-key": "twin-0" } };
    const conflict = await assertSame(
      takers,
      (node) => node.ask(app.secretLive, "POST", "/track", { ...body, count: 2 }, other),
    );
    assert.equal(conflict.body.error.code, "idempotency_conflict");
  },
});

Deno.test({
  name: "the rate limit of a key is one bucket over all nodes",
  ignore,
  fn: async () => {
    const rateLimit = { perSecond: 0.1, burst: 12 };
    const { app, takers } = await appOfThree({}, {
      ...CATALOG,
      settings: { ...CATALOG.settings, rateLimit },
    });
    const answers = await Promise.all(
      Array.from(
        { length: 30 },
        (_, place) =>
          (takers[place % 3] as TestMember).ask(
            app.secretLive,
            place % 5 === 0 ? "POST" : "GET",
            place % 5 === 0 ? "/reserve" : "/usage?userId=u",
            place % 5 === 0 ? {} : undefined,
          ),
      ),
    );
    const refused = answers.filter(({ status }) => status === 429);
    // The subscription was the first call of the key.
    assert.equal(answers.length - refused.length, 11);
    for (const { headers, body } of refused) {
      assert.equal(body.error.code, "rate_limited");
      assert.ok(Number(headers.get("retry-after")) >= 1);
    }
    const { status } = await assertSame(takers, (node) => node.ask(app.secretLive, "GET", "/plans"));
    assert.equal(status, 429);
  },
});

Deno.test({
  name: "two hundred reserves through all nodes at once spend a quota to the last unit and not one more",
  ignore,
  fn: async () => {
    const { app, takers } = await appOfThree();
    const body = { userId: "u", event: "image.x" };
    const answers = await Promise.all(
      Array.from(
        { length: 200 },
        (_, place) => (takers[place % 3] as TestMember).ask(app.secretLive, "POST", "/reserve", body),
      ),
    );
    assert.equal(answers.filter(({ body }) => body.data?.allowed === true).length, 100);
    assert.ok(answers.every(({ status }) => status === 200));
  },
});
