// The service as an npm package: the program's files, what Deno needs to run them (import map, lock, permissions), and
// a command that starts it with the `deno` package. Tests, benchmarks and compilers are left out.

import manifest from "../operations/package/npm.json" with { type: "json" };
import { packTarball, type Tarball } from "./tarball.ts";

const ROOT = new URL("../..", import.meta.url);
const OWN_FILES = new URL("src/operations/package/", ROOT);
const FOLDERS = ["src", "actors", "routes", "sql"];
/** Files that only a checkout needs: tasks that pack or write files, examples, documents. */
const LEFT_OUT =
  /^src\/(operations\/package\/|client\/examples\/|cli\/(client_|type_writer|service_|catalog_schema|tarball))|\.md$/;
/** Commands of an installed package, by the names of their tasks. */
const COMMANDS = [
  "start",
  "admin",
  "sweep",
  "move-history",
  "migrate",
  "reconcile",
  "whatif",
  "mcp",
  "openapi",
  "dashboard",
];

/** Options with which the runtime compiles the pages of the console. */
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

/** Makes the package from the current files. */
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
  files.set("commands.json", jsonText(commandsOf(config.tasks, program)));
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

/** The flags, with the permissions, and the module of each command, from its task. */
function commandsOf(
  tasks: Config["tasks"],
  program: ReadonlyMap<string, unknown>,
): Record<string, { flags: string[]; module: string }> {
  return Object.fromEntries(COMMANDS.map((name) => {
    const words = (tasks[name] ?? "").replaceAll("'", "").split(" ");
    const [deno, run, ...flags] = words.slice(0, -1);
    const module = words.at(-1) ?? "";
    if (deno !== "deno" || run !== "run" || !program.has(module)) {
      throw new Error(`The task "${name}" does not run a file of the package`);
    }
    return [name, { flags, module }];
  }));
}
