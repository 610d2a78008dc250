// Runs every example of the client's docstrings and README, each with an app of its own on the running service.

import assert from "node:assert/strict";
import * as library from "../../src/client/client.ts";
import type { ClientOptions, HoldfastClient } from "../../src/client/client.ts";
import type { TestApp } from "../support/test_service.ts";
import { withFile } from "../tasks/support.ts";
import { moduleOf, readExamples, type Runnable, type Scope } from "./examples.ts";
import { service } from "./service.ts";
import { clientOf, fetchOf } from "./support.ts";

/** A new app, seen as the examples see it. */
async function newScope(): Promise<Scope> {
  const app = await service.newApp();
  const client = clientOf(service, app);
  await client.subscriptions.upsert({ userId: "user_1", planId: "plan_pro" });
  const createClient = (options: ClientOptions) =>
    library.createClient({ ...options, apiKey: keyOf(app, options.apiKey), fetch: fetchOf(service) });
  return { client, createClient, identitySecret: app.identitySecret };
}

function keyOf(app: TestApp, written: string): string {
  const keys = [app.secretLive, app.secretTest, app.publicLive, app.publicTest];
  return keys.find((key) => key.startsWith(written.slice(0, "sk_live_".length))) ?? written;
}

Deno.test("every example runs and shows what it says", async (test) => {
  const examples = await readExamples();
  const client = new URL("../../src/client/client.ts", import.meta.url).href;
  await withFile("examples.ts", moduleOf(examples, client), async (path) => {
    const { default: runnables } = await import(`file://${path}`) as { default: readonly Runnable[] };
    for (const [index, { name }] of examples.entries()) {
      await test.step(name, async () => await (runnables[index] as Runnable)(await newScope()));
    }
  });
});

Deno.test("every call of the client has an example", async () => {
  const text = (await readExamples()).map(({ code }) => code).join("\n");
  const client = library.createClient({ apiKey: "sk_live_x", baseUrl: "https://holdfast.example.com" });
  const missing = callsOf(client).filter((call) =>
    !text.includes(`.${call}(`) && !text.includes(`.${call}<`)
  );
  assert.deepEqual(missing, []);
});

/** The calls of a client by name, those of its areas as "area.call". */
function callsOf(client: HoldfastClient): string[] {
  const areas = Object.entries(client).flatMap(([area, calls]) =>
    methodsOf(calls).map((name) => `${area}.${name}`)
  );
  return [...methodsOf(client), ...areas];
}

function methodsOf(value: object): string[] {
  const names = new Set<string>();
  let place = Object.getPrototypeOf(value);
  for (; place !== null && place !== Object.prototype; place = Object.getPrototypeOf(place)) {
    for (const name of Object.getOwnPropertyNames(place)) if (name !== "constructor") names.add(name);
  }
  return [...names];
}
