// The compile task makes the program that the start task runs: the same permissions and engine, and every worker.

import assert from "node:assert/strict";
import { WORKERS } from "./workers.ts";

const ROOT = new URL("../..", import.meta.url).pathname;

Deno.test("a binary is compiled with the permissions and the engine of the start task, and with its workers", async () => {
  const { tasks } = JSON.parse(await Deno.readTextFile(`${ROOT}deno.json`)) as {
    tasks: Record<string, string>;
  };
  const flags = (task: string) =>
    (tasks[task] ?? "").split(" ").filter((arg) => /^--(allow|no-prompt|v8-flags)/.test(arg));
  assert.deepEqual(flags("compile"), flags("start"));
  const included = [...(tasks.compile ?? "").matchAll(/--include (\S+)/g)].map(([, path]) => path);
  assert.deepEqual(included, WORKERS);
  const started: string[] = [];
  for (const folder of ["src", "actors", "routes"]) {
    for await (const path of typescriptFiles(folder)) {
      const text = await Deno.readTextFile(`${ROOT}${path}`);
      for (const [, file] of text.matchAll(/new Worker\(new URL\("\.\/([^"]+)"/g)) {
        started.push(path.replace(/[^/]+$/, file as string));
      }
    }
  }
  assert.deepEqual(started.sort(), WORKERS);
});

async function* typescriptFiles(folder: string): AsyncIterable<string> {
  for await (const { name, isDirectory } of Deno.readDir(`${ROOT}${folder}`)) {
    const path = `${folder}/${name}`;
    if (isDirectory) yield* typescriptFiles(path);
    else if (name.endsWith(".ts")) yield path;
  }
}
