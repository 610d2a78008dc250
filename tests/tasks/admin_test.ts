// The admin command line against a real service: what it does, what it prints, and its exit statuses.

import assert from "node:assert/strict";
import catalog from "../../src/tenant/demo/catalog.json" with { type: "json" };
import { runAdmin } from "../../src/cli/admin.ts";
import { EXIT } from "../../src/cli/shell.ts";
import { renderTable } from "../../src/cli/table.ts";
import { ADMIN_TOKEN } from "../support/test_service.ts";
import { operatorOf, runTask, serve, testShell, withFile, withService } from "./support.ts";

Deno.test("an operator makes a workspace, an app and its catalog from the command line", async () => {
  await withService(async (service) => {
    const operator = operatorOf(service);
    // One call as a program shows its permissions and its exit; the others run in this process.
    const create = ["workspaces", "create", "Acme", "--test-operation-cap", "none", "--json"];
    const made = await runTask("admin", create, operator);
    const admin = async (...args: string[]) => {
      const { shell, out, err } = testShell(operator);
      assert.equal(await runAdmin(args, shell), EXIT.ok, err());
      return { out: `${out()}\n` };
    };
    assert.equal(made.code, EXIT.ok, made.err);
    const { workspaceId, testOperationCap } = JSON.parse(made.out);
    assert.equal(testOperationCap, null);
    const created = await admin("apps", "create", "Shop", "--workspace", workspaceId);
    assert.match(created.out, /Shown once and never again/);
    const key = created.out.match(/sk_live_\w+/)?.[0] ?? "";
    const listed = await admin("apps", "list");
    assert.match(listed.out, /^APP +NAME +WORKSPACE +CATALOG VERSION +CREATED\napp_\w+ +Shop +ws_/);
    assert.ok(!listed.out.includes("sk_"), "a list shows no secret");

    await withFile("catalog.json", JSON.stringify(catalog), async (file) => {
      const dryRun = await admin("catalog", "apply", file, "--dry-run");
      assert.match(dryRun.out, /^Dry run: version 0 stays in force\nPATH +ID +CHANGE\n/);
      assert.match((await admin("catalog", "show")).out, /No catalog/);
      assert.match((await admin("catalog", "apply", file)).out, /^Version 1 is in force\n/);
      assert.equal((await admin("catalog", "apply", file)).out, "No changes: version 1 is in force\n");
    });
    const shown = JSON.parse((await admin("catalog", "show", "--json")).out);
    assert.deepEqual([shown.version, shown.plans.length], [1, catalog.plans.length]);
    assert.match((await admin("catalog", "show")).out, /^Version 1\n\nSETTING +VALUE\n/);
    const plans = await fetch(`${service.url}/api/v1/plans`, { headers: { authorization: `Bearer ${key}` } });
    assert.equal((await plans.json()).data.length, catalog.plans.length);
  });
});

Deno.test("a revoked key stops at once, and revoking asks for confirmation on a terminal", async () => {
  await withService(async (service) => {
    const app = await service.newApp();
    const variables = operatorOf(service);
    const [, row] = (await service.admin("GET", `/apps/${app.appId}/keys`)).body.data;
    const revoke = ["keys", "revoke", row.keyId, "--app", app.appId];
    const works = async () => (await app.call("GET", "/plans", undefined, { key: app.secretTest })).status;

    const program = testShell(variables);
    assert.equal(await runAdmin(revoke, program.shell), EXIT.usage);
    assert.match(program.err(), /^Confirmation required; use --yes$/);
    const hesitant = testShell(variables, "no");
    assert.equal(await runAdmin(revoke, hesitant.shell), EXIT.refused);
    assert.equal(hesitant.asked.length, 1);
    assert.equal(await works(), 200);

    assert.equal(await runAdmin(revoke, testShell(variables, "yes").shell), EXIT.ok);
    assert.equal(await works(), 401);
    const again = testShell(variables);
    assert.equal(await runAdmin([...revoke, "--yes"], again.shell), EXIT.ok);
    assert.deepEqual(again.asked, []);
  });
});

Deno.test("a catalog's faults are a table of paths, and nothing is applied", async () => {
  await withService(async (service) => {
    const app = await service.newApp();
    const plan = { ...catalog.plans[0], limits: [{ ...catalog.plans[0]?.limits[0], quota: -1 }] };
    await withFile("faulty.json", JSON.stringify({ plans: [plan] }), async (file) => {
      const outcome = await runTask("admin", ["catalog", "apply", file], operatorOf(service));
      assert.equal(outcome.code, EXIT.refused);
      assert.match(outcome.err, /^PATH +FAULT\nplans\[0\]\.limits\[0\]\.quota +/);
      assert.equal(outcome.out, "");
      const program = testShell(operatorOf(service));
      assert.equal(await runAdmin(["catalog", "apply", file, "--json"], program.shell), EXIT.refused);
      const { error } = JSON.parse(program.out());
      assert.deepEqual([error.code, error.details[0].path], ["invalid_request", "plans[0].limits[0].quota"]);
    });
    const { version } = (await service.admin("GET", `/apps/${app.appId}/catalog`)).body.data;
    assert.equal(version, 1);
  });
});

Deno.test("a catalog is tried in test mode and promoted from the command line, and an older version is put back", async () => {
  await withService(async (service) => {
    await service.newApp();
    const admin = async (...args: string[]) => {
      const { shell, out } = testShell(operatorOf(service));
      assert.equal(await runAdmin(["catalog", ...args], shell), EXIT.ok);
      return out();
    };
    const tried = { ...catalog, settings: { ...catalog.settings, reservationTtlSeconds: 77 } };
    await withFile("catalog.json", JSON.stringify(tried), async (file) => {
      const dryRun = await admin("apply", file, "--mode", "test", "--dry-run");
      assert.match(dryRun, /Users on plans that change: 0 live, 0 test/);
      assert.match(await admin("apply", file, "--mode", "test"), /^Version 2 is in force/);
    });
    assert.match(await admin("show"), /^Version 1\n/);
    assert.match(await admin("promote"), /^Version 3 is in force\n/);
    assert.match(await admin("drop", "--mode", "test"), /^No changes: version 3/);
    assert.match(await admin("versions"), /\n +3 +live .*api +settings.reservationTtlSeconds \w+/);
    await withFile("first.json", await admin("version", "1", "--json"), async (file) => {
      assert.match(await admin("apply", file), /^Version 4 is in force/);
    });
  });
});

Deno.test("workspace changes keep what is not given, and none lifts a cap", async () => {
  await withService(async (service) => {
    const run = async (...args: string[]) => {
      const { shell, out } = testShell(operatorOf(service));
      assert.equal(await runAdmin([...args, "--json"], shell), EXIT.ok);
      return JSON.parse(out());
    };
    const made = await run(
      "workspaces",
      "create",
      "Acme",
      "--operation-cap",
      "10",
      "--ai-budget-cents",
      "2.5",
    );
    const changed = await run("workspaces", "update", made.workspaceId, "--operation-cap", "none");
    assert.deepEqual(changed, { ...made, operationCap: null });
    const renamed = await run("workspaces", "update", made.workspaceId, "--name", "none");
    assert.equal(renamed.name, "none", "only a cap can be none");
    const [listed] = await run("workspaces", "list");
    assert.deepEqual([listed.aiBudgetCents, listed.operationsUsed], [2.5, 0]);
  });
});

Deno.test("with several apps a command asks which one is meant", async () => {
  await withService(async (service) => {
    await service.newApp();
    await service.newApp();
    const { shell, err } = testShell(operatorOf(service));
    assert.equal(await runAdmin(["keys", "list"], shell), EXIT.usage);
    assert.match(err(), /^--app: required, because there are 2 apps/);
  });
});

Deno.test("the admin token of the data folder is used when no variable names one", async () => {
  await withService(async (service) => {
    await withFile("admin-token", `${ADMIN_TOKEN}\n`, async (path) => {
      const HOLDFAST_DATA_DIR = path.replace("/admin-token", "");
      const variables = { PORT: new URL(service.url).port, HOLDFAST_DATA_DIR };
      assert.equal((await runTask("admin", ["apps", "list"], variables)).code, EXIT.ok);
    });
  });
});

Deno.test("refusal, wrong usage and an unreachable service have different exit statuses", async () => {
  await withService(async (service) => {
    const operator = operatorOf(service);
    const stranger = { ...operator, HOLDFAST_ADMIN_TOKEN: "wrong-token-0123456789" };
    const other = serve(() => new Response("<html>"));
    const rows: [number, string[], Record<string, string>, RegExp][] = [
      [EXIT.refused, ["apps", "show", "app_none"], operator, /^Refused \(not_found\): App not found$/],
      [EXIT.refused, ["apps", "list"], stranger, /^Refused \(invalid_key\)/],
      [EXIT.usage, ["apps", "crate"], operator, /^Unknown command 'crate'/],
      [EXIT.usage, ["apps", "create"], operator, /^Missing required argument 'name'$/],
      [EXIT.usage, ["workspaces", "create", "A", "--operation-cap", "-1"], operator, /Must be a number/],
      [EXIT.usage, ["workspaces", "update", "ws_1"], operator, /^Nothing to change/],
      [EXIT.usage, ["catalog", "apply", "/none.json"], operator, /^Cannot read/],
      [EXIT.usage, ["apps", "list", "--url", "nowhere"], operator, /^--url: must be a URL/],
      [
        EXIT.usage,
        ["apps", "list"],
        { HOLDFAST_DATA_DIR: "/none" },
        /^No admin token: set HOLDFAST_ADMIN_TOKEN/,
      ],
      [EXIT.usage, ["apps", "list"], { ...operator, PORT: "x" }, /^PORT must be a port number/],
      [EXIT.unreachable, ["apps", "list", "--url", other.url], operator, /another program answers there/],
      [
        EXIT.unreachable,
        ["apps", "list", "--url", "http://127.0.0.1:9"],
        operator,
        /^Cannot reach the service/,
      ],
    ];
    for (const [code, args, variables, message] of rows) {
      const { shell, err } = testShell(variables);
      assert.equal(await runAdmin(args, shell), code, args.join(" "));
      assert.match(err(), message);
    }
    await other.close();
  });
});

Deno.test("every admin command has help with an example", async () => {
  const commands = [
    [],
    ...["list", "create", "update"].map((verb) => ["workspaces", verb]),
    ...["list", "create", "show"].map((verb) => ["apps", verb]),
    ...["list", "create", "revoke"].map((verb) => ["keys", verb]),
    ...["show", "apply", "promote", "drop", "versions", "version"].map((verb) => ["catalog", verb]),
    ...["list", "create", "update", "delete", "rotate", "ping", "messages", "redeliver"].map((
      verb,
    ) => ["webhooks", verb]),
    ["workspaces"],
    ["apps"],
    ["keys"],
    ["catalog"],
    ["webhooks"],
    ["sweep"],
    ["doctor"],
  ];
  for (const command of commands) {
    const { shell, out } = testShell();
    assert.equal(await runAdmin([...command, "--help"], shell), EXIT.ok);
    assert.match(out(), new RegExp(`^Usage: ${["deno task admin", ...command].join(" ")}`));
    assert.match(out(), /\nExample:\n {2}deno task /);
  }
});

Deno.test("sweep settles what is due of idle users and prints the counts", async () => {
  await withService(async (service) => {
    const app = await service.newApp();
    await app.call("POST", "/subscriptions", { userId: "u", planId: "plan_pro" });
    await app.call("POST", "/reserve", { userId: "u", event: "image.render", ttlSeconds: 10 });
    service.clock.advance(11_000);
    const outcome = await runTask("sweep", [], operatorOf(service));
    assert.equal(outcome.code, EXIT.ok, outcome.err);
    assert.match(outcome.out, /^WHAT +COUNT\nexpired reservations +1\n/);
  });
});

Deno.test("tables are aligned, and a name cannot steer the terminal", () => {
  const rows = [["Zoë", 1234.5, null], ["a\x1b[31m\nb", 7, "x"]] as const;
  assert.equal(
    renderTable(["NAME", "COUNT", "NOTE"], rows),
    ["NAME        COUNT  NOTE", "Zoë       1,234.5  -", "a\u{fffd}[31m\u{fffd}b        7  x"].join("\n"),
  );
});
