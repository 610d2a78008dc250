// The client as an npm package: its sources compiled to JavaScript and declarations, with manifest, README and license,
// in a gzipped tar archive. The same sources give the same bytes. It is compiled
// against the language and the web's interfaces alone, so a use of Deno or Node in the client does not compile.

import ts from "npm:typescript@5.9.3";
import manifest from "../client/npm.json" with { type: "json" };
import { packTarball, type Tarball } from "./tarball.ts";

const ROOT = new URL("../..", import.meta.url);
const SOURCES = new URL("src/client/", ROOT);
const ENTRIES = ["client.ts", "ai.ts", "anthropic.ts", "hono.ts", "openai.ts", "react.ts"].map((name) =>
  new URL(name, SOURCES).pathname
);

/** Declarations of the parts of optional packages that the client uses, so that they need not be installed here. */
const PEERS = {
  path: new URL("peers.d.ts", SOURCES).pathname,
  text: `declare module "npm:react@19.3.1" {
  export function useCallback<Call>(call: Call, dependencies: readonly unknown[]): Call;
  export function useMemo<Value>(make: () => Value, dependencies: readonly unknown[]): Value;
  export function useSyncExternalStore<State>(
    subscribe: (onChange: () => void) => () => void, read: () => State, readOnServer: () => State,
  ): State;
}
declare module "npm:hono@4.13.19" {
  export type Env = { Variables?: object; Bindings?: object };
  export interface Context<E extends Env> { readonly res: Response; readonly error: Error | undefined }
  export type MiddlewareHandler<E extends Env> =
    (context: Context<E>, next: () => Promise<void>) => Promise<Response | void>;
}`,
};

const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2022,
  lib: ["lib.es2022.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts"],
  types: [],
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  rewriteRelativeImportExtensions: true,
  verbatimModuleSyntax: true,
  declaration: true,
  strict: true,
  noUncheckedIndexedAccess: true,
  exactOptionalPropertyTypes: true,
  skipDefaultLibCheck: true,
  newLine: ts.NewLineKind.LineFeed,
};

/** Thrown when the client does not compile; the message has the places. */
export class CompileError extends Error {}

/** Makes the package from the current sources. */
export async function packClient(): Promise<Tarball> {
  const files = compile();
  files.set("package.json", `${JSON.stringify(manifest, null, 2)}\n`);
  files.set("README.md", await Deno.readTextFile(new URL("README.md", SOURCES)));
  files.set("LICENSE", await Deno.readTextFile(new URL("LICENSE", ROOT)));
  return await packTarball(manifest, files);
}

/** JavaScript and declarations by file name. */
function compile(): Map<string, string> {
  const program = ts.createProgram([...ENTRIES, PEERS.path], OPTIONS, hostWithPeers());
  const files = new Map<string, string>();
  const { diagnostics } = program.emit(undefined, (path, text) => {
    const name = path.split("/").at(-1) as string;
    // The compiler rewrites the .ts endings of imports in code, but not in declarations.
    files.set(
      name,
      name.endsWith(".d.ts")
        ? withBareNames(text).replaceAll(/(from |import\()"(\.\/\w+)\.ts"/g, '$1"$2.js"')
        : withBareNames(text).replaceAll(/^\/\/ @ts-types=.*\n/gm, ""),
    );
  });
  const faults = [...ts.getPreEmitDiagnostics(program), ...diagnostics];
  if (faults.length > 0) throw new CompileError(textOf(faults));
  return files;
}

/** Names peers without a version: the user's own version is used. */
function withBareNames(text: string): string {
  return text.replaceAll(/(from )"npm:(\w+)@[\d.]+"/g, '$1"$2"');
}

function hostWithPeers(): ts.CompilerHost {
  const host = ts.createCompilerHost(OPTIONS);
  const { getSourceFile, fileExists } = host;
  host.getSourceFile = (path, version, ...rest) =>
    path === PEERS.path
      ? ts.createSourceFile(path, PEERS.text, version)
      : getSourceFile.call(host, path, version, ...rest);
  host.fileExists = (path) => path === PEERS.path || fileExists.call(host, path);
  return host;
}

/** The compiler's messages, one a line. */
export function textOf(diagnostics: readonly ts.Diagnostic[]): string {
  return ts.formatDiagnostics(diagnostics, {
    getCanonicalFileName: (name) => name,
    getCurrentDirectory: () => ROOT.pathname,
    getNewLine: () => "\n",
  });
}
