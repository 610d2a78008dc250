// Rules for every page and action of the console, including later ones: a walk over all of them in an app with markup in
// every text.

import { Stores } from "../../src/cluster/stores.ts";
import assert from "node:assert/strict";
import { ACTIONS, PAGES } from "../../routes/console/routes.ts";
import { getEvent, listEvents } from "../../routes/contract/events.ts";
import { AGENT_TOKEN, consoleOf, formOf, SUPPORT_TOKEN, type Visit, Visitor } from "./console_support.ts";
import { dataOf, serviceOfFile } from "./support.ts";
import { ADMIN_TOKEN, type TestApp } from "../support/test_service.ts";

const service = serviceOfFile();

/** A text that is markup, a script and the end of an attribute where it is not escaped. */
function hostile(name: string): string {
  return `<script>m_${name}()</script>"onx='m_${name}'`;
}

/** Matches such a text that was not escaped. */
const ESCAPED_WRONGLY = /<script>m_|m_\w+\(\)<\/script>"|"onx='m_/;

/** The names of texts that some page must show. */
const SHOWN = [
  "account",
  "alias",
  "app",
  "child",
  "description",
  "event",
  "external",
  "group",
  "keyname",
  "metakey",
  "metavalue",
  "notes",
  "pack",
  "plan",
  "prompt",
  "provider",
  "response",
  "run",
  "user",
  "workspace",
];

const CATALOG = {
  settings: { promptLogging: true },
  plans: [{
    id: "plan_pro",
    name: hostile("plan"),
    rank: 10,
    period: { type: "monthly", anchor: "calendar" },
    limits: [
      { id: "lg_all", label: hostile("group"), unit: "count", quota: 3, matches: [{ event: "*" }] },
    ],
  }],
  packs: [{
    id: "cpk_wallet",
    name: hostile("pack"),
    kind: "generic",
    defaultExpiryDays: 365,
    unit: "count",
    matches: [{ event: "*" }],
    items: [],
  }],
};

const EVENT = "<script>m_event()</script>\"onx='m_event'";

interface Scene {
  readonly app: TestApp;
  /** The values of the members of paths. */
  readonly parts: Readonly<Record<string, string>>;
}

/** An app whose names, ids, notes, prompts and metadata are markup. */
async function makeScene(): Promise<Scene> {
  const { workspaceId } = await dataOf(service.admin("POST", "/workspaces", { name: hostile("workspace") }));
  const made = await dataOf(service.admin("POST", "/apps", { name: hostile("app"), workspaceId }));
  await dataOf(service.admin("PUT", `/apps/${made.appId}/catalog`, CATALOG));
  const { key, keyId } = made.keys.find((row: { class: string; mode: string }) =>
    row.class === "secret" && row.mode === "live"
  );
  const template = await service.newApp(CATALOG);
  const app: TestApp = {
    ...template,
    appId: made.appId,
    call: (method, path, body) => template.call(method, path, body, { key }),
  };
  const userId = hostile("user");
  const post = (path: string, body: object) => dataOf(app.call("POST", path, { userId, ...body }));
  const metadata = { [hostile("metakey")]: hostile("metavalue") };
  const texts = { prompt: hostile("prompt"), response: hostile("response"), metadata };
  await post("/subscriptions", {
    planId: "plan_pro",
    provider: hostile("provider"),
    externalId: hostile("external"),
  });
  const grant = {
    packId: "cpk_wallet",
    quantity: 5,
    notes: hostile("notes"),
    externalRef: hostile("reference"),
  };
  const { balanceId } = await post("/credits/grant", grant);
  const { eventId } = await post("/track", { event: EVENT, ...texts });
  const { reservationId } = await post("/reserve", { event: EVENT, ttlSeconds: 86_400, ...texts });
  const refused = await app.call("POST", "/track", { userId, event: EVENT, count: 1_000, ...texts });
  assert.equal(refused.status, 429);
  await dataOf(app.call("POST", "/customers/alias", { from: hostile("alias"), to: userId }));
  const webhook = {
    url: "https://example.test/x",
    mode: "live",
    events: ["*"],
    description: hostile("description"),
  };
  const { webhookId } = await dataOf(service.admin("POST", `/apps/${app.appId}/webhooks`, webhook));
  const below = (id: string, parentId: string) =>
    dataOf(app.call("PUT", `/users/${encodeURIComponent(id)}/parent`, { parentId }));
  await below(userId, hostile("account"));
  await below(hostile("child"), userId);
  await dataOf(app.call("POST", "/subscriptions", { userId: hostile("account"), planId: "plan_pro" }));
  const { runId } = await post("/runs", {
    name: hostile("run"),
    limits: [{ unit: "count", quota: 5, event: EVENT }],
  });
  const { userKeyId } = await dataOf(
    app.call("POST", `/users/${encodeURIComponent(userId)}/keys`, { name: hostile("keyname") }),
  );
  await service.serving().term.flush();
  const { subscription } = await dataOf(app.call("GET", `/users/${encodeURIComponent(userId)}`));
  return {
    app,
    parts: {
      appId: app.appId,
      mode: "live",
      userId,
      balanceId,
      eventId,
      reservationId,
      keyId,
      userKeyId,
      runId,
      alias: hostile("alias"),
      webhookId,
      version: "1",
      subscriptionId: subscription.subscriptionId,
      groupId: "lg_images",
      messageId: "whm_00000000000000000000",
    },
  };
}

let scene: Promise<Scene> | undefined;

/** The path of a page or an action in the scene. */
async function addressOf(path: string): Promise<string> {
  const { parts } = await (scene ??= makeScene());
  return path.replaceAll(/:(\w+)/g, (_, name: string) => {
    const part = parts[name];
    assert.ok(part !== undefined, `Give ":${name}" of ${path} a value in this test`);
    return encodeURIComponent(part);
  });
}

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/** The rules for every response of the console. */
function assertSafe({ headers, html }: Visit, address: string): void {
  assert.equal(headers.get("content-security-policy"), POLICY, address);
  assert.equal(headers.get("x-frame-options"), "DENY", address);
  assert.equal(headers.get("x-content-type-options"), "nosniff", address);
  assert.equal(headers.get("cache-control"), "no-store", address);
  if (!(headers.get("content-type") ?? "").startsWith("text/html")) return;
  const wrong = ESCAPED_WRONGLY.exec(html);
  assert.equal(
    wrong,
    null,
    `${address}: ${html.slice((wrong?.index ?? 0) - 100, (wrong?.index ?? 0) + 100)}`,
  );
  // Texts are escaped, so these tags are ours.
  const tags = html.match(/<[a-z][^>]*>/gi) ?? [];
  for (const tag of tags) {
    assert.doesNotMatch(tag, /\s(on\w+|style|hx-on[\w:-]*)=/i, `${address}: ${tag}`);
    assert.doesNotMatch(
      tag,
      /\s(src|href|action|formaction|hx-\w+)="\s*(\w+:(?!,")|\/\/)/i,
      `${address}: ${tag}`,
    );
  }
  assert.doesNotMatch(html, /<script(?![^>]*\ssrc=")/i, `${address}: a script of its own`);
  assert.doesNotMatch(html, /<style/i, address);
}

const visitors = new Map<string, Promise<Visitor>>();

/** A signed-in visitor for all tests: the clock does not move. */
function visitor(token = ADMIN_TOKEN): Promise<Visitor> {
  const known = visitors.get(token) ?? Visitor.signedIn(consoleOf(service), token);
  visitors.set(token, known);
  return known;
}

async function keysOf(token?: string): Promise<{ csrf: string; once: string }> {
  const { html } = await (await visitor(token)).get("/console/apps");
  return {
    csrf: formOf(html, "Sign out").fields["csrf"] ?? "",
    once: crypto.randomUUID().replaceAll("-", ""),
  };
}

/** Every row except those of sign-ins. */
async function digest(): Promise<string> {
  await service.serving().term.flush();
  const tables = [
    "audit",
    "audit_begun",
    "credit_balances",
    "subscriptions",
    "keys",
    "catalogs",
    "test_catalogs",
    "catalog_versions",
    "webhooks",
    "events",
    "runs",
    "users",
  ];
  const { database } = service.store;
  const rows = await Promise.all(
    tables.map((table) =>
      database.query(
        `select t::text as row from "${table}" t where ${
          table === "audit" ? "what not like 'sign%'" : "true"
        } order by 1`,
      )
    ),
  );
  return JSON.stringify(rows);
}

for (const { path } of PAGES) {
  Deno.test(`the page ${path} asks for a sign-in, escapes every text, and changes nothing for any role`, async () => {
    const address = await addressOf(path);
    const stranger = await new Visitor(consoleOf(service)).get(address);
    assert.equal(stranger.path, `/console/sign-in?to=${encodeURIComponent(address)}`);
    assertSafe(stranger, address);
    const before = await digest();
    for (const token of [ADMIN_TOKEN, SUPPORT_TOKEN, AGENT_TOKEN]) {
      for (const headers of [{}, { "hx-request": "true" }]) {
        const visit = await (await visitor(token)).get(address, headers);
        assert.ok([200, 400, 403, 404].includes(visit.status), `${address}: ${visit.status} ${visit.text}`);
        assertSafe(visit, address);
        if (token === ADMIN_TOKEN) continue;
        const forms = [...visit.html.matchAll(/<form[^>]*method="post"[^>]*action="([^"]*)"/g)];
        const sent = (action = "") => action.replaceAll("&#39;", "'");
        const own = token === AGENT_TOKEN && /\/(grant|release)$/.test(path) ? address : "/console/sign-out";
        assert.deepEqual(
          forms.map(([, action]) => sent(action)).filter((action) =>
            action !== "/console/sign-out" && action !== own
          ),
          [],
        );
      }
    }
    assert.equal(await digest(), before);
  });
}

for (const { path, call } of ACTIONS) {
  Deno.test(`the action ${path} is refused without a session, for roles that may not make its call, and for a form of another page`, async () => {
    const address = await addressOf(path);
    const { csrf, once } = await keysOf();
    const before = await digest();
    const stranger = await new Visitor(consoleOf(service)).send(
      address,
      { csrf, once, step: "confirm" },
      false,
    );
    assert.equal(stranger.status, 303);
    assert.match(stranger.headers.get("location") ?? "", /^\/console\/sign-in\?/);
    const isOfAgents = ["grantCredits", "release"].includes(call?.id ?? "");
    for (const token of isOfAgents ? [SUPPORT_TOKEN] : [SUPPORT_TOKEN, AGENT_TOKEN]) {
      const own = await keysOf(token);
      const looker = await (await visitor(token)).send(address, { ...own, step: "confirm" }, false);
      assert.equal(looker.status, 403);
      assertSafe(looker, address);
    }
    const other = await keysOf(SUPPORT_TOKEN);
    for (
      const keys of [
        { once },
        { csrf: "", once },
        { csrf: `${csrf}x`, once },
        { csrf: other.csrf, once },
        { csrf },
        { csrf, once: "" },
        { csrf, once: "short" },
        { csrf, once: `${once}'--` },
      ] as Record<string, string>[]
    ) {
      const sent = await (await visitor()).send(address, { ...keys, step: "confirm" }, false);
      assert.equal(sent.status, 403, JSON.stringify(keys));
      assertSafe(sent, address);
    }
    assert.equal(await digest(), before);
  });
}

Deno.test("every text of a customer or of their users is shown on some page, and escaped", async () => {
  const seen = new Set<string>();
  for (const { path } of PAGES) {
    const { html } = await (await visitor()).get(await addressOf(path));
    for (const [, name = ""] of html.matchAll(/&lt;script&gt;m_(\w+)\(\)/g)) seen.add(name);
  }
  assert.deepEqual(SHOWN.filter((name) => !seen.has(name)), [], [...seen].join());
});

Deno.test("an unknown path, an unknown app and an unknown mode are error pages", async () => {
  const { parts } = await (scene ??= makeScene());
  const admin = await visitor();
  for (
    const address of [
      "/console/nowhere",
      "/console/apps/app_unknown/live",
      `/console/apps/${parts["appId"]}/other`,
      `/console/apps/${encodeURIComponent(hostile("address"))}/live`,
      `/console/apps/${parts["appId"]}/live/users/%00`,
      `/console/apps/${parts["appId"]}/live/users/%ff`,
      "/console/apps/__proto__/live",
    ]
  ) {
    const visit = await admin.get(address);
    assert.ok([400, 404].includes(visit.status), `${address}: ${visit.status}`);
    assertSafe(visit, address);
  }
});

Deno.test("support sees a prompt only where a setting shows it", async () => {
  const { parts } = await (scene ??= makeScene());
  const { ApiCaller, endpointsOf } = await import("../../routes/console/parts/ask.ts");
  const { ENDPOINTS } = await import("../../routes/app.ts");
  const { appId = "", eventId = "" } = parts;
  const session = {
    id: "s",
    until: service.clock.now() + 1,
    operator: { name: "support", role: "support", sessionKey: "" },
  } as const;
  for (const seesPrompts of [false, true]) {
    const asker = { session, seesPrompts, agentGrants: 0, userId: null, once: null };
    const ask = new ApiCaller(
      { serving: service.serving(), source: Stores.of(service.service) },
      endpointsOf(ENDPOINTS, []),
      new Request("http://service.test/"),
      asker,
    );
    const detail = await ask.app({ appId, mode: "live" }, getEvent, { eventId });
    const list = await ask.app({ appId, mode: "live" }, listEvents, {});
    assert.ok(detail.ok && list.ok);
    const { prompt, response, metadata } = detail.data;
    assert.deepEqual(
      [prompt, response],
      seesPrompts ? [hostile("prompt"), hostile("response")] : [null, null],
    );
    assert.equal(list.data.events.some(({ promptPreview }) => promptPreview !== null), seesPrompts);
    assert.deepEqual(metadata, { [hostile("metakey")]: hostile("metavalue") });
  }
});
