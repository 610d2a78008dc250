// The embedded PostgreSQL's own files as modules, so that a compiled binary contains them and reads no folder except the
// data folder. PGlite would look for them in its package. Only opening a folder loads this module.

import data from "@electric-sql/pglite/pglite.data" with { type: "bytes" };
import initdb from "@electric-sql/pglite/initdb.wasm" with { type: "bytes" };
import server from "@electric-sql/pglite/pglite.wasm" with { type: "bytes" };
import type { PGliteOptions } from "@electric-sql/pglite";

/** Returns the options of PGlite that provide its files. */
export async function embeddedAssets(): Promise<
  Required<Pick<PGliteOptions, "pgliteWasmModule" | "initdbWasmModule" | "fsBundle">>
> {
  return {
    pgliteWasmModule: await WebAssembly.compile(server),
    initdbWasmModule: await WebAssembly.compile(initdb),
    fsBundle: new Blob([data]),
  };
}
