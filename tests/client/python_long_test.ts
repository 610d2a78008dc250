// A client in Python as the reference's README has it made: OpenAPI Generator writes it from the form of OpenAPI 3.0, and
// the README's program runs on it with a running service. Deno installs the generator as for every test, from its cache
// where it is there. Without Java, or without the Python packages that such a client needs, this test is ignored.

import assert from "node:assert/strict";
import { createClient } from "../../src/client/client.ts";
import { startTestService } from "../support/test_service.ts";
import { runTask, serve } from "../tasks/support.ts";
import { run } from "./project.ts";

const README = new URL("../../routes/reference/README.md", import.meta.url);
const GENERATOR = "@openapitools/openapi-generator-cli";
/** The generator runs for seconds: too short for optimised code to repay its compilation. */
const SHORT_RUN = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"];
const NEEDED = "import certifi, dateutil, six, urllib3";

async function works(command: string, args: readonly string[]): Promise<boolean> {
  try {
    await run(command, args, ".");
    return true;
  } catch {
    return false;
  }
}

/** The README's program, what it prints, and the generator's version and options. */
async function readRecipe() {
  const readme = await Deno.readTextFile(README);
  const found =
    /^npx -y (\S+)@(\S+) ([\s\S]*?)^pip install[\s\S]*?^```python\n([\s\S]*?)^```\n\n```text\n([\s\S]*?)^```/m
      .exec(readme);
  assert.ok(found !== null, "the README has the recipe");
  const [, name, version = "", line = "", program = "", printed = ""] = found;
  assert.equal(name, GENERATOR);
  return { version, args: line.replace("\\\n", "").trim().split(/\s+/), program, printed };
}

Deno.test({
  name: "the README's program in Python runs on a client that a generator made of the document",
  ignore: !(await works("java", ["-version"]) && await works("python3", ["-c", NEEDED])),
  fn: async () => {
    const { version, args, program, printed } = await readRecipe();
    const folder = await Deno.makeTempDir({ prefix: "holdfast_python_" });
    const service = await startTestService();
    const served = serve((request) => service.http.fetch(request));
    try {
      const { code, out, err } = await runTask("openapi", ["--version", "3.0"]);
      assert.equal(code, 0, err);
      await Deno.writeTextFile(`${folder}/holdfast.json`, out);
      const project = { dependencies: { [GENERATOR]: version } };
      await Deno.writeTextFile(`${folder}/package.json`, JSON.stringify(project));
      await Deno.writeTextFile(`${folder}/deno.json`, JSON.stringify({ nodeModulesDir: "manual" }));
      await run(Deno.execPath(), ["install"], folder);
      const jar = `node_modules/${GENERATOR}/bin/openapi-generator.jar`;
      await run("java", [...SHORT_RUN, "-jar", jar, ...args], folder);
      await Deno.writeTextFile(`${folder}/program.py`, program);
      const { secretLive } = await service.newApp();
      await createClient({ apiKey: secretLive, baseUrl: served.url })
        .subscriptions.upsert({ userId: "user_demo", planId: "Pro" });
      const said = await run("python3", ["program.py"], folder, {
        HOLDFAST_URL: served.url,
        HOLDFAST_KEY: secretLive,
        PYTHONPATH: `${folder}/holdfast-python`,
      });
      assert.equal(said, printed);
    } finally {
      await served.close();
      await service.close();
      await Deno.remove(folder, { recursive: true });
    }
  },
});
