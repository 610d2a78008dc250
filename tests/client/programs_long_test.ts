// Whole programs of a user of the client: the unchanged recipes of the READMEs, and the examples beside
// the client. They are compiled under strict rules against the packed client and the real packages, and run on Node with
// a running service and a model server. Without Node on the machine this test is ignored.

import assert from "node:assert/strict";
import { Webhook } from "standardwebhooks";
import { createClient } from "../../src/client/client.ts";
import { startTestService, type TestApp } from "../support/test_service.ts";
import { serve } from "../tasks/support.ts";
import { answerWell, TEXT } from "./model.ts";
import { compile, has, makeProject, run } from "./project.ts";

/** What a program prints, and what it charges. */
interface Expected {
  readonly prints: string;
  readonly charges: Readonly<Record<string, number>>;
}

/** Where recipes stand, in order. */
const READMES = ["README.md", "src/client/README.md"];

/** By file; `run` is what its reader adds to a recipe that only exports. */
const RECIPES: Readonly<Record<string, Expected & { readonly run?: string }>> = {
  "front.ts": { prints: `${TEXT}\n`, charges: { tokens: 1500 } },
  "any.ts": { prints: "an image of a pond\n", charges: { count: 1 } },
  "openai.ts": { prints: TEXT, charges: { tokens: 1500 } },
  "anthropic.ts": { prints: `${TEXT}\n`, charges: { tokens: 1500 } },
  "ai.ts": { prints: `${TEXT}\n`, charges: { tokens: 1500 } },
  "hono.ts": {
    run: `const { default: app } = await import("./hono.js");
console.log((await app.request("/images", { method: "POST" })).status);`,
    prints: "200\n",
    charges: { count: 1 },
  },
  "page.tsx": {
    run: `const { ImagesLeft } = await import("./page.js");
const { createElement } = await import("react");
const { renderToString } = await import("react-dom/server");
console.log(renderToString(createElement(ImagesLeft)));`,
    prints: "<p>...<!-- --> images left</p>\n",
    charges: {},
  },
};

const REFUSED = "429 limit_reached\n";
const TWO_CALLS = "Tokens for chat and recaps: 3000 of 100000\nBudget for AI in cents: 0.084 of 2000\n";

const EXAMPLES: Readonly<Record<string, Expected>> = {
  "ai.ts": { prints: `${TEXT}\n${TEXT}\n${REFUSED}${TWO_CALLS}`, charges: { tokens: 3000 } },
  "gateway.ts": { prints: `${TEXT}\n${TEXT}\n${REFUSED}`, charges: { tokens: 3000 } },
  "hono.ts": {
    prints:
      "/images 200 an image of a pond\n/images 400 what: is missing\n/albums 429 limit_reached\n1 of 100 used\n",
    charges: { count: 1 },
  },
  "openai.ts": { prints: `${TEXT}\n${TEXT}\n${REFUSED}${TWO_CALLS}`, charges: { tokens: 3000 } },
  "react.tsx": {
    prints:
      '<ul aria-busy="true"><li>Images a month: 100 left</li><li>Premium images a month: 20 left</li></ul>\n',
    charges: {},
  },
  "reserve.ts": {
    prints: `committed: an image of a pond; 1 of 100 used
released: Error: nothing to draw
refused: limit_reached
`,
    charges: { count: 1 },
  },
  "track_later.ts": {
    prints: `not counted: image.thumbnail of user_1: limit_reached\nImages a month: 30 of 100\n`,
    charges: { count: 30 },
  },
};

/** The code of every block that has a name, by that name. */
async function readRecipes(): Promise<Map<string, string>> {
  const texts = await Promise.all(
    READMES.map((path) => Deno.readTextFile(new URL(`../../${path}`, import.meta.url))),
  );
  const blocks = texts.join("\n").matchAll(/^```(tsx?) (\w+)\n([\s\S]*?)^```$/gm);
  return new Map([...blocks].map(([, ending, name, code = ""]) => [`${name}.${ending}`, code]));
}

/** The compiled program of a file, by its path in the project. */
function builtOf(path: string): string {
  return `build/${path.replace(/\.tsx?$/, ".js")}`;
}

/** Sends the receiver a message twice and a forged one; returns the statuses. */
async function sendWebhooks(url: string, secret: string): Promise<number[]> {
  const data = { userId: "user_1", label: "Images a month", thresholdPercent: 80 };
  const body = JSON.stringify({ type: "usage.threshold_reached", data });
  const at = new Date(Math.floor(Date.now() / 1000) * 1000);
  const headers = {
    "webhook-id": "whm_1",
    "webhook-timestamp": String(at.getTime() / 1000),
    "webhook-signature": new Webhook(secret).sign("whm_1", at, body),
  };
  const statuses: number[] = [];
  for (const sent of [body, body, body.replace("80", "10")]) {
    const answer = await fetch(url, { method: "POST", headers, body: sent });
    await answer.body?.cancel();
    statuses.push(answer.status);
  }
  return statuses;
}

/** Runs the receiver until it has its messages; returns its output without the port. */
async function runReceiver(folder: string): Promise<{ statuses: number[]; printed: string }> {
  const secret = `whsec_${btoa("a secret of 32 bytes, unchanged!")}`;
  await using receiver = new Deno.Command("node", {
    args: [builtOf("webhook.ts")],
    cwd: folder,
    env: { HOLDFAST_WEBHOOK_SECRET: secret, PORT: "0" },
    stdin: "null",
    stdout: "piped",
    signal: AbortSignal.timeout(60_000),
  }).spawn();
  let printed = "";
  let statuses: number[] | null = null;
  for await (const text of receiver.stdout.pipeThrough(new TextDecoderStream())) {
    printed += text;
    const url = /^Listening on (\S+)\n/.exec(printed)?.[1];
    if (url === undefined || statuses !== null) continue;
    statuses = await sendWebhooks(url, secret);
    receiver.kill("SIGTERM");
  }
  return { statuses: statuses ?? [], printed: printed.replace(/:\d+\n/, "\n") };
}

Deno.test({
  name: "each recipe and each example compiles unchanged, runs on Node, and charges its usage",
  ignore: !(await has("node")),
  fn: async (test) => {
    const recipes = await readRecipes();
    assert.deepEqual([...recipes.keys()], Object.keys(RECIPES));
    const folder = await Deno.makeTempDir({ prefix: "holdfast_programs_" });
    const models = serve(async (request) =>
      answerWell({
        path: new URL(request.url).pathname,
        body: await request.json(),
        signal: request.signal,
      })
    );
    const modelServer = { apiKey: "sk-model-0123456789", baseUrl: `${models.url}/v1` };
    const service = await startTestService(undefined, { modelServer });
    const served = serve((request) => service.http.fetch(request));

    const variablesOf = (app: TestApp) => ({
      HOLDFAST_URL: served.url,
      HOLDFAST_KEY: app.secretLive,
      HOLDFAST_PUBLIC_KEY: app.publicLive,
      HOLDFAST_IDENTITY_SECRET: app.identitySecret,
      HOLDFAST_USER: "user_1",
      OPENAI_BASE_URL: modelServer.baseUrl,
      OPENAI_API_KEY: modelServer.apiKey,
      ANTHROPIC_BASE_URL: models.url,
      ANTHROPIC_API_KEY: modelServer.apiKey,
    });
    const check = async (file: string, { prints, charges }: Expected) => {
      const app = await service.newApp();
      const holdfast = createClient({ apiKey: app.secretLive, baseUrl: served.url });
      await holdfast.subscriptions.upsert({ userId: "user_1", planId: "Pro" });
      assert.equal(await run("node", [file], folder, variablesOf(app)), prints);
      const { counters } = await holdfast.usage("user_1");
      const charged = counters.filter(({ count, unit }) => count > 0 && unit !== "cents");
      assert.deepEqual(Object.fromEntries(charged.map(({ unit, count }) => [unit, count])), charges);
    };

    try {
      const inFolder = new Map([...recipes].map(([name, code]) => [`recipes/${name}`, code]));
      const examples = await makeProject(folder, inFolder);
      assert.deepEqual(examples, [...Object.keys(EXAMPLES), "webhook.ts"]);
      await test.step("they compile", () => compile(folder));
      for (const [name, { run: program, ...expected }] of Object.entries(RECIPES)) {
        await test.step(`recipe ${name}`, async () => {
          const runner = `build/recipes/run_${name}.js`;
          if (program !== undefined) await Deno.writeTextFile(`${folder}/${runner}`, program);
          await check(program === undefined ? builtOf(`recipes/${name}`) : runner, expected);
        });
      }
      for (const [name, expected] of Object.entries(EXAMPLES)) {
        await test.step(`example ${name}`, () => check(builtOf(name), expected));
      }
      await test.step("example webhook.ts", async () => {
        assert.deepEqual(await runReceiver(folder), {
          statuses: [204, 204, 400],
          printed: `Listening on http://127.0.0.1
user_1 has used 80 % of Images a month
HoldfastError: No signature matches this secret and body
`,
        });
      });
    } finally {
      await served.close();
      await service.close();
      await models.close();
      await Deno.remove(folder, { recursive: true });
    }
  },
});
