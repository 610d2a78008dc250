// What a newcomer types: a name as an option, a command about an app while there are two, a replay for users who have
// no plan, and a new identity secret. Each does what was meant or says what to type.

import assert from "node:assert/strict";
import catalog from "../../src/tenant/demo/catalog.json" with { type: "json" };
import { runAdmin } from "../../src/cli/admin.ts";
import { runReplay } from "../bench/replay.ts";
import { EXIT } from "../../src/cli/shell.ts";
import { operatorOf, serve, testShell, withFile, withService } from "./support.ts";

const TRACE = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n";

Deno.test("a name is taken as an argument and as an option, not as both", async () => {
  await withService(async (service) => {
    const admin = async (...args: string[]) => {
      const { shell, out, err } = testShell(operatorOf(service));
      return { code: await runAdmin(args, shell), text: out() + err() };
    };
    assert.match((await admin("apps", "create", "--name", "shop")).text, /^App app_\w+ in workspace ws_/);
    assert.equal((await admin("apps", "create", "shop two")).code, EXIT.ok);
    assert.match((await admin("workspaces", "create", "--name", "Acme")).text, /Acme/);
    for (const args of [["apps", "create"], ["apps", "create", "a", "--name", "b"]]) {
      const { code, text } = await admin(...args);
      assert.equal(code, EXIT.usage);
      assert.match(text, /name/);
    }
    const { code, text } = await admin("catalog", "show");
    assert.equal(code, EXIT.usage);
    assert.match(
      text,
      /there are 2 apps\. Choose one:\n {2}--app app_\w+ {3}shop\n {2}--app app_\w+ {3}shop two$/,
    );
  });
});

Deno.test("without an app a command about one says how to make it", async () => {
  await withService(async (service) => {
    const { shell, err } = testShell(operatorOf(service));
    assert.equal(await runAdmin(["catalog", "show"], shell), EXIT.usage);
    assert.equal(err(), "There is no app yet; create one with `deno task admin apps create NAME`");
  });
});

Deno.test("a replay for users without a plan says to give one", async () => {
  await withService(async (service) => {
    const app = await service.newApp(catalog);
    await withFile("trace.csv", TRACE, async (file) => {
      const args = [file, "--key", app.secretLive, "--url", service.url];
      const { shell, err } = testShell();
      assert.equal(await runReplay(args, shell, new AbortController().signal), EXIT.ok);
      assert.match(err(), /Users without a plan were refused: give --plan/);
    });
  });
});

Deno.test("a new identity secret is asked for with the time that the old one holds, and shown once", async () => {
  const asked: unknown[] = [];
  const { url, close } = serve(async (request) => {
    asked.push([request.method, new URL(request.url).pathname, await request.json()]);
    return Response.json({
      ok: true,
      data: { identitySecret: "s3cret", oldValidUntil: "2026-11-23T00:00:00.000Z" },
    });
  });
  try {
    const { shell, out } = testShell(operatorOf({ url }));
    const rotate = ["apps", "rotate-identity-secret", "app_1"];
    assert.equal(await runAdmin([...rotate, "--keep-old-seconds", "60"], shell), EXIT.ok);
    assert.equal(await runAdmin(rotate, shell), EXIT.ok);
    assert.match(
      out(),
      /Identity secret: s3cret\nTokens signed with the old secret are valid until 2026-11-23/,
    );
    assert.equal(await runAdmin([...rotate, "--keep-old-seconds", "-1"], shell), EXIT.usage);
  } finally {
    await close();
  }
  const path = "/api/admin/v1/apps/app_1/identity-secret";
  assert.deepEqual(asked, [["POST", path, { keepOldSeconds: 60 }], ["POST", path, {}]]);
});
