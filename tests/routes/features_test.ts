// A service without a privacy secret, an export secret and a model key: what answers not_implemented, and what works.

import assert from "node:assert/strict";
import { signExport } from "../../routes/calls/export.ts";
import { composeApp, composeRecap } from "./compose_support.ts";
import { captured, countsOf, eventsOf, identified, open } from "./people_support.ts";
import { askOf, newLogged, optedOutOf, optIn, optOut, rowsOf } from "./privacy_support.ts";
import { assertRefused, dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile({ privacySecret: null, exportSecret: null });

Deno.test("compose is refused without a model key, after what the call itself lacks and before the caps", async () => {
  const app = await composeApp(service, undefined, { operationCap: 0, aiBudgetCents: 0 });
  assertRefused(await composeRecap(app, { type: "none" }), 404, "not_found");
  assertRefused(await composeRecap(app, { vars: {} }), 400, "invalid_request");
  assertRefused(await composeRecap(app), 501, "not_implemented");
});

Deno.test("export needs its secret, for the link and for what it opens", async () => {
  const app = await service.newApp();
  const answer = await app.call("POST", "/export-person", { distinctId: "u" });
  assertRefused(answer, 501, "not_implemented");
  const token = signExport("another-secret-0123456789", {
    appId: app.appId,
    mode: "live",
    distinctId: "u",
    expiresAt: Date.UTC(2099, 0),
  });
  const download = await open(service, `http://x/api/v1/export-download?token=${token}`);
  assertRefused(download, 501, "not_implemented");
});

Deno.test("without the privacy secret, analytics and erasure are off and the other scopes work", async () => {
  const u = await newLogged(service);
  const refused = [
    await askOf(u, "/opt-out", { distinctId: "u" }),
    await askOf(u, "/opt-out", { distinctId: "u", scope: "analytics" }),
    await askOf(u, "/opt-out", { distinctId: "u", scope: "all" }),
    await askOf(u, "/delete-person", { distinctId: "u" }),
  ];
  for (const answer of refused) assertRefused(answer, 501, "not_implemented");
  assert.deepEqual(await optedOutOf(u, "u"), []);
  assert.deepEqual(await rowsOf(service, "select 1 from consents union all select 1 from erasure_jobs"), []);
  for (const scope of ["ai_personalization", "prompt_logging"]) {
    await optOut(u, "u", scope);
    assert.deepEqual(await optedOutOf(u, "u"), [scope]);
    await optIn(u, "u", scope);
    assert.deepEqual(await optedOutOf(u, "u"), []);
  }
  await optIn(u, "u", "analytics");
  await optIn(u, "u");
  assertRefused(await askOf(u, "/opt-out", { scope: "analytics" }), 400, "invalid_request");
  assertRefused(await askOf(u, "/delete-person", {}), 400, "invalid_request");
});

Deno.test("without the privacy secret an opt-out of analytics is refused, and capture works", async () => {
  const app = await service.newApp();
  const answer = await app.call("POST", "/opt-out", { distinctId: "u" });
  assertRefused(answer, 501, "not_implemented");
  await captured(app, { distinctId: "u" });
  await identified(app, { distinctId: "u", properties: { a: 1 } });
  assert.deepEqual(await countsOf(service, app), {
    people: 1,
    person_ids: 1,
    analytics_events: 1,
    pseudonyms: 0,
  });
  // The secret was set once: a name that cannot be found again is unknown.
  await dataOf(app.call("POST", "/track", { userId: "v", event: "e" }));
  await service.serving().term.flush();
  await service.store.database.query("update users set opted_out = 1 where id = 'v'");
  await captured(app, { distinctId: "v" });
  assert.equal((await eventsOf(service, app)).length, 1);
});
