// Settings of a real process: a bad one stops the start with one line that names it and exit status 1; an empty one
// counts as unset; a folder has one process.

import assert from "node:assert/strict";
import { Program } from "./program.ts";
import { ADMIN_TOKEN, Stage } from "./stage.ts";
import { answerOf, once } from "./wire.ts";
import { testServerUrl } from "../support/test_store.ts";

const EXIT_MS = 60_000;
const isServer = testServerUrl() !== null;

async function assertRefused(program: Program, ...words: readonly string[]): Promise<void> {
  try {
    const { code } = await program.exit(EXIT_MS);
    assert.equal(code, 1, program.stderr);
    const lines = program.stderr.trim().split("\n");
    assert.equal(lines.length, 1, program.stderr);
    for (const word of words) assert.ok(lines[0]?.includes(word), `"${word}" in: ${lines[0]}`);
    assert.equal(program.stdout, "");
  } finally {
    await program.kill();
  }
}

/** One of each place in which a setting is found to be bad; `process/settings_test.ts` has the others. */
const BAD: readonly Readonly<Record<string, string>>[] = [
  { PORT: "abc" },
  { DATABASE_URL: "postgres://postgres@127.0.0.1:1/none" },
  { DATABASE_URL: "postgres://postgres@localhost:1/none" },
  { HOLDFAST_HOST: "999.1.1.1" },
];

Deno.test("a bad setting stops the start with one line that names it", async () => {
  await using stage = await Stage.open();
  await Promise.all(BAD.map(async (settings) => {
    const [name = ""] = Object.keys(settings);
    await assertRefused(stage.start(settings), name, "Cannot start");
  }));
});

Deno.test("a port in use stops the start with one line that names PORT", async () => {
  await using stage = await Stage.open();
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  await assertRefused(stage.start({ PORT: String(listener.addr.port) }), "PORT");
});

Deno.test({
  name: "a second process on one folder stops with one line and leaves the first one serving",
  ignore: isServer,
  fn: async () => {
    await using stage = await Stage.open();
    const { origin } = await stage.startReady();
    await assertRefused(stage.start(), "Cannot start", stage.folder);
    assert.equal(answerOf(await once(origin, { method: "GET", path: "/readyz" })).status, 200);
  },
});

Deno.test({
  name: "a folder that cannot be used stops the start with one line that names it",
  ignore: isServer,
  fn: async () => {
    await using stage = await Stage.open();
    await Deno.writeTextFile(`${stage.folder}/file`, "");
    await assertRefused(stage.start({ HOLDFAST_DATA_DIR: `${stage.folder}/file` }), "HOLDFAST_DATA_DIR");
  },
});

Deno.test({
  name: "empty variables count as unset: the embedded store keeps an admin token of its own",
  ignore: isServer,
  fn: async () => {
    await using stage = await Stage.open();
    const { origin } = await stage.startReady({ DATABASE_URL: "", HOLDFAST_ADMIN_TOKEN: "" });
    const kept = (await Deno.readTextFile(`${stage.folder}/admin-token`)).trim();
    assert.equal(await adminStatus(origin, kept), 200);
    assert.equal(await adminStatus(origin, ADMIN_TOKEN), 401);
    const { mode } = await Deno.stat(`${stage.folder}/admin-token`);
    assert.equal((mode ?? 0) & 0o777, 0o600);
  },
});

Deno.test({
  name: "without an admin token a server has no admin API",
  ignore: !isServer,
  fn: async () => {
    await using stage = await Stage.open();
    const { origin } = await stage.startReady({ HOLDFAST_ADMIN_TOKEN: "" });
    for (const token of [ADMIN_TOKEN, "", "null", "undefined"]) {
      assert.equal(await adminStatus(origin, token), 501);
    }
    const answer = answerOf(await once(origin, { method: "GET", path: "/api/admin/v1/workspaces" }));
    assert.equal(answer.body.error.code, "not_implemented");
    assert.match(answer.body.error.message, /HOLDFAST_ADMIN_TOKEN/);
  },
});

async function adminStatus(origin: string, bearer: string): Promise<number> {
  return answerOf(await once(origin, { method: "GET", path: "/api/admin/v1/workspaces", bearer })).status;
}
