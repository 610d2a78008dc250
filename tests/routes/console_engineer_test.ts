// What engineers look for in the console: requests that failed, keys that are rolled, and endpoints that fail.

import assert from "node:assert/strict";
import { consoleOf, SUPPORT_TOKEN, Visitor } from "./console_support.ts";
import { appWithUser, dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

const MARKUP = '<script>alert("x")</script>';

async function scene(token?: string) {
  const app = await appWithUser(service);
  const visitor = await Visitor.signedIn(consoleOf(service), token);
  return { app, visitor, base: `/console/apps/${app.appId}/live` };
}

Deno.test("the request log shows failed requests without prompts, and the search finds a request id", async () => {
  const { app, visitor, base } = await scene(SUPPORT_TOKEN);
  assert.match((await visitor.get(`${base}/requests`)).text, /No failed requests in live mode/);
  const headers = { "x-request-id": "req_of_test" };
  const body = { userId: "u", event: MARKUP, count: 0, prompt: "SECRET" };
  await app.call("POST", "/track", body, { headers });
  const page = await visitor.get(`${base}/requests`);
  assert.match(page.text, /400 invalid_request POST \/api\/v1\/track/);
  assert.match(page.text, /req_of_test/);
  assert.ok(!page.html.includes("SECRET") && !page.html.includes(MARKUP));
  const found = await visitor.get(`${base}/search?q=req_of_test`);
  assert.equal(found.path, `${base}/requests?requestId=req_of_test`);
  assert.match(found.text, /POST \/api\/v1\/track/);
  assert.match((await visitor.get(`${base}/requests?status=404`)).text, /No results match/);
  assert.match((await visitor.get(`${base}/requests?status=wrong`)).text, /must be an integer/);
  await app.call("GET", "/plans", undefined, { key: "sk_live_NobodysKey00" });
  const system = await visitor.get("/console/system");
  assert.match(system.text, /Unknown API keys/);
  assert.match(system.text, /sk_live_Nobo…/);
  assert.ok(!system.html.includes("sk_live_NobodysKey00"));
});

Deno.test("a key is rolled, and the identity secret rotated; each new text is shown once", async () => {
  const { app, visitor, base } = await scene();
  const form = await visitor.get(`${base}/keys/new`);
  const preview = await visitor.press(form, "Continue", { name: "Billing job" });
  await visitor.press(preview, "Create API key");
  const list = () => dataOf(service.admin("GET", `/apps/${app.appId}/keys`));
  const old = (await list()).find(({ name }: { name: string | null }) => name === "Billing job");
  assert.equal(old.createdBy, "admin");
  const asked = await visitor.press(
    await visitor.get(`${base}/keys/${old.keyId}/roll`),
    "Continue",
    { keepOldSeconds: "3600" },
  );
  assert.match(asked.text, /stays valid for 1 hour/);
  const rolled = await visitor.press(asked, "Roll API key");
  const [key] = /sk_live_[A-Za-z0-9]{20,}/.exec(rolled.html) ?? [];
  await dataOf(app.call("GET", "/plans", undefined, { key: key as string }));
  const page = await visitor.get(`${base}/keys`);
  assert.match(page.text, /Billing job/);
  assert.match(page.text, /valid until/);
  assert.ok(!page.html.includes(key as string));
  const identity = await visitor.press(await visitor.get(`${base}/keys/identity-secret`), "Continue");
  const rotated = await visitor.press(identity, "Rotate identity secret");
  assert.match(rotated.text, /New identity secret/);
  const entries = (await dataOf(service.admin("GET", `/audit?appId=${app.appId}`))).entries;
  const entry = entries.find(({ what }: { what: string }) => what === "rollKey");
  assert.equal(entry.after.oldKeyId, old.keyId);
  assert.equal(JSON.stringify(entries).includes(key as string), false);
});

Deno.test("a failing endpoint has a badge, its attempts are shown, and all its messages are sent again", async () => {
  const { app, visitor, base } = await scene();
  const { webhookId } = await dataOf(
    service.admin("POST", `/apps/${app.appId}/webhooks`, {
      url: "https://hooks.example/a",
      mode: "live",
      events: ["credits.*"],
    }),
  );
  assert.match((await visitor.get(`${base}/webhooks/failing`)).text, /No endpoint fails/);
  const { database } = service.store;
  await database.query("update webhooks set failing_since_ms = 1 where id = $1", [webhookId]);
  const attempt = { at: 1, status: 500, error: "answered 500", tookMs: 12, answer: MARKUP };
  await database.query(
    `insert into webhook_messages (id, webhook_id, realm, type, body, created_at_ms, status, attempts, failures,
       ended_at_ms, recent_attempts) select 'whm_' || $1, $1, 1, 'ping', '{"data":{}}', 1, 'failed', 8, 8, 1, array[$2]`,
    [webhookId, JSON.stringify(attempt)],
  );
  assert.match((await visitor.get(`${base}/webhooks/failing`)).html, /id="failing"/);
  assert.match((await visitor.get(`${base}/webhooks`)).html, /webhooks\/failing/);
  const place = `${base}/webhooks/${webhookId}`;
  const attempts = await visitor.get(`${place}/messages/whm_${webhookId}`);
  assert.match(attempts.text, /500 answered 500 12 ms/);
  assert.ok(!attempts.html.includes(MARKUP));
  assert.equal((await visitor.get(`${place}/messages/whm_unknown`)).status, 404);
  const list = await visitor.get(`${place}?status=failing`);
  assert.match(list.html, /redeliver-failing/);
  const asked = await visitor.get(`${place}/redeliver-failed`);
  assert.match((await visitor.press(asked, "Send all again")).text, /being sent again: 1/);
});
