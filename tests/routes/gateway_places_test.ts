// Calls of the gateway in flight: how many an app may have, and how long those without a hold last.

import assert from "node:assert/strict";
import { GATEWAY_LIMITS } from "../../src/process/gateway_limits.ts";
import { changedLimits } from "../support/limits.ts";
import { chatChunk, chatEvents, eventOf } from "../support/model_server.ts";
import type { TestApp } from "../support/test_service.ts";
import { countsOf } from "./compose_support.ts";
import { until } from "../support/until.ts";
import { gatewayApp, gatewayOfFile } from "./gateway_support.ts";

const { service, model, baseUrl } = gatewayOfFile();

const MESSAGES = [{ role: "user", content: "Hello" }];
const CHAT = { model: "mini", messages: MESSAGES, stream: true, user: "u" };

function ask({ secretLive }: TestApp, path: string, body?: object): Promise<Response> {
  return fetch(path.startsWith("/anthropic") ? new URL(path, baseUrl()) : baseUrl() + path, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${secretLive}` },
    body: body === undefined ? null : JSON.stringify(body),
  });
}

/** The status of an answer, and its code. */
async function refusalOf(response: Response) {
  const { error, code } = await response.json();
  return [response.status, error.code ?? code];
}

Deno.test("a server that stalls keeps no call without a hold, and no error", async () => {
  const app = await gatewayApp(service);
  const count = { model: "claude", messages: MESSAGES };
  const rows: [path: string, body: object | undefined, status?: number][] = [
    ["/models", undefined],
    ["/anthropic/v1/messages/count_tokens", count],
    ["/anthropic/v1/messages/count_tokens", count, 400],
    ["/chat/completions", CHAT, 429],
  ];
  const stop = Promise.withResolvers<void>();
  using _ = changedLimits(GATEWAY_LIMITS, { plainMs: 50 });
  try {
    for (const [path, body, status] of rows) {
      let left = Promise.resolve();
      model.reply = (request) => {
        left = request.left;
        return { stall: stop.promise, ...status === undefined ? {} : { status } };
      };
      assert.deepEqual(await refusalOf(await ask(app, path, body)), [502, "generation_failed"], path);
      await left;
    }
    assert.equal((await countsOf(app)).lg_tokens, 0);
  } finally {
    stop.resolve();
  }
});

Deno.test("an app has its share of calls in flight, and others have room", async () => {
  using _ = changedLimits(GATEWAY_LIMITS, { callsOfAppMax: 2 });
  const [app, other] = [await gatewayApp(service), await gatewayApp(service)];
  const full = [503, "unavailable"];
  const goOn = Promise.withResolvers<void>();
  model.reply = ({ body }) =>
    body?.stream !== true ? { content: "x" } : {
      events: (async function* () {
        yield eventOf(chatChunk("x"));
        await goOn.promise;
        yield* chatEvents(body, []);
      })(),
    };
  // None is in flight yet when the others ask for their places.
  const answers = await Promise.all(Array.from({ length: 6 }, () => ask(app, "/chat/completions", CHAT)));
  const open = answers.filter(({ ok }) => ok);
  assert.equal(open.length, 2);
  for (const answer of answers) if (!answer.ok) assert.deepEqual(await refusalOf(answer), full);
  assert.deepEqual(await refusalOf(await ask(app, "/models")), full);
  const one = { ...CHAT, stream: false };
  assert.equal((await (await ask(other, "/chat/completions", one)).json()).object, "chat.completion");
  goOn.resolve();
  await Promise.all(open.map((answer) => answer.text()));
  // Refused calls and those without a hold give their places back too.
  for (let round = 0; round < 3; round++) {
    const refused = await ask(app, "/chat/completions", { ...one, max_tokens: 1e6 });
    assert.deepEqual(await refusalOf(refused), [429, "limit_reached"]);
    await (await ask(app, "/models")).text();
  }
  await until(async () => {
    const answer = await ask(app, "/chat/completions", one);
    await answer.text();
    return answer.ok;
  });
});
