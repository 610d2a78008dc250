// The project's own files as the structure tests see them: lists, texts, and who imports whom by the compiler's word.

export const ROOT = new URL("../..", import.meta.url).pathname;
export const FOLDERS = ["src", "actors", "routes", "sql", "tests"];

/**
 * One import: the specifier as written, what it leads to (a path from the root, or the specifier itself), and whether a
 * start of the importing module loads it: neither an import of types nor one at a first use.
 */
export interface Import {
  readonly written: string;
  readonly target: string;
  readonly isLoadedFirst: boolean;
}

interface Dependency {
  readonly specifier: string;
  readonly code?: { readonly specifier: string };
  readonly type?: { readonly specifier: string };
  readonly isDynamic?: boolean;
}

interface ModuleInfo {
  readonly specifier: string;
  readonly dependencies?: readonly Dependency[];
}

/** Every file below a folder, as a path from the root. */
export async function* filesOf(folder: string): AsyncIterable<string> {
  for await (const { name, isDirectory } of Deno.readDir(`${ROOT}${folder}`)) {
    const path = `${folder}/${name}`;
    if (isDirectory) yield* filesOf(path);
    else yield path;
  }
}

/** A source file of ours: TypeScript, with or without markup in it. */
export const SOURCE = /\.tsx?$/;

/** Every source file below the folders. */
export async function sourceFiles(...folders: string[]): Promise<string[]> {
  const lists = await Promise.all(
    folders.map((folder) => Array.fromAsync(filesOf(folder))),
  );
  return lists.flat().filter((path) => SOURCE.test(path)).sort();
}

export async function textOf(path: string): Promise<string> {
  return await Deno.readTextFile(ROOT + path);
}

/** The folder of a path, with its final slash. */
export function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/") + 1);
}

let graph: Promise<ReadonlyMap<string, readonly Import[]>> | undefined;

/** Every source file with its imports, types included. */
export function importGraph(): Promise<ReadonlyMap<string, readonly Import[]>> {
  graph ??= readGraph();
  return graph;
}

/** Programs of projects that use the client: they import it, and packages of their own, as its users do. */
const USERS = "src/client/examples/";

/** One module that imports every file, so that the compiler is asked once. */
async function readGraph(): Promise<ReadonlyMap<string, readonly Import[]>> {
  const entry = await Deno.makeTempFile({ suffix: ".ts" });
  try {
    const files = (await sourceFiles(...FOLDERS)).filter((path) => !path.startsWith(USERS));
    await Deno.writeTextFile(entry, files.map((path) => `import "file://${ROOT}${path}";\n`).join(""));
    const { stdout, stderr, success } = await new Deno.Command(Deno.execPath(), {
      args: ["info", "--lock=tests/deno.lock", "--json", "--config", `${ROOT}deno.json`, "--frozen", entry],
      cwd: ROOT,
    }).output();
    const decoder = new TextDecoder();
    if (!success) throw new Error(decoder.decode(stderr));
    const { modules } = JSON.parse(decoder.decode(stdout)) as { modules: ModuleInfo[] };
    const here = `file://${ROOT}`;
    const importsOf = ({ dependencies = [] }: ModuleInfo) =>
      dependencies.map(({ specifier, code, type, isDynamic = false }) => {
        const found = code?.specifier ?? type?.specifier ?? specifier;
        return {
          written: specifier,
          target: found.startsWith(here) ? found.slice(here.length) : specifier,
          isLoadedFirst: code !== undefined && !isDynamic,
        };
      });
    return new Map(
      modules.filter(({ specifier }) => specifier.startsWith(here))
        .map((info) => [info.specifier.slice(here.length), importsOf(info)]),
    );
  } finally {
    await Deno.remove(entry);
  }
}
