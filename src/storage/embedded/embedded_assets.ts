// The embedded PostgreSQL's own files as modules, so that they are inside a compiled binary and no folder beside the
// data folder is read. PGlite would look for them in its package. Loaded by who opens a folder, and by nobody else.

import data from "@electric-sql/pglite/pglite.data" with { type: "bytes" };
import initdb from "@electric-sql/pglite/initdb.wasm" with { type: "bytes" };
import server from "@electric-sql/pglite/pglite.wasm" with { type: "bytes" };
import type { PGliteOptions } from "@electric-sql/pglite";

/** The options that give PGlite its files. */
export async function embeddedAssets(): Promise<
  Required<Pick<PGliteOptions, "pgliteWasmModule" | "initdbWasmModule" | "fsBundle">>
> {
  return {
    pgliteWasmModule: await WebAssembly.compile(server),
    initdbWasmModule: await WebAssembly.compile(initdb),
    fsBundle: new Blob([data]),
  };
}
