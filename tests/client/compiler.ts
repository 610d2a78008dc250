// Compiles a module that exists only while a test runs: the examples of the client. Its imports are relative to this
// folder.

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
};

/** The faults of a module that exists only as text, as "line: message". */
export function faultsOf(text: string): string[] {
  const path = `${FOLDER}module.ts`;
  const texts = new Map([[path, text], [`${FOLDER}surroundings.d.ts`, SURROUNDINGS]]);
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
  const program = ts.createProgram([...texts.keys()], OPTIONS, host);
  const file = program.getSourceFile(path) as ts.SourceFile;
  const found = [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)];
  return found.map(({ start = 0, messageText }) => {
    const { line } = file.getLineAndCharacterOfPosition(start);
    return `${line + 1}: ${ts.flattenDiagnosticMessageText(messageText, "\n")}`;
  });
}
