// Runs every example of the client's docstrings and README on the running service.

import assert from "node:assert/strict";
import { CallGroup } from "../../src/client/call_group.ts";
import * as library from "../../src/client/client.ts";
import type { ClientOptions, HoldfastClient } from "../../src/client/client.ts";
import type { TestApp } from "../support/test_service.ts";
import { withFile } from "../tasks/support.ts";
import { type Example, moduleOf, readExamples, type Runnable, type Scope } from "./examples.ts";
import { FEATURED, KEYS, serviceWithModels } from "./service.ts";
import { clientOf, fetchOf } from "./support.ts";

/** A service of their own: the examples show the time at which it starts, and other tests set the clock of theirs. */
const service = serviceWithModels();

/** An app as the examples see it. */
function scopeOf(app: TestApp): Scope {
  const createClient = (options: ClientOptions) =>
    library.createClient({ ...options, apiKey: keyOf(app, options.apiKey), fetch: fetchOf(service) });
  return { client: clientOf(service, app), createClient, identitySecret: app.identitySecret };
}

/** An example with users, orders and sessions of its own, so that examples can share an app. */
function withOwnIds({ name, code }: Example, place: number): Example {
  return { name, code: code.replaceAll(/"(user|team|org|old|new|anon|phone|order|sub)_/g, `"$1_${place}_`) };
}

function keyOf(app: TestApp, written: string): string {
  const keys = [app.secretLive, app.secretTest, app.publicLive, app.publicTest];
  return keys.find((key) => key.startsWith(written.slice(0, "sk_live_".length))) ?? written;
}

Deno.test("every example runs and shows what it says", async (test) => {
  const examples = (await readExamples()).map(withOwnIds);
  const client = new URL("../../src/client/client.ts", import.meta.url).href;
  const shared = await service.newApp(FEATURED);
  KEYS.byMode.live.set(shared.appId, "sk_live_test");
  await withFile("examples.ts", moduleOf(examples, client), async (path) => {
    const { default: runnables } = await import(`file://${path}`) as { default: readonly Runnable[] };
    for (const [place, { name, code }] of examples.entries()) {
      await test.step(name, async () => {
        // The clock of test mode is the app's, so an example that moves it has an app of its own.
        const scope = scopeOf(code.includes('"sk_test_') ? await service.newApp() : shared);
        await scope.client.subscriptions.upsert({ userId: `user_${place}_1`, planId: "plan_pro" });
        await (runnables[place] as Runnable)(scope);
      });
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

Deno.test("the README's table names every call of the client", async () => {
  const readme = await Deno.readTextFile(new URL("../../src/client/README.md", import.meta.url));
  const rows = readme.split("\n").filter((line) => line.startsWith("| `"));
  const client = library.createClient({ apiKey: "sk_live_x", baseUrl: "https://holdfast.example.com" });
  const isNamed = (call: string) => {
    const [name, area] = call.split(".").toReversed();
    const [start, part] = area === undefined ? ["", `\`${name}(`] : [`\`${area}.`, `.${name}(`];
    return rows.some((row) => row.includes(start) && row.includes(part));
  };
  assert.deepEqual(callsOf(client).filter((call) => !isNamed(call)), []);
});

/** The calls of a client by name, those of its areas as "area.call". */
function callsOf(client: HoldfastClient): string[] {
  const areas = Object.entries(client).filter(([area]) => area !== "transport").flatMap(([area, calls]) =>
    methodsOf(calls).map((name) => `${area}.${name}`)
  );
  return [...methodsOf(client), ...areas];
}

function methodsOf(value: object): string[] {
  if (typeof value === "function") return Object.keys(value);
  const names = new Set<string>();
  let place = Object.getPrototypeOf(value);
  for (
    ;
    place !== null && place !== CallGroup.prototype && place !== Object.prototype;
    place = Object.getPrototypeOf(place)
  ) {
    for (const name of Object.getOwnPropertyNames(place)) if (name !== "constructor") names.add(name);
  }
  return [...names];
}
