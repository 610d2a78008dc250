// Two processes on one port: either may be stopped under load, no call is refused, and the process ends in time. A
// connection that the system has dealt to a process in the moment in which it ends is reset; a client without an
// answer sends the call again under its key, as clients have to.

import assert from "node:assert/strict";
import { pause, until } from "../crash/program.ts";
import { ADMIN_TOKEN, Stage } from "../crash/stage.ts";
import { isDeep } from "../support/depth.ts";
import { testServerUrl } from "../support/test_store.ts";

const CALLERS = 16;
/** Connections that may break: those that came while one of two processes ended. */
const BROKEN_MAX = CALLERS / 2;
/** Between two calls of a caller, while no process is stopped and while one is. */
const CALM_MS = isDeep ? 50 : 300;
const LOAD_MS = isDeep ? 0 : 10;
/** Before a stop and after it: long enough for every caller to have called. */
const BESIDE_MS = isDeep ? 500 : 150;
const EXIT_MS = 60_000;
const READY_MS = 60_000;

Deno.test({
  name: "of two processes that share a port each can be stopped under load, and no call is refused",
  ignore: testServerUrl() === null,
  fn: async () => {
    await using stage = await Stage.open();
    const settings = { HOLDFAST_SHARE_PORT: "true" };
    const first = await stage.startReady(settings);
    const { origin } = first;
    await stage.populate(origin);
    const shared = { ...settings, PORT: new URL(origin).port };
    const answers = new Map<string, number>();
    const broken: unknown[] = [];
    let isOn = true;
    let isStopping = false;
    const callers = Array.from({ length: CALLERS }, async () => {
      while (isOn) {
        // Only a stop needs the load; a process that starts needs the cores.
        await pause(isStopping ? LOAD_MS : CALM_MS);
        const answer = await track(origin, stage.secretKey, broken);
        answers.set(answer, (answers.get(answer) ?? 0) + 1);
      }
    });
    for (let stopped = first.program, round = 0; round < 2; round++) {
      const next = stage.start(shared);
      await next.origin();
      await until(
        "both have cells",
        READY_MS,
        async () => (await owners(origin)).filter((cells) => cells > 0).length === 2 || null,
      );
      isStopping = true;
      await pause(BESIDE_MS);
      stopped.signal("SIGTERM");
      assert.equal((await stopped.exit(EXIT_MS)).code, 0, stopped.stderr);
      await pause(BESIDE_MS);
      isStopping = false;
      stopped = next;
    }
    isOn = false;
    await Promise.all(callers);
    assert.deepEqual([...answers.keys()], ["200"], JSON.stringify([...answers]));
    assert.ok(broken.length <= BROKEN_MAX, broken.map(String).join("\n"));
    console.log(`${answers.get("200")} calls beside 2 stops`);
  },
});

/** The status of a call; one whose connection broke is sent once more. */
async function track(origin: string, key: string, broken: unknown[]): Promise<string> {
  const idempotencyKey = crypto.randomUUID();
  const send = async () => {
    const response = await fetch(`${origin}/api/v1/track`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "idempotency-key": idempotencyKey },
      body: JSON.stringify({ userId: "hot", event: "image.x" }),
    });
    await response.body?.cancel();
    return String(response.status);
  };
  try {
    return await send();
  } catch (error) {
    broken.push((error as Error).cause);
    return await send();
  }
}

/** How many cells each member owns. */
async function owners(origin: string): Promise<number[]> {
  const response = await fetch(`${origin}/api/admin/v1/cluster`, {
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  });
  const { data } = await response.json();
  return data.members.filter((row: { hasEnded: boolean }) => !row.hasEnded).map((row: { cells: unknown[] }) =>
    row.cells.length
  );
}
