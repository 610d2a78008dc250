// The recipes of the client's README as they stand: compiled under strict rules against the packed client and the real
// packages, and run on Node with a running service and a model server. Deno installs the packages as for every test: in the
// versions of the lock, from its cache where they are there. Without Node on the machine this test is ignored.

import assert from "node:assert/strict";
import ts from "npm:typescript@5.9.3";
import { createClient } from "../../src/client/client.ts";
import { packClient, textOf } from "../../src/tasks/client_package.ts";
import { startTestService } from "../support/test_service.ts";
import { serve } from "../tasks/support.ts";
import { answerWell, TEXT } from "./model.ts";

const TIMEOUT_MS = 120_000;

/** What a project that uses the recipes depends on. Each is a package of this folder's other tests too. */
const DEPENDENCIES = {
  "@ai-sdk/openai-compatible": "2.0.91",
  "@types/react": "19.3.0",
  ai: "6.0.326",
  hono: "4.13.19",
  openai: "7.57.0",
  react: "19.3.1",
  "react-dom": "19.3.1",
};

/** What each recipe shows, and what it charges. */
const RECIPES: Record<string, { run: string; prints: string; charges: Record<string, number> }> = {
  "any.ts": { run: "", prints: "an image of a pond\n", charges: { count: 1 } },
  "openai.ts": { run: "", prints: TEXT, charges: { tokens: 1500 } },
  "ai.ts": { run: "", prints: `${TEXT}\n`, charges: { tokens: 1500 } },
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

async function readRecipes(): Promise<Map<string, string>> {
  const readme = await Deno.readTextFile(new URL("../../src/client/README.md", import.meta.url));
  const blocks = readme.matchAll(/^```(tsx?) (\w+)\n([\s\S]*?)^```$/gm);
  return new Map([...blocks].map(([, ending, name, code = ""]) => [`${name}.${ending}`, code]));
}

async function run(command: string, args: readonly string[], cwd: string, env: Record<string, string> = {}) {
  const { success, stdout, stderr } = await new Deno.Command(command, {
    args: [...args],
    cwd,
    env,
    stdin: "null",
    signal: AbortSignal.timeout(TIMEOUT_MS),
  }).output();
  const decoder = new TextDecoder();
  assert.ok(success, `${command} ${args.join(" ")}: ${decoder.decode(stdout)}${decoder.decode(stderr)}`);
  return decoder.decode(stdout);
}

async function hasNode(): Promise<boolean> {
  try {
    return (await new Deno.Command("node", { args: ["--version"], stdout: "null" }).output()).success;
  } catch {
    return false;
  }
}

/** Makes a project with the packages and the packed client. */
async function makeProject(folder: string, recipes: ReadonlyMap<string, string>): Promise<void> {
  const project = { name: "shop", type: "module", dependencies: DEPENDENCIES };
  await Deno.writeTextFile(`${folder}/package.json`, JSON.stringify(project));
  await Deno.writeTextFile(`${folder}/deno.json`, JSON.stringify({ nodeModulesDir: "manual" }));
  await Deno.copyFile(new URL("../deno.lock", import.meta.url), `${folder}/deno.lock`);
  await run(Deno.execPath(), ["install"], folder);
  const installed = `${folder}/node_modules/holdfast-client`;
  await Deno.mkdir(installed);
  await Deno.writeFile(`${folder}/client.tgz`, (await packClient()).bytes);
  await run("tar", ["xzf", `${folder}/client.tgz`, "-C", installed, "--strip-components=1"], folder);
  for (const [name, code] of recipes) await Deno.writeTextFile(`${folder}/${name}`, code);
  // In place of the types of Node.
  await Deno.writeTextFile(
    `${folder}/node.d.ts`,
    `declare const process: {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdout: { write(text: string): boolean };
};`,
  );
}

function compile(folder: string, names: readonly string[]): void {
  const program = ts.createProgram([...names, "node.d.ts"].map((name) => `${folder}/${name}`), {
    target: ts.ScriptTarget.ES2022,
    lib: ["lib.esnext.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts", "lib.dom.asynciterable.d.ts"],
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    jsx: ts.JsxEmit.ReactJSX,
    types: [],
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: true,
    outDir: folder,
  });
  const { diagnostics } = program.emit();
  const faults = [...ts.getPreEmitDiagnostics(program), ...diagnostics];
  assert.equal(textOf(faults), "");
}

Deno.test({
  name: "each recipe of the README compiles as it stands, runs on Node, and charges what it used",
  ignore: !(await hasNode()),
  fn: async (test) => {
    const recipes = await readRecipes();
    assert.deepEqual([...recipes.keys()], Object.keys(RECIPES));
    const folder = await Deno.makeTempDir({ prefix: "holdfast_recipes_" });
    const service = await startTestService();
    const served = serve((request) => service.http.fetch(request));
    const models = serve(async (request) =>
      answerWell({
        path: new URL(request.url).pathname,
        body: await request.json(),
        signal: request.signal,
      })
    );
    try {
      await makeProject(folder, recipes);
      await test.step("they compile", () => compile(folder, [...recipes.keys()]));
      // The compiler holds the thread for seconds, in which the service may have lost its term.
      await service.service.ready();
      for (const [name, { run: program, prints, charges }] of Object.entries(RECIPES)) {
        await test.step(name, async () => {
          const app = await service.newApp();
          const holdfast = createClient({ apiKey: app.secretLive, baseUrl: served.url });
          await holdfast.subscriptions.upsert({ userId: "user_1", planId: "Pro" });
          const file = program === "" ? name.replace(/\.tsx?$/, ".js") : `run_${name}.mjs`;
          if (program !== "") await Deno.writeTextFile(`${folder}/${file}`, program);
          const printed = await run("node", [file], folder, {
            HOLDFAST_URL: served.url,
            HOLDFAST_KEY: app.secretLive,
            OPENAI_BASE_URL: `${models.url}/v1`,
            OPENAI_API_KEY: "sk-model-0123456789",
          });
          assert.equal(printed, prints);
          const { counters } = await holdfast.usage("user_1");
          const charged = counters.filter(({ count, unit }) => count > 0 && unit !== "cents");
          assert.deepEqual(
            Object.fromEntries(charged.map(({ unit, count }) => [unit, count])),
            charges,
          );
        });
      }
    } finally {
      await models.close();
      await served.close();
      await service.close();
      await Deno.remove(folder, { recursive: true });
    }
  },
});
