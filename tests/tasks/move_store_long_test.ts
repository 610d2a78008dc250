// A store goes from the data folder to a server and back: every answer and every export is as before, the books add up,
// and a store that is in use or not new is refused.

import assert from "node:assert/strict";
import { EXIT } from "../../src/cli/shell.ts";
import { Program } from "../crash/program.ts";
import { ADMIN_TOKEN, makeApp, Stage, untilReady } from "../crash/stage.ts";
import { answerOf, once } from "../crash/wire.ts";
import { copyMigratedStore } from "../support/kept_stores.ts";
import { testServerUrl } from "../support/test_store.ts";
import { runTask } from "./support.ts";

const SETTINGS = {
  HOLDFAST_ADMIN_TOKEN: ADMIN_TOKEN,
  HOLDFAST_PRIVACY_SECRET: "move-privacy-secret-0123456789",
  ANALYTICS_EXPORT_SECRET: "move-export-secret-0123456789",
};
const USERS = ["u1", "u2", "líne\nand\ttab \\N"];

interface Key {
  readonly secretKey: string;
}

async function call(origin: string, { secretKey }: Key, method: string, path: string, body?: unknown) {
  const answer = answerOf(await once(origin, { method, path: `/api/v1${path}`, bearer: secretKey, body }));
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return answer.body.data;
}

/** What users are shown, and all that an export has of them. */
async function shownOf(origin: string, key: Key): Promise<unknown[]> {
  const shown = [];
  for (const userId of USERS) {
    shown.push(await call(origin, key, "GET", `/usage?userId=${encodeURIComponent(userId)}`));
    shown.push(await call(origin, key, "GET", `/events?userId=${encodeURIComponent(userId)}`));
    const { downloadUrl } = await call(origin, key, "POST", "/export-person", { distinctId: userId });
    const { exportedAt: _, ...document } =
      await (await fetch(origin + downloadUrl.slice(downloadUrl.indexOf("/api/")))).json();
    shown.push(document);
  }
  return shown;
}

async function serve(settings: Record<string, string>) {
  const program = new Program({ ...SETTINGS, ...settings });
  const origin = await program.origin();
  await untilReady(origin, 60_000);
  return { program, origin };
}

Deno.test({
  name: "a store moves from the folder to a server and back, and every answer and export stays",
  ignore: testServerUrl() === null,
  fn: async () => {
    await using stage = await Stage.open(testServerUrl(), true);
    const server = { DATABASE_URL: stage.server.url };
    const [folder, second] = [await Deno.makeTempDir(), await Deno.makeTempDir()];
    const programs: Program[] = [];
    const start = async (settings: Record<string, string>) => {
      const started = await serve(settings);
      programs.push(started.program);
      return started;
    };
    const move = (to: string, dataDir: string) =>
      runTask("admin", ["move-store", "--to", to], { ...server, HOLDFAST_DATA_DIR: dataDir });
    try {
      await copyMigratedStore(folder);
      const first = await start({ HOLDFAST_DATA_DIR: folder });
      const key = await makeApp(first.origin, "Moved");
      for (const userId of USERS) {
        await call(first.origin, key, "POST", "/subscriptions", { userId, planId: "plan_wide" });
        const body = { userId, event: "image.x", metadata: { note: "a\\b\n\tc" } };
        await call(first.origin, key, "POST", "/track", body);
        await call(first.origin, key, "POST", "/reserve", body);
        await call(first.origin, key, "POST", "/capture", { distinctId: userId, event: "seen" });
      }
      const before = await shownOf(first.origin, key);

      const used = await move("server", folder);
      assert.equal(used.code, EXIT.refused);
      assert.match(used.err, /another process uses the data folder/);
      await first.program.kill();

      const there = await move("server", folder);
      assert.equal(there.code, EXIT.ok, there.err);
      assert.match(there.out, /The source: .*?(\d+) users.*\nCopied .* rows .*\nThe target: .*\b\1 users/);
      assert.match((await move("server", folder)).err, /The target is not new/);

      const onServer = await start(server);
      assert.deepEqual(await shownOf(onServer.origin, key), before);
      await call(onServer.origin, key, "POST", "/track", { userId: "u1", event: "image.x" });
      const after = await shownOf(onServer.origin, key);
      assert.match((await move("folder", second)).err, /The source is in use/);
      onServer.program.signal("SIGTERM");
      await onServer.program.exit(60_000);

      const back = await move("folder", second);
      assert.equal(back.code, EXIT.ok, back.err);
      const last = await start({ HOLDFAST_DATA_DIR: second });
      assert.deepEqual(await shownOf(last.origin, key), after);
    } finally {
      for (const program of programs) await program.kill();
      for (const each of [folder, second]) await Deno.remove(each, { recursive: true });
    }
  },
});
