// What a start reports to the person who started it: a taken port by its number, an unknown variable, and on a server
// without an app the commands that make the first one, which work exactly as printed.

import assert from "node:assert/strict";
import { Program, until, within } from "../crash/program.ts";
import { ADMIN_TOKEN, Stage, untilReady } from "../crash/stage.ts";
import { copyEmptyStore } from "../support/kept_stores.ts";
import { testServerUrl } from "../support/test_store.ts";

const EXIT_MS = 60_000;

/** The one line with which a program of these settings ends. */
async function lastLine(settings: Readonly<Record<string, string>>): Promise<string> {
  const program = new Program(settings);
  try {
    assert.equal((await program.exit(EXIT_MS)).code, 1);
    assert.equal(program.stdout, "");
    return program.stderr.trim();
  } finally {
    await program.kill();
  }
}

Deno.test("a taken port is reported by its number", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  assert.equal(
    await lastLine({ PORT: String(port) }),
    `Cannot start: PORT ${port} on 127.0.0.1 is in use by another process; stop that one or set another PORT`,
  );
});

Deno.test("an unknown variable stops the start, with the nearest name", async () => {
  assert.equal(
    await lastLine({ HOLDFAST_ADMIN_TOKN: "0123456789abcdef" }),
    "Cannot start: HOLDFAST_ADMIN_TOKN is not a setting; did you mean HOLDFAST_ADMIN_TOKEN?",
  );
});

Deno.test("a program that makes a workspace as soon as it can finds the demo app", async () => {
  await using stage = await Stage.open(null);
  await copyEmptyStore(stage.folder);
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  stage.start({ PORT: String(port) });
  const names = async () => {
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
    const path = `http://127.0.0.1:${port}/api/admin/v1/workspaces`;
    const made = await fetch(path, { method: "POST", headers, body: `{"name":"Mine"}` }).catch(() => null);
    const isMade = made?.ok;
    await made?.body?.cancel();
    if (isMade !== true) return null;
    const { data } = await (await fetch(path, { headers })).json();
    return data.map(({ name }: { name: string }) => name);
  };
  const deadline = performance.now() + EXIT_MS;
  let found: string[] | null = null;
  while (found === null && performance.now() < deadline) {
    found = await names();
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  assert.deepEqual(found?.toSorted(), ["Demo workspace", "Mine"]);
  assert.ok((await Deno.stat(`${stage.folder}/demo.json`)).isFile);
});

Deno.test({
  name: "a first start on a server prints commands that make the first app unchanged, a second one does not",
  ignore: testServerUrl() === null,
  fn: async () => {
    await using stage = await Stage.open(testServerUrl(), true);
    const program = stage.start();
    const origin = await program.origin();
    await untilReady(origin, EXIT_MS);
    await until("what to do next", EXIT_MS, () => program.stdout.includes("catalog apply") || null);
    const commands = program.stdout.split("\n").filter((line) => line.startsWith("  deno task"));
    assert.equal(commands.length, 2, program.stdout);
    for (const command of commands) await run(command.trim());
    program.signal("SIGTERM");
    await program.exit(EXIT_MS);
    const second = stage.start({ HOLDFAST_ADMIN_TOKEN: "" });
    await untilReady(await second.origin(), EXIT_MS);
    // In either order: this line, and the one that says where it listens.
    const isOff = () => /^The admin API is off: HOLDFAST_ADMIN_TOKEN is not set\. .*\n/m.test(second.stdout);
    await until("the admin API is off", EXIT_MS, () => isOff() || null);
    assert.ok(!second.stdout.includes("deno task"), second.stdout);
    assert.match(second.stderr + second.stdout, /There is no console: no token is set for it/);
    assert.equal((await fetch(`${await second.origin()}/console`)).status, 404);
  },
});

async function run(command: string): Promise<void> {
  const [program = "", ...args] = command.split(" ");
  const process = new Deno.Command(program, {
    args,
    cwd: new URL("../..", import.meta.url),
    env: { HOLDFAST_ADMIN_TOKEN: ADMIN_TOKEN },
  });
  const { code, stderr } = await within(process.output(), EXIT_MS, () => command);
  assert.equal(code, 0, `${command}: ${new TextDecoder().decode(stderr)}`);
}
