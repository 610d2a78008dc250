// The client's types against the OpenAPI document, and the types of every example. Both are compiled by one program
// of text that exists only here.

import assert from "node:assert/strict";
import openapiTS, { astToString } from "npm:openapi-typescript@7.13.0";
import { SURFACE } from "../../routes/surface.ts";
import { STATUS } from "../../routes/http/errors.ts";
import { makeDocument } from "../../routes/reference/openapi.ts";
import { Compiled } from "./compiler.ts";
import { moduleOf, readExamples } from "./examples.ts";

/** Types of the document's operations under /api/v1, which are those of the client, but for what Stripe itself calls. */
async function generateTypes(): Promise<string> {
  const document = makeDocument(SURFACE);
  const paths = Object.entries(document.paths as object).filter(([path]) =>
    path.startsWith("/api/v1/") && !path.startsWith("/api/v1/stripe/")
  );
  const nodes = await openapiTS(
    { ...document, paths: Object.fromEntries(paths) } as never,
    { emptyObjectsUnknown: true },
  );
  return astToString(nodes);
}

const COMPARISON = `
import type { operations, webhooks } from "./document.ts";
import type { Differences, MessageDifferences } from "./agreement.ts";
export type Found = Differences<operations>;
export type FoundOfMessages = MessageDifferences<webhooks>;
`;

/** Pairs of types with what the comparison must find in them, so that it cannot pass by finding nothing. */
const PLANTED:
  readonly (readonly [document: string, own: string, to: "answer" | "input", found: string[]])[] = [
    ["{ a: string }", "{ a: string }", "answer", []],
    ["{ a: string }", "{ a: number }", "answer", ["x.a"]],
    ["{ a: string; b: string }", "{ a: string }", "answer", ["x.b: unknown to the client"]],
    ["{ a: string }", "{ a: string; b?: string }", "answer", ["x.b: unknown to the document"]],
    ["{ a?: string }", "{ a: string }", "answer", ["x.a: optional on one side"]],
    ["{ a: string }", "{ a?: string }", "answer", ["x.a: optional on one side"]],
    ["{ a: string | null }", "{ a: string }", "answer", ["x.a"]],
    ['{ a: ("b" | "c")[] }', '{ a: "b"[] }', "answer", ["x.a[]"]],
    ["{ a: { b: number }[] }", "{ a: readonly { b: string }[] }", "answer", ["x.a[].b"]],
    ["{ a: { b: number } }", "{ a: number }", "answer", ["x.a", "x.a: only one side has an object"]],
    ["{ a: boolean; b?: string }", "{ a: true; b: string } | { a: false; b?: undefined }", "answer", []],
    ["{ a: boolean; b?: string }", "{ a: true; b: string } | { a: true; b?: undefined }", "answer", ["x.a"]],
    ["{ a: string }", "{ a: string | Date }", "input", []],
    ["{ a?: string | null }", "{ a?: string | undefined }", "input", []],
    ["{ a: string }", "{ a?: string }", "input", ["x.a: optional on one side"]],
    ["{ a?: string }", "{ a?: string | null }", "input", ["x.a"]],
    ['{ a: "b" | "c" }', '{ a: "b" }', "input", ["x.a"]],
  ];

/** Messages as a document could have them, each wrong in another way. */
const PLANTED_MESSAGES = `
import type { webhooks } from "./document.ts";
import type { MessageDifferences } from "./agreement.ts";
interface Message<Body> { post: { requestBody: { content: { "application/json": Body } } } }
interface Planted extends Omit<webhooks, "ping"> {
  ping: Message<{ type: "ping"; timestamp?: string; data: { appId: string } }>;
  "user.split": Message<object>;
}
export type OfMessages = MessageDifferences<Planted>;
`;

const plants = PLANTED.map(([document, own, to], index) =>
  `export type Plant${index} = Different<${document}, ${own}, "x", "${to}">;`
);

const examples = await readExamples();
const compiled = new Compiled({
  "document.ts": await generateTypes(),
  "comparison.ts": COMPARISON,
  "planted.ts": PLANTED_MESSAGES,
  "plants.ts": `import type { Different } from "./agreement.ts";\n${plants.join("\n")}`,
  "all_examples.ts": moduleOf(examples, "../../src/client/client.ts"),
});

Deno.test("the client's types are those of the OpenAPI document, member by member", () => {
  assert.deepEqual(compiled.unionsOf("comparison.ts").Found, []);
});

Deno.test("the client's messages of webhooks are those of the OpenAPI document, type by type", () => {
  assert.deepEqual(compiled.unionsOf("comparison.ts").FoundOfMessages, []);
  assert.deepEqual(compiled.unionsOf("planted.ts").OfMessages, [
    "ping.data.mode: unknown to the document",
    "ping.timestamp: optional on one side",
    "user.split: unknown to the client",
  ]);
});

Deno.test("the comparison finds every kind of difference", () => {
  const found = compiled.unionsOf("plants.ts");
  for (const [index, [document, own, to, expected]] of PLANTED.entries()) {
    assert.deepEqual(found[`Plant${index}`], expected, `${to}: ${document} and ${own}`);
  }
});

Deno.test("every example compiles", () => {
  assert.deepEqual(compiled.faultsOf("all_examples.ts"), []);
});

Deno.test("the README's table has every error code of the service with its status", async () => {
  const readme = await Deno.readTextFile(new URL("../../src/client/README.md", import.meta.url));
  const rows = [...readme.matchAll(/^\| (`[\w`, ]+`) +\| ([\d, ]+?) +\|/gm)];
  const missing = Object.entries(STATUS).filter(([code, status]) =>
    code !== "not_processed" &&
    !rows.some(([, codes = "", statuses = ""]) =>
      codes.includes(`\`${code}\``) && statuses.includes(String(status))
    )
  );
  assert.deepEqual(missing, []);
});
