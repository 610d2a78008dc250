// The service as an npm package: the program's files, what Deno needs to run them (import map, lock, permissions), and
// a command that starts it with the `deno` package. Nothing of tests, benchmarks or compilers goes along.

import manifest from "../operations/package/npm.json" with { type: "json" };
import { packTarball, type Tarball } from "./tarball.ts";

const ROOT = new URL("../..", import.meta.url);
const OWN_FILES = new URL("src/operations/package/", ROOT);
const FOLDERS = ["src", "actors", "routes", "sql"];
/** Tasks of a checkout, which need its compiler or write into it, and what only a person at a checkout reads. */
const LEFT_OUT =
  /^src\/(operations\/|client\/examples\/|tasks\/(client_|service_|catalog_schema|tarball))|\.md$/;
/** What an installed package can run, by the names of the tasks. */
const COMMANDS = [
  "start",
  "admin",
  "sweep",
  "move-history",
  "migrate",
  "reconcile",
  "replay",
  "mcp",
  "openapi",
];

/** How the pages of the console are compiled, which the runtime does when it loads them. */
interface MarkupOptions {
  readonly jsx: string;
  readonly jsxImportSource: string;
}

interface Config {
  readonly compilerOptions: MarkupOptions;
  readonly imports: Readonly<Record<string, string>>;
  readonly tasks: Readonly<Record<string, string>>;
  readonly [member: string]: unknown;
}

/** Makes the package from the files as they are. */
export async function packService(): Promise<Tarball> {
  const program = await programFiles();
  const config = JSON.parse(await Deno.readTextFile(new URL("deno.json", ROOT))) as Config;
  const { nodeModulesDir, imports, unstable } = config;
  const { jsx, jsxImportSource } = config.compilerOptions;
  const compilerOptions = { jsx, jsxImportSource };
  const files = new Map<string, string | Uint8Array<ArrayBuffer>>();
  for (const [path, bytes] of program) files.set(`program/${path}`, bytes);
  files.set(
    "program/deno.json",
    jsonText({ nodeModulesDir, imports, compilerOptions, unstable, lock: { frozen: true } }),
  );
  files.set("program/deno.lock", await Deno.readTextFile(new URL("deno.lock", ROOT)));
  files.set("commands.json", jsonText(commandsOf(config.tasks)));
  files.set("package.json", jsonText(manifest));
  files.set("holdfast.mjs", await Deno.readTextFile(new URL("holdfast.mjs", OWN_FILES)));
  files.set("README.md", await Deno.readTextFile(new URL("README.md", OWN_FILES)));
  files.set("LICENSE", await Deno.readTextFile(new URL("LICENSE", ROOT)));
  return await packTarball(manifest, files);
}

function jsonText(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

async function programFiles(): Promise<Map<string, Uint8Array<ArrayBuffer>>> {
  const files = new Map<string, Uint8Array<ArrayBuffer>>();
  const add = async (folder: string) => {
    for await (const { name, isDirectory } of Deno.readDir(new URL(folder, ROOT))) {
      const path = `${folder}/${name}`;
      if (isDirectory) await add(path);
      else if (!LEFT_OUT.test(path)) files.set(path, await Deno.readFile(new URL(path, ROOT)));
    }
  };
  for (const folder of FOLDERS) await add(folder);
  return files;
}

/** The flags, permissions among them, and the module of each command, as its task has them. */
function commandsOf(tasks: Config["tasks"]): Record<string, { flags: string[]; module: string }> {
  return Object.fromEntries(COMMANDS.map((name) => {
    const words = (tasks[name] ?? "").replaceAll("'", "").split(" ");
    const [deno, run, ...flags] = words.slice(0, -1);
    const module = words.at(-1) ?? "";
    if (deno !== "deno" || run !== "run" || !module.endsWith(".ts")) {
      throw new Error(`The task "${name}" runs no file`);
    }
    return [name, { flags, module }];
  }));
}
