// Compose and its deadline: one for everything that the model is asked in a call, however the server is late.

import assert from "node:assert/strict";
import {
  composeApp,
  composeRecap,
  composeServiceOfFile,
  COST,
  countsOf,
  GOOD,
  rowsOf,
  spentOf,
} from "./compose_support.ts";
import { generationsUnderWay } from "../../src/integrations/compose/compose.ts";
import { COMPOSE_LIMITS } from "../../src/process/limits.ts";
import { changedLimits } from "../support/limits.ts";
import { assertRefused, dataOf } from "./support.ts";
import type { TestApp } from "../support/test_service.ts";

const { service, model } = composeServiceOfFile(800);

async function assertNothingMetered(app: TestApp, spent: number): Promise<void> {
  assert.deepEqual(await countsOf(app), { lg_tokens: 0, lg_calls: 0 });
  assert.deepEqual(await rowsOf(service, app, "generations"), []);
  assert.equal(await spentOf(service, app), spent);
}

Deno.test("a server that does not answer in time: the generation failed, and a late answer changes nothing", async () => {
  const app = await composeApp(service);
  const gate = Promise.withResolvers<void>();
  model.reply = async () => {
    await gate.promise;
    return { content: '{"headline":"x","score":1}' };
  };
  assertRefused(await composeRecap(app), 502, "generation_failed");
  gate.resolve();
  await assertNothingMetered(app, 0);
  model.reset();
  await dataOf(composeRecap(app));
});

Deno.test("a server that begins an answer and never ends it is late too", async () => {
  const app = await composeApp(service);
  const gate = Promise.withResolvers<void>();
  model.reply = () => ({ stall: gate.promise });
  assertRefused(await composeRecap(app), 502, "generation_failed");
  gate.resolve();
  await assertNothingMetered(app, 0);
});

Deno.test("the second answer has what the first one left of the time, and the first one is paid", async () => {
  const app = await composeApp(service);
  const gate = Promise.withResolvers<void>();
  model.reply = async (_, place) => {
    if (place === 1) await gate.promise;
    return { content: "{}" };
  };
  assertRefused(await composeRecap(app), 502, "generation_failed");
  gate.resolve();
  assert.equal(model.requests.length, 2);
  await assertNothingMetered(app, COST);
});

Deno.test("a workspace has its share of the calls in flight, and others have room", async () => {
  using _limits = changedLimits(COMPOSE_LIMITS, { callsOfWorkspaceMax: 1 });
  const [app, other] = [await composeApp(service), await composeApp(service)];
  const gate = Promise.withResolvers<void>();
  const arrived = Promise.withResolvers<void>();
  model.reply = async (_, place) => {
    arrived.resolve();
    if (place === 0) await gate.promise;
    return { content: JSON.stringify(GOOD) };
  };
  const first = composeRecap(app);
  await arrived.promise;
  assertRefused(await composeRecap(app), 503, "unavailable");
  assert.deepEqual(generationsUnderWay(), { all: 1, ofWorkspaceMost: 1 });
  await dataOf(composeRecap(other));
  gate.resolve();
  await dataOf(first);
  assert.deepEqual(generationsUnderWay(), { all: 0, ofWorkspaceMost: 0 });
});

Deno.test("a model server that is not there: the generation failed", async () => {
  const app = await composeApp(service);
  await model.close();
  assertRefused(await composeRecap(app), 502, "generation_failed");
  await assertNothingMetered(app, 0);
});
