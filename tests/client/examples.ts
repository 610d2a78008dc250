// The examples of the client's docstrings and README as code. A line `console.log(value); // expected` is a check. In
// scope are the package's exports, `client` (a live secret key, with "user_1" on the plan Pro) and the app's
// `identitySecret`; keys such as "sk_test_..." are replaced by those of the app.

import type * as library from "../../src/client/client.ts";

const ROOT = new URL("../..", import.meta.url).pathname;

/** An example with its source. */
export interface Example {
  /** File and line. */
  readonly name: string;
  readonly code: string;
}

/** What an example finds in scope. */
export interface Scope {
  readonly client: library.HoldfastClient;
  readonly createClient: typeof library.createClient;
  readonly identitySecret: string;
}

/** An example as a function. */
export type Runnable = (scope: Scope) => Promise<void>;

/** All examples of the client's folder. */
export async function readExamples(): Promise<Example[]> {
  const examples: Example[] = [];
  for await (const { name } of Deno.readDir(`${ROOT}src/client`)) {
    if (!/\.(ts|md)$/.test(name)) continue;
    const path = `src/client/${name}`;
    examples.push(...examplesOf(path, await Deno.readTextFile(ROOT + path)));
  }
  return examples.sort((a, b) => a.name < b.name ? -1 : 1);
}

/** The examples of a file: fenced code in docstrings, or in Markdown. */
function examplesOf(path: string, text: string): Example[] {
  const isMarkdown = path.endsWith(".md");
  const found: Example[] = [];
  for (const match of text.matchAll(/^( \* | {3}\* |)```ts\n([\s\S]*?)^\1```$/gm)) {
    const [, margin = "", code = ""] = match;
    if (isMarkdown !== (margin === "")) continue;
    const line = text.slice(0, match.index).split("\n").length + 1;
    const lines = code.split("\n").map((row) =>
      row.startsWith(margin) ? row.slice(margin.length) : row.trim()
    );
    found.push({ name: `${path}:${line}`, code: lines.map((row) => row.replace(/^\*$/, "")).join("\n") });
  }
  return found;
}

/** A module whose default export is a list with a function for each example. */
export function moduleOf(examples: readonly Example[], client: string): string {
  const bodies = examples.map(({ name, code }) => {
    const body = code
      .replaceAll(/^import .* from "holdfast-client";$/gm, "")
      .replaceAll(/^( *)console\.log\((.*)\); \/\/ (.+)$/gm, "$1assert.deepEqual($2, $3);");
    return `// ${name}\nasync ({ client, createClient, identitySecret }: Scope) => {\n${body}\n},`;
  });
  return `import assert from "node:assert/strict";
import { type createClient as Create, HoldfastClient, HoldfastError, signEndUserToken, verifyWebhook } from "${client}";
interface Scope {
  client: HoldfastClient;
  createClient: typeof Create;
  identitySecret: string;
}
export default [\n${bodies.join("\n")}\n];\n`;
}
