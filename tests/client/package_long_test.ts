// The npm package: packed, installed by npm from its file without a registry, type-checked in a fresh project, and used
// by Node with a running service. Without npm on the machine this test is ignored.

import assert from "node:assert/strict";
import { Webhook } from "standardwebhooks";
import ts from "npm:typescript@5.9.3";
import { packClient, textOf } from "../../src/cli/client_package.ts";
import { runTask, serve } from "../tasks/support.ts";
import { startTestService } from "../support/test_service.ts";
import { has, run } from "./project.ts";

/** What a user of the package writes: it compiles under strict rules and runs on Node. */
const PROGRAM = `
import assert from "node:assert/strict";
import { createClient, HoldfastError, signEndUserToken, type ReserveAnswer, verifyWebhook } from "holdfast-client";

const [baseUrl, apiKey, publicKey, identitySecret, signed] = process.argv.slice(2) as [
  string, string, string, string, string,
];
const retried: string[] = [];
const client = createClient({
  apiKey,
  baseUrl,
  retries: { baseDelayMs: 1 },
  onRetry: ({ path, error }) => retried.push(\`\${path} \${error.code}\`),
});
await client.subscriptions.upsert({ userId: "u", planId: "Pro" });
const hold: ReserveAnswer = await client.reserve("u", "image.render", 1, { model: "flux-pro" });
if (!hold.allowed) throw new Error(hold.reasons.join());
const { groups } = await client.commit(hold.reservationId, { costCents: 4.2 });
assert.deepEqual(groups.map(({ current }) => current), [1, 1]);
await assert.rejects(client.commit(hold.reservationId), (error) =>
  error instanceof HoldfastError && error.code === "reservation_not_pending" && error.requestId !== null);

const endUserToken = await signEndUserToken({ identitySecret, userId: "u" });
const page = createClient({ apiKey: publicKey, baseUrl, endUserToken });
const request = JSON.parse(signed);
const message = await verifyWebhook(request);
assert.deepEqual(message.type === "user.merged" ? message.data.from : null, "a");
await assert.rejects(verifyWebhook({ ...request, body: "{}" }), (error) =>
  error instanceof HoldfastError && error.code === "invalid_webhook");
console.log(JSON.stringify({ retried, counts: (await page.usageMe()).counters.map(({ count }) => count) }));
`;

/** What a page writes: it compiles without the types of React, which the page has and this project lacks. */
const PAGE = `
import { createClient } from "holdfast-client";
import { type LiveUsage, useUsage } from "holdfast-client/react";

const client = createClient({ apiKey: "pk_live_x", baseUrl: "https://holdfast.example.com" });
export function useImagesLeft(): number | null {
  const { usage, isLive }: LiveUsage = useUsage({ client, event: "image.*" });
  return isLive ? usage?.counters[0]?.remaining ?? null : null;
}
`;

/** Mistakes that the compiler must find, one a line. */
const MISTAKES = `
import { createClient, verifyWebhook } from "holdfast-client";
const client = createClient({ apiKey: "sk_live_x", baseUrl: "https://holdfast.example.com" });
const hold = await client.reserve("u", "image.render");
export const id: string = hold.reservationId;
await client.reserve("u", "image.render", 1, {}, { ttl: 60 });
await client.credits.grant({ userId: "u" });
await client.analytics.optOut("u", "everything");
export const groups = (await client.commit("rsv_1")).group;
const message = await verifyWebhook({ secret: "whsec_x", headers: new Headers(), body: "{}" });
export const remaining = message.type === "credits.low" ? message.data.remaining : message.data.remaining;
`;

const EXPECTED_FAULTS = [5, 6, 7, 8, 9, 11].map((line, place) =>
  `mistakes.ts:${line}: ${[2322, 2353, 2345, 2345, 2551, 2339][place]}`
);

/** In place of the types of Node, which would come from the registry. */
const NODE_TYPES = `
declare module "node:assert/strict" {
  const assert: {
    deepEqual(a: unknown, b: unknown): void;
    rejects(promise: Promise<unknown>, check: (error: unknown) => boolean): Promise<void>;
  };
  export default assert;
}
declare const process: { readonly argv: string[] };
`;

/** Makes the package with its task; returns the path of its file. */
async function pack(folder: string): Promise<string> {
  const { code, out, err } = await runTask("client:pack", ["--out", folder]);
  assert.equal(code, 0, err);
  return out.trim();
}

/** Makes a project and lets npm install the package into it without a registry. */
async function install(folder: string, tarball: string): Promise<void> {
  await Deno.writeTextFile(`${folder}/package.json`, JSON.stringify({ name: "shop", type: "module" }));
  const offline = ["--offline", "--no-audit", "--no-fund", "--ignore-scripts", "--no-package-lock"];
  await run("npm", ["install", ...offline, tarball], folder);
}

/** Compiles the project as a user of TypeScript would; returns the faults as "file:line: code". */
async function compile(folder: string): Promise<{ faults: string[]; told: string }> {
  const files = { "program.ts": PROGRAM, "page.ts": PAGE, "mistakes.ts": MISTAKES, "node.d.ts": NODE_TYPES };
  for (const [name, text] of Object.entries(files)) await Deno.writeTextFile(`${folder}/${name}`, text);
  const program = ts.createProgram(Object.keys(files).map((name) => `${folder}/${name}`), {
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    types: [],
    strict: true,
    exactOptionalPropertyTypes: true,
    skipDefaultLibCheck: true,
    outDir: folder,
  });
  const { diagnostics } = program.emit();
  const all = [...ts.getPreEmitDiagnostics(program), ...diagnostics];
  const faults = all.map(({ file, start, code }) => {
    const line = file?.getLineAndCharacterOfPosition(start ?? 0).line ?? 0;
    return `${file?.fileName.split("/").at(-1)}:${line + 1}: ${code}`;
  });
  return { faults, told: textOf(all) };
}

/** Runs the compiled program with a service behind a gateway that loses the answer to the first commit. */
async function runOnNode(folder: string): Promise<unknown> {
  const service = await startTestService();
  const app = await service.newApp();
  let commits = 0;
  const { url, close } = serve(async (request) => {
    const response = await service.http.fetch(request);
    if (new URL(request.url).pathname !== "/api/v1/commit" || ++commits > 1) return response;
    return new Response("gateway", { status: 504 });
  });
  try {
    const keys = [app.secretLive, app.publicLive, app.identitySecret];
    return JSON.parse(await run("node", ["program.js", url, ...keys, signedMessage()], folder));
  } finally {
    await close();
    await service.close();
  }
}

/** A message as its receiver on Node has it. */
function signedMessage(): string {
  const secret = `whsec_${btoa("a secret of 32 bytes, unchanged!")}`;
  const body = JSON.stringify({ type: "user.merged", data: { from: "a", to: "b", mergeId: "mrg_1" } });
  const at = new Date(Math.floor(Date.now() / 1000) * 1000);
  const headers = {
    "webhook-id": "whm_1",
    "webhook-timestamp": String(at.getTime() / 1000),
    "webhook-signature": new Webhook(secret).sign("whm_1", at, body),
  };
  return JSON.stringify({ secret, headers, body });
}

Deno.test({
  name: "the package installs into a new project, compiles there, and works on Node",
  ignore: !(await has("npm")),
  fn: async () => {
    const folder = await Deno.makeTempDir({ prefix: "holdfast_package_" });
    try {
      const tarball = await pack(folder);
      await install(folder, tarball);
      const { faults, told } = await compile(folder);
      assert.deepEqual(faults, EXPECTED_FAULTS, told);
      assert.deepEqual(await runOnNode(folder), { retried: ["/commit bad_answer"], counts: [1, 1, 0, 0, 0] });

      const { bytes, paths } = await packClient();
      assert.deepEqual(await Deno.readFile(tarball), bytes, "the same sources make the same package");
      const kinds = new Set(paths.map((path) => path.replace(/^.*?(\.d\.ts|\.js)$/, "$1")));
      assert.deepEqual([...kinds].toSorted(), [".d.ts", ".js", "LICENSE", "README.md", "package.json"]);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});
