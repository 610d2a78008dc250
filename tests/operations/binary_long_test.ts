// The program as a compiled binary has it: no module and no asset from a folder, nothing read or written beside its
// data folder, no network but its own address and its database. It runs with exactly these permissions, does a
// newcomer's first calls, is examined, stopped, backed up and restored. The runtime writes down every permission that
// the program asks for, so asking for more shows as well.

import assert from "node:assert/strict";
import catalog from "../../src/tenant/demo/catalog.json" with { type: "json" };
import type { Check } from "../../src/operations/doctor/checks.ts";
import { runAdmin } from "../../src/cli/admin.ts";
import { SETTING_NAMES } from "../../src/process/settings.ts";
import { EXIT } from "../../src/cli/shell.ts";
import { Program, startArguments } from "../crash/program.ts";
import { ADMIN_TOKEN, Stage, untilReady } from "../crash/stage.ts";
import { answerOf, once } from "../crash/wire.ts";
import { testShell, troublesOf } from "../tasks/support.ts";
import { WORKERS } from "./workers.ts";

const ROOT = new URL("../..", import.meta.url).pathname;
const READY_MS = 60_000;
const EXIT_MS = 60_000;
const PRIVACY_SECRET = "binary-privacy-secret-0123456789";

/** Where a program runs: its port, and a folder or a database. */
interface Place {
  readonly port: number;
  /** Where other members would reach it, on a server. */
  readonly clusterPort: number;
  readonly folder: string | null;
  readonly url: string | null;
}

function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}

/** What a place's program may reach. */
function addresses({ port, clusterPort, url }: Place): string[] {
  const own = `127.0.0.1:${port}`;
  const server = (at: URL) => `${at.hostname}:${at.port || 5432}`;
  return url === null ? [own] : [own, `127.0.0.1:${clusterPort}`, server(new URL(url))];
}

function settingsOf({ port, clusterPort, folder, url }: Place): Record<string, string> {
  const store: Record<string, string> = url === null ? { HOLDFAST_DATA_DIR: folder as string } : {
    DATABASE_URL: url,
    HOLDFAST_PRIVACY_SECRET: PRIVACY_SECRET,
    HOLDFAST_CLUSTER_ADDRESS: `127.0.0.1:${clusterPort}`,
  };
  return { ...store, PORT: String(port), HOLDFAST_ADMIN_TOKEN: ADMIN_TOKEN };
}

/** Starts the program with the permissions of a binary at a place; what it asks for is written to a file. */
async function start(stage: Stage, place: Place, audit: string) {
  const folders = place.folder === null ? [] : [place.folder];
  const permissions = [
    `--allow-net=${addresses(place)}`,
    startArguments().find((arg) => arg.startsWith("--allow-env")) as string,
    `--allow-read=${[...folders, ...await workerModules()]}`,
    ...folders.map((folder) => `--allow-write=${folder}`),
  ];
  const settings = {
    ...settingsOf(place),
    HOLDFAST_PUBLIC_URL: "https://metering.example.com",
    DENO_AUDIT_PERMISSIONS: audit,
  };
  const program = new Program(settings, { args: ["run", "--no-prompt", ...permissions, "src/main.ts"] });
  stage.programs.push(program);
  const origin = await program.origin();
  await untilReady(origin, READY_MS);
  return { program, origin };
}

/** The files of the workers' modules: read by permission from a checkout, and without one from inside a binary. */
async function workerModules(): Promise<string[]> {
  const files = new Set<string>();
  for (const worker of WORKERS) {
    const args = ["info", "--json", worker];
    const { stdout } = await new Deno.Command(Deno.execPath(), { args, cwd: ROOT, stderr: "null" }).output();
    for (const { local } of JSON.parse(new TextDecoder().decode(stdout)).modules) {
      if (local?.startsWith(ROOT)) files.add(local);
    }
  }
  return [...files];
}

/** What the program asked for beyond its place. */
async function excesses(place: Place, audit: string): Promise<string[]> {
  const modules = await workerModules();
  const isOurs = (kind: string, value: string) => {
    if (kind === "net") return addresses(place).includes(value);
    if (kind === "env") {
      // "null" is the list of all variables, in which it looks for misspelt settings.
      return value === "null" || SETTING_NAMES.includes(value) ||
        /^(PG|OPENAI_)|^(USER|USERNAME|LOGNAME)$/.test(value);
    }
    if (kind !== "read" && kind !== "write") return false;
    const { folder } = place;
    const isData = folder !== null && (value === folder || value.startsWith(`${folder}/`));
    return isData || kind === "read" && modules.includes(value.replace("file://", ""));
  };
  const lines = (await Deno.readTextFile(audit)).trim().split("\n").map((line) => JSON.parse(line));
  assert.ok(lines.length > 0);
  const asked = new Set<string>();
  for (const { permission, value } of lines) {
    if (!isOurs(permission, String(value))) asked.add(`${permission} ${value}`);
  }
  return [...asked];
}

async function call(origin: string, bearer: string, method: string, path: string, body?: unknown) {
  const answer = answerOf(await once(origin, { method, path: `/api${path}`, bearer, body }));
  assert.equal(answer.status, 200, `${path} ${JSON.stringify(answer.body)}`);
  assert.equal(answer.headers.get("server"), null);
  assert.equal(answer.headers.get("strict-transport-security"), "max-age=31536000");
  return answer.body.data;
}

/** The secret live key of an app with the example catalog and a subscribed user: the demo's, or one made here. */
async function demoKey(origin: string, { folder }: Place): Promise<string> {
  const isLive = (row: { class: string; mode: string }) => row.class === "secret" && row.mode === "live";
  if (folder !== null) {
    return JSON.parse(await Deno.readTextFile(`${folder}/demo.json`)).keys.find(isLive).key;
  }
  const { appId, keys } = await call(origin, ADMIN_TOKEN, "POST", "/admin/v1/apps", { name: "Shop" });
  await call(origin, ADMIN_TOKEN, "PUT", `/admin/v1/apps/${appId}/catalog`, catalog);
  const key = keys.find(isLive).key;
  await call(origin, key, "POST", "/v1/subscriptions", { userId: "user_demo", planId: "plan_pro" });
  return key;
}

/** The README's first calls; answers what the user then shows. */
async function firstCalls(origin: string, key: string) {
  const post = (path: string, body: object) =>
    call(origin, key, "POST", path, { userId: "user_demo", ...body });
  const held = await post("/v1/reserve", { event: "image.render" });
  assert.equal(held.allowed, true);
  await call(origin, key, "POST", "/v1/commit", { reservationId: held.reservationId, costCents: 4.2 });
  assert.deepEqual((await post("/v1/reserve", { event: "image.render", count: 100 })).reasons, [
    "limit_reached",
  ]);
  const chat = { event: "chat.reply", inputTokens: 4000, metadata: { model: "gpt-4o-mini" } };
  assert.equal((await post("/v1/track", chat)).matchStatus, "matched");
  await post("/v1/credits/grant", { packId: "Image Top-Up", externalRef: "order_1" });
  assert.equal((await post("/v1/reserve", { event: "image.render", count: 100 })).allowed, true);
  return await shown(origin, key);
}

async function shown(origin: string, key: string) {
  const [usage, feed, ledger] = await Promise.all([
    call(origin, key, "GET", "/v1/usage?userId=user_demo"),
    call(origin, key, "GET", "/v1/events?limit=10"),
    call(origin, key, "GET", "/v1/credits/history?userId=user_demo"),
  ]);
  assert.equal(usage.counters[0].count, 100);
  assert.equal(feed.events.length, 2);
  assert.ok(ledger.entries.length >= 2);
  return { usage, feed, ledger };
}

/** The pages and the tool server, whose assets a checkout has as files, are in the program too. */
async function pages(origin: string, key: string): Promise<void> {
  const page = await fetch(`${origin}/docs`);
  assert.equal(page.status, 200);
  assert.match(page.headers.get("content-security-policy") ?? "", /frame-ancestors 'none'/);
  assert.equal(page.headers.get("x-content-type-options"), "nosniff");
  const [, script = "/none"] = (await page.text()).match(/<script[^>]* src="([^"]+)"/) ?? [];
  for (const path of [script, "/api/openapi.json", "/metrics"]) {
    const response = await fetch(new URL(path, origin));
    assert.equal(response.status, 200, path);
    assert.ok((await response.text()).length > 500, path);
  }
  const tools = await fetch(`${origin}/mcp`, {
    method: "POST",
    headers: {
      "authorization": `Bearer ${key}`,
      "accept": "application/json, text/event-stream",
      "content-type": "application/json",
    },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: "list_events" },
    }),
  });
  assert.match(await tools.text(), /image.render/);
}

/** What the doctor says of a place: its exit status, and what is not ok. */
async function examined(place: Place) {
  const { shell, out } = testShell(settingsOf(place));
  const code = await runAdmin(["doctor", "--json"], shell);
  const { checks } = JSON.parse(out()) as { checks: Check[] };
  return { code, troubles: troublesOf(checks) };
}

/** Whether the server's client programs are here; without them the server copies the database once it is idle. */
async function hasClients(): Promise<boolean> {
  const versions = ["pg_dump", "pg_restore"].map((program) =>
    new Deno.Command(program, { args: ["--version"], stdout: "null", stderr: "null" }).output()
  );
  return await Promise.all(versions).then(() => true, () => false);
}

async function run(program: string, ...args: string[]): Promise<void> {
  const { code, stderr } = await new Deno.Command(program, { args, stdout: "null", stderr: "piped" })
    .output();
  assert.equal(code, 0, `${program} ${args.join(" ")}: ${new TextDecoder().decode(stderr)}`);
}

/** Backs the store of a place up as the guide says, and restores it as another place. */
async function restored(stage: Stage, place: Place, scratch: string): Promise<Place> {
  // The copied tables name the cluster address of the first.
  const ports = { port: freePort(), clusterPort: place.clusterPort };
  if (place.folder !== null) {
    await run("cp", "-a", place.folder, `${scratch}/restored`);
    return { ...ports, folder: `${scratch}/restored`, url: null };
  }
  const { admin, name, url } = stage.server;
  const copy = new URL(url);
  copy.pathname = `/${name}_restored`;
  if (!await hasClients()) {
    await admin.script(`create database ${name}_restored template ${name}`);
    return { ...ports, folder: null, url: copy.href };
  }
  await run("pg_dump", "--format=custom", `--file=${scratch}/dump`, url);
  await admin.script(`create database ${name}_restored`);
  await run(
    "pg_restore",
    "--exit-on-error",
    "--single-transaction",
    `--dbname=${copy.href}`,
    `${scratch}/dump`,
  );
  return { ...ports, folder: null, url: copy.href };
}

Deno.test("with a binary's permissions and no others the program serves, stops, and lives on in a backup", async () => {
  await using stage = await Stage.open();
  const scratch = await Deno.makeTempDir({ prefix: "holdfast_binary_" });
  const folder = stage.isEmbedded ? `${stage.folder}/data` : null;
  const place: Place = {
    port: freePort(),
    clusterPort: freePort(),
    folder,
    url: stage.isEmbedded ? null : stage.server.url,
  };
  try {
    const first = await start(stage, place, `${scratch}/first`);
    const key = await demoKey(first.origin, place);
    const before = await firstCalls(first.origin, key);
    await pages(first.origin, key);
    assert.deepEqual(await examined(place), { code: EXIT.ok, troubles: [] });

    // A server is dumped while the service runs; a folder is copied when it has stopped.
    const isDumped = !stage.isEmbedded && await hasClients();
    const early = isDumped ? await restored(stage, place, scratch) : null;
    first.program.signal("SIGTERM");
    assert.equal((await first.program.exit(EXIT_MS)).code, 0, first.program.stderr);
    assert.deepEqual(await examined(place), {
      code: EXIT.refused,
      troubles: ["fail service", "warn members"],
    });
    assert.deepEqual(await excesses(place, `${scratch}/first`), []);

    const copy = early ?? await restored(stage, place, scratch);
    const second = await start(stage, copy, `${scratch}/second`);
    assert.deepEqual(await shown(second.origin, key), before);
    assert.deepEqual(await examined(copy), { code: EXIT.ok, troubles: [] });
    second.program.signal("SIGTERM");
    assert.equal((await second.program.exit(EXIT_MS)).code, 0, second.program.stderr);
    assert.deepEqual(await excesses(copy, `${scratch}/second`), []);
  } finally {
    if (!stage.isEmbedded) {
      await stage.server.admin.script(`drop database if exists ${stage.server.name}_restored with (force)`);
    }
    await Deno.remove(scratch, { recursive: true });
  }
});
