// Gateway streams while the user's cell moves: a front passes them on to the end, holds are prolonged and committed once
// wherever the cell is, and no quota is exceeded. A call is fitted by the owner. On a server only.

import assert from "node:assert/strict";
import { GATEWAY_LIMITS } from "../../src/process/gateway_limits.ts";
import { MODEL_KEY } from "../routes/compose_support.ts";
import { CATALOG } from "../routes/gateway_support.ts";
import { limitsOfFile } from "../support/limits.ts";
import { chatChunk, eventOf, ModelServer } from "../support/model_server.ts";
import type { TestApp } from "../support/test_service.ts";
import { testServerUrl } from "../support/test_store.ts";
import { Nodes, type TestMember } from "./support.ts";
import { until } from "../support/until.ts";

const ignore = testServerUrl() === null;

limitsOfFile(GATEWAY_LIMITS, { lookEveryMs: 10, prolongEveryMs: 20 });

const MESSAGES = [{ role: "user", content: "Hello" }];
const INPUT = Math.ceil(JSON.stringify(MESSAGES).length / 4);
const ANSWER = 1_500;
const CALL_TOKENS = INPUT + ANSWER;
const [QUOTA] = CATALOG.plans[0]?.limits.map(({ quota }) => quota) as [number];
/** Calls that the quota has room for. */
const ROOM = Math.floor(QUOTA / CALL_TOKENS);

/** Starts two nodes and fronts, an app with a user "u", and a model server with streams that a test ends. */
async function open(fronts = 1) {
  const model = new ModelServer();
  const goOn = Promise.withResolvers<void>();
  const usage = { prompt_tokens: INPUT, completion_tokens: ANSWER };
  model.reply = () => ({
    events: (async function* () {
      yield eventOf(chatChunk("x"));
      await goOn.promise;
      yield eventOf(chatChunk({}, { choices: [], usage }));
      yield eventOf("[DONE]");
    })(),
  });
  const modelServer = { apiKey: MODEL_KEY, baseUrl: model.baseUrl };
  const nodes = await Nodes.open({ nodes: 2, fronts, features: { modelServer } });
  const app = await (nodes.all[0] as TestMember).newApp(CATALOG);
  const subscription = { userId: "u", planId: "plan_pro" };
  const front = nodes.fronts[0] as TestMember;
  assert.equal((await front.ask(app.secretLive, "POST", "/subscriptions", subscription)).status, 200);
  const close = async () => {
    goOn.resolve();
    await nodes[Symbol.asyncDispose]();
    await model.close();
  };
  return { model, nodes, app, front, finish: () => goOn.resolve(), [Symbol.asyncDispose]: close };
}

async function call(at: TestMember, { secretLive }: TestApp, headers = {}): Promise<Response> {
  const request = new Request("http://service.test/openai/v1/chat/completions", {
    method: "POST",
    headers: { authorization: `Bearer ${secretLive}`, ...headers },
    body: JSON.stringify({
      model: "mini",
      messages: MESSAGES,
      user: "u",
      stream: true,
      max_completion_tokens: ANSWER,
    }),
  });
  return await at.http.fetch(request);
}

async function tokensOf(by: TestMember, app: TestApp): Promise<number> {
  const { status, body } = await by.ask(app.secretLive, "GET", "/usage?userId=u");
  assert.equal(status, 200, JSON.stringify(body));
  return body.data.counters.find(({ groupId }: { groupId: string }) => groupId === "lg_tokens").count;
}

async function eventsOf(by: TestMember, app: TestApp): Promise<{ matchStatus: string }[]> {
  const { body } = await by.ask(app.secretLive, "GET", "/events?limit=100");
  return body.data.events;
}

for (
  const [name, lose] of [
    ["is handed over", (nodes: Nodes, owner: TestMember) => nodes.leave(owner)],
    ["is lost by its owner", (nodes: Nodes, owner: TestMember) => nodes.break(owner)],
  ] as const
) {
  Deno.test({
    name: `a stream through a front goes on when its cell ${name}, keeps its hold, and is committed once`,
    ignore,
    fn: async () => {
      await using stage = await open();
      const { nodes, app, front, finish } = stage;
      const owner = nodes.ownerOf(app);
      const { term } = owner;
      const answer = await call(front, app);
      assert.equal(answer.status, 200);
      const id = answer.headers.get("x-holdfast-reservation");
      const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
      await reader.read();

      await lose(nodes, owner);
      await nodes.settled();
      assert.notEqual(nodes.ownerOf(app).term, term);
      assert.equal(await tokensOf(front, app), CALL_TOKENS);
      // Longer than the hold lives: the next owner prolongs it.
      const expiry = async () => {
        await nodes.ownerOf(app).serving.term.flush();
        const rows = await nodes.store.database.query("select * from reservations where id = $1", [id]);
        return (rows[0] as { expires_at_ms: number } | undefined)?.expires_at_ms;
      };
      for (let round = 0; round < 2; round++) {
        nodes.clock.advance(50_000);
        await until(async () => await expiry() === nodes.clock.now() + 60_000);
      }

      finish();
      let text = "";
      for (let read = await reader.read(); !read.done; read = await reader.read()) {
        text += new TextDecoder().decode(read.value);
      }
      assert.equal(text, eventOf("[DONE]"));
      assert.equal(await tokensOf(front, app), CALL_TOKENS);
      assert.deepEqual((await eventsOf(front, app)).map(({ matchStatus }) => matchStatus), ["matched"]);
    },
  });
}

Deno.test({
  name:
    "parallel streams through fronts never pass the quota together while cells move, and each counts once",
  ignore,
  fn: async () => {
    await using stage = await open(2);
    const { model, nodes, app, front } = stage;
    let [streaming, most] = [0, 0];
    // Each holds much and uses little, so that the quota is always tight and never used up.
    const usage = { prompt_tokens: 1, completion_tokens: 1 };
    model.reply = () => ({
      events: (async function* () {
        streaming += 1;
        most = Math.max(most, streaming);
        yield eventOf(chatChunk("x"));
        await new Promise((resolve) => setTimeout(resolve, 20));
        streaming -= 1;
        yield eventOf(chatChunk({}, { choices: [], usage })) + eventOf("[DONE]");
      })(),
    });
    const statuses = new Map<number, number>();
    let isOver = false;
    const callers = Array.from({ length: 2 * ROOM }, async (_, place) => {
      while (!isOver) {
        const answer = await call(nodes.fronts[place % 2] as TestMember, app);
        const text = await answer.text();
        if (answer.status === 200) assert.ok(text.endsWith(eventOf("[DONE]")), text);
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    });
    const running = Promise.all(callers);
    running.catch(() => isOver = true);
    for (let change = 0; change < 2; change++) {
      await nodes.join();
      await nodes.settled();
      await nodes.leave(nodes.ownerOf(app));
      await nodes.settled();
    }
    isOver = true;
    await running;
    assert.deepEqual([...statuses.keys()].toSorted(), [200, 429]);
    assert.equal(most, ROOM);
    assert.equal(await tokensOf(front, app), 2 * (statuses.get(200) as number));
  },
});

Deno.test(
  { name: "a call at a front is fitted to what the owner of the user has left", ignore },
  async () => {
    await using stage = await open();
    const { model, app, front, finish } = stage;
    const held: Response[] = [];
    for (let calls = 0; calls < ROOM; calls++) held.push(await call(front, app));
    const fitted = await call(front, app, { "x-holdfast-fit": "1" });
    const left = QUOTA - ROOM * CALL_TOKENS - INPUT;
    assert.equal(fitted.headers.get("x-holdfast-fitted"), `mini;${left}`);
    assert.equal(model.requests.at(-1)?.body.max_completion_tokens, left);
    assert.equal(await tokensOf(front, app), QUOTA);
    finish();
    await Promise.all([...held, fitted].map((answer) => answer.text()));
  },
);
