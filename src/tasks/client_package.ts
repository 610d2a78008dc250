// The client as an npm package: its sources compiled to JavaScript and declarations, with manifest, README and license,
// in a gzipped tar archive. The same sources give the same bytes. Only what every platform has is there to compile
// against (the language and the web's interfaces), so a use of Deno or Node in the client does not compile.

import ts from "typescript";
import manifest from "../client/npm.json" with { type: "json" };

const ROOT = new URL("../..", import.meta.url);
const SOURCES = new URL("src/client/", ROOT);
const ENTRY = new URL("client.ts", SOURCES).pathname;

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

/** A package ready to be installed. */
export interface ClientPackage {
  /** As npm names such files. */
  readonly fileName: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Paths in the package, in order. */
  readonly paths: readonly string[];
}

/** The client does not compile; the message says where. */
export class CompileError extends Error {}

/** Makes the package from the sources as they are. */
export async function packClient(): Promise<ClientPackage> {
  const files = compile();
  files.set("package.json", `${JSON.stringify(manifest, null, 2)}\n`);
  files.set("README.md", await Deno.readTextFile(new URL("README.md", SOURCES)));
  files.set("LICENSE", await Deno.readTextFile(new URL("LICENSE", ROOT)));
  const paths = [...files.keys()].sort();
  const entries = paths.map((path) => entryOf(`package/${path}`, files.get(path) as string));
  const tar = new Blob([...entries.flat(), new Uint8Array(2 * BLOCK_BYTES)]);
  const zipped = new Response(tar.stream().pipeThrough(new CompressionStream("gzip")));
  return { fileName: `${manifest.name}-${manifest.version}.tgz`, bytes: await zipped.bytes(), paths };
}

/** JavaScript and declarations by file name. */
function compile(): Map<string, string> {
  const program = ts.createProgram([ENTRY], OPTIONS);
  const files = new Map<string, string>();
  const { diagnostics } = program.emit(undefined, (path, text) => {
    const name = path.split("/").at(-1) as string;
    // The compiler leaves the endings in declarations as they were written.
    files.set(
      name,
      name.endsWith(".d.ts") ? text.replaceAll(/(from |import\()"(\.\/\w+)\.ts"/g, '$1"$2.js"') : text,
    );
  });
  const faults = [...ts.getPreEmitDiagnostics(program), ...diagnostics];
  if (faults.length > 0) throw new CompileError(textOf(faults));
  return files;
}

/** What a compiler has to say, a line each. */
export function textOf(diagnostics: readonly ts.Diagnostic[]): string {
  return ts.formatDiagnostics(diagnostics, {
    getCanonicalFileName: (name) => name,
    getCurrentDirectory: () => ROOT.pathname,
    getNewLine: () => "\n",
  });
}

const BLOCK_BYTES = 512;
const encoder = new TextEncoder();

/** A file of a tar archive: header, content, and zeros up to a whole block. */
function entryOf(path: string, text: string): Uint8Array<ArrayBuffer>[] {
  const content = encoder.encode(text);
  const rest = (BLOCK_BYTES - content.length % BLOCK_BYTES) % BLOCK_BYTES;
  return [headerOf(path, content.length), content, new Uint8Array(rest)];
}

/** The header of a plain file that everybody may read; its time is the format's zero, so that bytes repeat. */
function headerOf(path: string, bytes: number): Uint8Array<ArrayBuffer> {
  const header = new Uint8Array(BLOCK_BYTES);
  const put = (place: number, text: string) => header.set(encoder.encode(text), place);
  const octal = (value: number, digits: number) => `${value.toString(8).padStart(digits, "0")}\0`;
  put(0, path);
  put(100, octal(0o644, 7));
  put(108, octal(0, 7));
  put(116, octal(0, 7));
  put(124, octal(bytes, 11));
  put(136, octal(0, 11));
  put(148, " ".repeat(8));
  put(156, "0");
  put(257, "ustar\0" + "00");
  put(148, `${octal(header.reduce((sum, byte) => sum + byte, 0), 6)} `);
  return header;
}
