// Every example of the client's docstrings and README, type-checked and run against a service of its own app. A line
// `console.log(value); // expected` is a check. In scope are the package's exports, `client` (a live secret key, with
// "user_1" on the plan Pro) and the app's `identitySecret`; keys such as "sk_test_..." stand for the app's.

import assert from "node:assert/strict";
import * as library from "../../src/client/client.ts";
import type { ClientOptions, HoldfastClient } from "../../src/client/client.ts";
import { ModelServer } from "../support/model_server.ts";
import { startTestService, type TestApp, type TestService } from "../support/test_service.ts";
import { clientOf, fetchOf } from "./support.ts";
import { withFile } from "../tasks/support.ts";

const ROOT = new URL("../..", import.meta.url).pathname;

interface Example {
  readonly name: string;
  readonly code: string;
}

/** What an example finds in scope. */
interface Scope {
  readonly client: HoldfastClient;
  readonly createClient: typeof library.createClient;
  readonly identitySecret: string;
}

type Runnable = (scope: Scope) => Promise<void>;

/** The examples of a file: fenced code in docstrings, or in Markdown. */
function examplesOf(path: string, text: string): Example[] {
  const isMarkdown = path.endsWith(".md");
  const found: Example[] = [];
  for (const match of text.matchAll(/^( \* | {3}\* |)```ts\n([\s\S]*?)^\1```$/gm)) {
    const [, margin = "", code = ""] = match;
    if (isMarkdown !== (margin === "")) continue;
    const line = text.slice(0, match.index).split("\n").length + 1;
    const lines = code.split("\n").map((row) =>
      row.startsWith(margin) ? row.slice(margin.length) : row.trim()
    );
    found.push({ name: `${path}:${line}`, code: lines.map((row) => row.replace(/^\*$/, "")).join("\n") });
  }
  return found;
}

/** A module with a function for each example. */
function moduleOf(examples: readonly Example[]): string {
  const names = "HoldfastClient, HoldfastError, signEndUserToken";
  const bodies = examples.map(({ name, code }) => {
    const body = code
      .replaceAll(/^import .* from "holdfast-client";$/gm, "")
      .replaceAll(/^( *)console\.log\((.*)\); \/\/ (.+)$/gm, "$1assert.deepEqual($2, $3);");
    return `// ${name}\nasync ({ client, createClient, identitySecret }: Scope) => {\n${body}\n},`;
  });
  return `// deno-lint-ignore-file
import assert from "node:assert/strict";
import { type createClient as Create, ${names} } from "../../src/client/client.ts";
interface Scope {
  client: HoldfastClient;
  createClient: typeof Create;
  identitySecret: string;
}
export default [\n${bodies.join("\n")}\n];\n`;
}

async function readExamples(): Promise<Example[]> {
  const examples: Example[] = [];
  for await (const { name } of Deno.readDir(`${ROOT}src/client`)) {
    if (!/\.(ts|md)$/.test(name)) continue;
    const path = `src/client/${name}`;
    examples.push(...examplesOf(path, await Deno.readTextFile(ROOT + path)));
  }
  return examples.sort((a, b) => a.name < b.name ? -1 : 1);
}

async function check(path: string): Promise<void> {
  const { success, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["check", "--quiet", "--config", `${ROOT}deno.json`, path],
    env: { NO_COLOR: "1" },
  }).output();
  assert.ok(success, new TextDecoder().decode(stderr));
}

/** A new app, seen as the examples see it. */
async function scopeOf(service: TestService): Promise<Scope> {
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

Deno.test("every example of the client type-checks, runs, and shows what it says", async (test) => {
  const examples = await readExamples();
  assert.ok(examples.length >= 35, `Only ${examples.length} examples were found`);
  await withFile("examples.ts", moduleOf(examples), async (path) => {
    const checked = check(path);
    checked.catch(() => {}); // awaited below, after the service has started
    const models = new ModelServer();
    const modelServer = { apiKey: "sk-model-0123456789", baseUrl: models.baseUrl };
    const service = await startTestService(undefined, { modelServer });
    try {
      await checked;
      const { default: runnables } = await import(`file://${path}`) as { default: readonly Runnable[] };
      for (const [index, { name }] of examples.entries()) {
        await test.step(name, async () => await (runnables[index] as Runnable)(await scopeOf(service)));
      }
    } finally {
      await service.close();
      await models.close();
    }
  });
});

Deno.test("every call of the client has an example", async () => {
  const text = (await readExamples()).map(({ code }) => code).join("\n");
  const client = library.createClient({ apiKey: "sk_live_x", baseUrl: "https://holdfast.example.com" });
  const missing: string[] = [];
  for (const call of callsOf(client)) {
    if (!text.includes(`.${call}(`) && !text.includes(`.${call}<`)) missing.push(call);
  }
  assert.deepEqual(missing, []);
});

/** The calls of a client by name, those of its areas as "area.call". */
function callsOf(client: HoldfastClient): string[] {
  const calls = [...methodsOf(client)];
  for (const [area, value] of Object.entries(client)) {
    calls.push(...methodsOf(value).map((name) => `${area}.${name}`));
  }
  return calls;
}

function methodsOf(value: object): string[] {
  const names = new Set<string>();
  let place = Object.getPrototypeOf(value);
  for (; place !== null && place !== Object.prototype; place = Object.getPrototypeOf(place)) {
    for (const name of Object.getOwnPropertyNames(place)) if (name !== "constructor") names.add(name);
  }
  return [...names];
}
