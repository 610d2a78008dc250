// The npm package of the service, used without Deno: packed, installed by npm, started by its command,
// asked for a reservation, and stopped by a signal that the command hands on. What is packed is what runs: no test,
// benchmark or compiler goes along.

import assert from "node:assert/strict";
import { packService } from "../../src/cli/service_package.ts";
import { CHILD_ENVIRONMENT, until, within } from "../crash/program.ts";

const INSTALL_MS = 120_000;
const READY_MS = 120_000;
const EXIT_MS = 60_000;

async function run(program: string, args: readonly string[], cwd: string): Promise<string> {
  const process = new Deno.Command(program, { args: [...args], cwd, stderr: "piped" });
  const { code, stdout, stderr } = await within(process.output(), INSTALL_MS, () => program);
  const text = new TextDecoder().decode(stdout);
  assert.equal(code, 0, `${program} ${args.join(" ")}\n${text}${new TextDecoder().decode(stderr)}`);
  return text;
}

/** The command of the package in a folder, as npm put it there, with what it prints. */
function start(folder: string, port: number) {
  const child = new Deno.Command(`${folder}/node_modules/.bin/holdfast`, {
    cwd: folder,
    env: { PORT: String(port), HOLDFAST_HOST: "127.0.0.1", HOLDFAST_DATA_DIR: "data", ...CHILD_ENVIRONMENT },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  let text = "";
  const keep = async (stream: ReadableStream<Uint8Array<ArrayBuffer>>) => {
    for await (const part of stream.pipeThrough(new TextDecoderStream())) text += part;
  };
  const ended = Promise.all([child.status, keep(child.stdout), keep(child.stderr)]).then(([status]) =>
    status
  );
  return { child, ended, output: () => text };
}

Deno.test("the package has the program and nothing of tests, benchmarks or compilers, the same bytes each time", async () => {
  const { fileName, paths, bytes } = await packService();
  assert.equal(fileName, "holdfast-0.1.0.tgz");
  for (
    const path of [
      "package.json",
      "README.md",
      "LICENSE",
      "holdfast.mjs",
      "program/src/main.ts",
      "program/routes/console/console.tsx",
      "program/routes/console/assets/htmx.js.gz",
    ]
  ) {
    assert.ok(paths.includes(path), path);
  }
  assert.deepEqual(paths.filter((path) => /tests\/|_test\.ts|client_pack|service_pack/.test(path)), []);
  assert.deepEqual((await packService()).bytes, bytes);
});

Deno.test("npm installs the package, and its command serves until a signal ends it with status 0", async () => {
  const folder = await Deno.makeTempDir({ prefix: "holdfast_package_" });
  try {
    const { fileName, bytes } = await packService();
    await Deno.writeFile(`${folder}/${fileName}`, bytes);
    await Deno.writeTextFile(`${folder}/package.json`, "{}");
    await run("npm", ["install", "--no-audit", "--no-fund", `./${fileName}`], folder);
    const installed = JSON.parse(
      await Deno.readTextFile(`${folder}/node_modules/holdfast/program/deno.json`),
    ) as { imports: Record<string, string> };
    for (const name of ["typescript", "fast-check", "autocannon"]) {
      assert.ok(!(name in installed.imports), name);
    }
    const { child, ended, output } = start(folder, 0);
    try {
      const origin = await until("the service listens", READY_MS, () => {
        return /Holdfast listens on (\S+)/.exec(output())?.[1] ?? null;
      });
      const key = /secret live +(\S+)/.exec(output())?.[1];
      const response = await fetch(`${origin}/api/v1/reserve`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}` },
        body: JSON.stringify({ userId: "user_demo", event: "image.render" }),
      });
      assert.equal((await response.json()).data.allowed, true);
      const page = await fetch(`${origin}/console/sign-in`);
      assert.equal(page.status, 200);
      const styles = /rel="stylesheet" href="([^"]+)"/.exec(await page.text())?.[1];
      assert.equal((await fetch(`${origin}${styles}`)).status, 200);
      const doctor = ["admin", "doctor", "--url", origin, "--json"];
      const env = { HOLDFAST_DATA_DIR: "data" };
      const command = new Deno.Command(`${folder}/node_modules/.bin/holdfast`, {
        args: doctor,
        cwd: folder,
        env,
      });
      assert.equal((await within(command.output(), EXIT_MS, () => "admin doctor")).code, 0);
    } finally {
      child.kill("SIGTERM");
      const status = await within(ended, EXIT_MS, output);
      assert.equal(status.code, 0, output());
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
