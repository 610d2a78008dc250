// A real process with an address of its own for admin API, console and metrics.

import assert from "node:assert/strict";
import { ADMIN_TOKEN, Stage } from "./stage.ts";
import { answerOf, once } from "./wire.ts";

const EXIT_MS = 60_000;

Deno.test("HOLDFAST_ADMIN_LISTEN moves admin API, console and metrics, and its port closes with the process", async () => {
  await using stage = await Stage.open();
  const { program, origin } = await stage.startReady({ HOLDFAST_ADMIN_LISTEN: "127.0.0.1:0" });
  const [, inside = ""] = /Admin API, console and metrics listen on (\S+)/.exec(program.stdout) ?? [];
  assert.match(inside, /^http:\/\/127\.0\.0\.1:\d+$/);
  assert.notEqual(inside, origin);
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
  const ask = async (base: string, path: string) =>
    answerOf(await once(base, { method: "GET", path, headers })).status;
  for (const path of ["/metrics", "/api/admin/v1/apps", "/console/sign-in"]) {
    assert.equal(await ask(inside, path), 200, path);
    for (
      const sent of [
        path,
        path.replace(/[amc]/, (letter) => `%${letter.charCodeAt(0).toString(16)}`),
        `/${path}`,
      ]
    ) {
      assert.equal(await ask(origin, sent), 404, sent);
    }
  }
  // The escaped forms lead nowhere on the inner address either.
  assert.equal(await ask(inside, "/%6detrics"), 404);
  for (const base of [origin, inside]) assert.equal(await ask(base, "/readyz"), 200);
  program.signal("SIGTERM");
  assert.deepEqual((await program.exit(EXIT_MS)).code, 0);
  const { hostname, port } = new URL(inside);
  await assert.rejects(Deno.connect({ hostname, port: Number(port) }), Deno.errors.ConnectionRefused);
});

Deno.test("an address of operators that is in use, or no address, stops the start with its name", async () => {
  await using stage = await Stage.open();
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  for (const value of [`127.0.0.1:${listener.addr.port}`, "999.1.1.1:80", "8001"]) {
    const program = stage.start({ HOLDFAST_ADMIN_LISTEN: value });
    assert.equal((await program.exit(EXIT_MS)).code, 1, program.stderr);
    assert.match(program.stderr, /^Cannot start: HOLDFAST_ADMIN_LISTEN /);
  }
});
