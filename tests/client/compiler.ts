// Compiles text that exists only while a test runs: types from the OpenAPI document, and the examples of the client.
// It stands beside the tests' own files, so its imports are relative to this folder.

import ts from "npm:typescript@5.9.3";

const FOLDER = new URL(".", import.meta.url).pathname;

/**
 * What examples use beyond the language. The library of browsers has all of it and more, but reading it takes longer
 * than everything else here.
 */
const SURROUNDINGS = `
declare const console: { log(...values: unknown[]): void; warn(...values: unknown[]): void };
interface AbortSignal { readonly aborted: boolean; readonly reason: unknown }
declare class AbortController { readonly signal: AbortSignal; abort(reason?: unknown): void }
declare module "node:assert/strict" {
  const assert: { deepEqual(actual: unknown, expected: unknown): void };
  export default assert;
}`;

const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2022,
  lib: ["lib.es2022.d.ts"],
  types: [],
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  allowImportingTsExtensions: true,
  noEmit: true,
  strict: true,
  noUncheckedIndexedAccess: true,
  exactOptionalPropertyTypes: true,
  // As deep as a message may go: a union of differences is told whole.
  noErrorTruncation: true,
};

/** Modules that exist as text alone, by file name. */
export class Compiled {
  readonly #program: ts.Program;

  constructor(modules: Readonly<Record<string, string>>) {
    const texts = new Map(
      Object.entries({ ...modules, "surroundings.d.ts": SURROUNDINGS }).map((
        [name, text],
      ) => [FOLDER + name, text]),
    );
    const host = ts.createCompilerHost(OPTIONS);
    const { getSourceFile, fileExists, readFile } = host;
    host.getSourceFile = (path, version, ...rest) => {
      const text = texts.get(path);
      return text === undefined
        ? getSourceFile.call(host, path, version, ...rest)
        : ts.createSourceFile(path, text, version);
    };
    host.fileExists = (path) => texts.has(path) || fileExists.call(host, path);
    host.readFile = (path) => texts.get(path) ?? readFile.call(host, path);
    this.#program = ts.createProgram([...texts.keys()], OPTIONS, host);
  }

  /** What is wrong with a module, as "line: message". */
  faultsOf(module: string): string[] {
    const file = this.#fileOf(module);
    const found = [
      ...this.#program.getSyntacticDiagnostics(file),
      ...this.#program.getSemanticDiagnostics(file),
    ];
    return found.map(({ start = 0, messageText }) => {
      const { line } = file.getLineAndCharacterOfPosition(start);
      return `${line + 1}: ${ts.flattenDiagnosticMessageText(messageText, "\n")}`;
    });
  }

  /** The members of each exported union of strings, by the name of its type; `never` has none. */
  unionsOf(module: string): Record<string, string[]> {
    const checker = this.#program.getTypeChecker();
    const symbol = checker.getSymbolAtLocation(this.#fileOf(module));
    if (symbol === undefined) throw new Error(`${module} exports nothing`);
    return Object.fromEntries(
      checker.getExportsOfModule(symbol).map((exported) => {
        const type = checker.getDeclaredTypeOfSymbol(exported);
        const members = type.isUnion() ? type.types : (type.flags & ts.TypeFlags.Never) !== 0 ? [] : [type];
        return [
          exported.name,
          members.map((member) => checker.typeToString(member).replaceAll(/["`]/g, "")).sort(),
        ];
      }),
    );
  }

  #fileOf(module: string): ts.SourceFile {
    const file = this.#program.getSourceFile(FOLDER + module);
    if (file === undefined) throw new Error(`There is no module ${module}`);
    return file;
  }
}
