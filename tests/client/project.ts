// A project as a user of the client has it: the folder of the examples, with the packed client and the real packages
// installed. Deno installs them as for every test: in the versions of the lock, from its cache where they are there.

import assert from "node:assert/strict";
import { packClient } from "../../src/cli/client_package.ts";

const EXAMPLES = new URL("../../src/client/examples/", import.meta.url);
const TIMEOUT_MS = 120_000;

/** Runs a program in a folder to its end; answers what it printed. */
export async function run(
  command: string,
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
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

/** Whether the machine has a program. */
export async function has(program: string): Promise<boolean> {
  try {
    const command = new Deno.Command(program, { args: ["--version"], stdout: "null", stderr: "null" });
    return (await command.output()).success;
  } catch {
    return false;
  }
}

/** Makes the project, with more programs by their paths; answers the names of the examples, in order. */
export async function makeProject(folder: string, programs: ReadonlyMap<string, string>): Promise<string[]> {
  const names: string[] = [];
  for await (const { name, isFile } of Deno.readDir(EXAMPLES)) {
    if (!isFile || !/\.(tsx?|json)$/.test(name)) continue;
    await Deno.copyFile(new URL(name, EXAMPLES), `${folder}/${name}`);
    if (!name.endsWith(".json")) names.push(name);
  }
  for (const [path, code] of programs) {
    await Deno.mkdir(`${folder}/${path}`.replace(/\/[^/]+$/, ""), { recursive: true });
    await Deno.writeTextFile(`${folder}/${path}`, code);
  }
  await install(folder);
  return names.sort();
}

async function install(folder: string): Promise<void> {
  const { dependencies, ...project } = JSON.parse(await Deno.readTextFile(`${folder}/package.json`));
  // Deno installs no package from a file.
  const { "holdfast-client": _, ...others } = dependencies;
  await Deno.writeTextFile(`${folder}/package.json`, JSON.stringify({ ...project, dependencies: others }));
  await Deno.writeTextFile(`${folder}/deno.json`, JSON.stringify({ nodeModulesDir: "manual" }));
  await Deno.copyFile(new URL("../deno.lock", import.meta.url), `${folder}/deno.lock`);
  await run(Deno.execPath(), ["install"], folder);
  const { bytes, fileName } = await packClient();
  const installed = `${folder}/node_modules/holdfast-client`;
  await Deno.mkdir(installed);
  await Deno.writeFile(`${folder}/${fileName}`, bytes);
  await run("tar", ["xzf", fileName, "-C", installed, "--strip-components=1"], folder);
}

/** Compiles every program of the project, with the settings of the examples. */
export async function compile(folder: string): Promise<void> {
  await run("node", ["node_modules/typescript/bin/tsc"], folder);
}
