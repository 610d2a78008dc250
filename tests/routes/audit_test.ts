// The audit log: what goes into it and what does not, who reads it, and that no entry is rewritten.

import { Stores } from "../../src/cluster/stores.ts";
import assert from "node:assert/strict";
import type { Hono } from "hono";
import { ENDPOINTS } from "../../routes/app.ts";
import { SURFACE } from "../../routes/surface.ts";
import { ADMIN_ENDPOINTS } from "../../routes/calls/admin.ts";
import { AUDIT_VALUES } from "../../routes/http/audit_values.ts";
import { ApiCaller, endpointsOf } from "../../routes/console/parts/ask.ts";
import { createKey } from "../../routes/contract/admin.ts";
import { grantCredits } from "../../routes/contract/credits.ts";
import { explain } from "../../routes/contract/metering.ts";
import { beginAudited, shortened } from "../../src/audit/audit.ts";
import { AUDIT_LIMITS } from "../../src/process/limits.ts";
import { changedLimits } from "../support/limits.ts";
import { ADMIN_TOKEN, send, type TestApp } from "../support/test_service.ts";
import { consoleOf, SUPPORT_TOKEN, Visitor } from "./console_support.ts";
import { assertRefused, CATALOG, dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

interface Entry {
  readonly auditId: string;
  readonly at: string;
  readonly who: string;
  readonly via: string;
  readonly what: string;
  readonly appId: string | null;
  readonly mode: string | null;
  readonly userId: string | null;
  readonly before: Record<string, unknown> | null;
  readonly after: Record<string, unknown> | null;
}

async function logged(query = ""): Promise<{ entries: Entry[]; nextCursor: string | null }> {
  return await dataOf(service.admin("GET", `/audit?${query}`));
}

/** What work left in the log, oldest first. */
async function entriesOf(work: () => Promise<unknown>): Promise<Entry[]> {
  const last = (await logged("limit=1")).entries[0]?.auditId ?? "";
  await work();
  const { entries } = await logged("limit=200");
  return entries.filter(({ auditId }) => auditId > last).reverse();
}

/** An entry without its id and time. */
function bare({ auditId, at, ...rest }: Entry): Omit<Entry, "auditId" | "at"> {
  assert.match(auditId, /^aud_[0-9a-v]{20}$/);
  assert.equal(at, new Date(service.clock.now()).toISOString());
  return rest;
}

const API = { who: "admin", via: "api", mode: null, userId: null };

Deno.test("every call of the admin API that writes says what the log keeps of it", () => {
  const writing = SURFACE.calls.filter(({ path, method }) => path.startsWith("/admin/") && method !== "GET");
  assert.ok(writing.length >= 13);
  assert.deepEqual(writing.map(({ id }) => id).filter((id) => !Object.hasOwn(AUDIT_VALUES, id)), []);
});

Deno.test("writes of the admin API are logged from before to after, and nothing of them is a secret", async () => {
  const secrets: string[] = [];
  let workspaceId = "", appId = "", keyId = "", webhookId = "";
  const entries = await entriesOf(async () => {
    ({ workspaceId } = await dataOf(service.admin("POST", "/workspaces", { name: "W", operationCap: 5 })));
    await dataOf(service.admin("PATCH", `/workspaces/${workspaceId}`, { operationCap: 7 }));
    const made = await dataOf(service.admin("POST", "/apps", { name: "A", workspaceId }));
    appId = made.appId;
    secrets.push(made.identitySecret, ...made.keys.map(({ key }: { key: string }) => key));
    await dataOf(service.admin("PUT", `/apps/${appId}/catalog`, { plans: CATALOG.plans.slice(0, 1) }));
    const key = await dataOf(service.admin("POST", `/apps/${appId}/keys`, { class: "public", mode: "test" }));
    keyId = key.keyId;
    await dataOf(service.admin("DELETE", `/apps/${appId}/keys/${keyId}`));
    const { identitySecret } = await dataOf(service.admin("POST", `/apps/${appId}/identity-secret`, {}));
    const webhook = { url: "https://example.test/hook-secret-path", mode: "live", events: ["*"] };
    const hook = await dataOf(service.admin("POST", `/apps/${appId}/webhooks`, webhook));
    webhookId = hook.webhookId;
    await dataOf(service.admin("PATCH", `/apps/${appId}/webhooks/${webhookId}`, { disabled: true }));
    await dataOf(service.admin("DELETE", `/apps/${appId}/webhooks/${webhookId}`));
    secrets.push(key.key, identitySecret, hook.secret, "hook-secret-path");
  });
  const caps = { aiBudgetCents: null, testOperationCap: 10_000, testCreditBalanceCap: 1_000 };
  const key = { keyId, class: "public", mode: "test" };
  const host = "example.test";
  const hook = { mode: "live", events: '["*"]', description: null };
  const oldValidUntil = new Date(service.clock.now() + 24 * 3_600_000).toISOString();
  assert.deepEqual(
    entries.map(bare).map(({ what, before, after, appId: of }) => [what, of, before, after]),
    [
      ["createWorkspace", null, null, { workspaceId, name: "W", operationCap: 5, ...caps }],
      ["changeWorkspace", null, { operationCap: 5 }, { workspaceId, operationCap: 7 }],
      ["createApp", appId, null, { name: "A", workspaceId }],
      ["applyCatalog", appId, { version: 0 }, { version: 1, changes: "plans added" }],
      ["createKey", appId, null, key],
      ["revokeKey", appId, null, key],
      ["rotateIdentitySecret", appId, null, { oldValidUntil }],
      ["createWebhook", appId, null, { webhookId, url: host, ...hook }],
      ["changeWebhook", appId, { disabled: false }, { webhookId, disabled: true }],
      ["deleteWebhook", appId, { url: host, ...hook, disabled: true }, { webhookId }],
    ],
  );
  for (const { who, via, mode, userId } of entries) assert.deepEqual({ who, via, mode, userId }, API);
  const rows = JSON.stringify(await service.store.database.query("select t::text as row from audit t"));
  for (const secret of [...secrets, ADMIN_TOKEN]) assert.ok(!rows.includes(secret));
});

Deno.test("what changed nothing is not logged: a read, a dry run, a refusal", async () => {
  const app = await service.newApp();
  const entries = await entriesOf(async () => {
    await dataOf(service.admin("GET", "/apps"));
    await dataOf(service.admin("PUT", `/apps/${app.appId}/catalog?dryRun=true`, {}));
    assertRefused(
      await service.admin("PUT", `/apps/${app.appId}/catalog`, { plans: 1 }),
      400,
      "invalid_request",
    );
    assertRefused(await service.admin("DELETE", `/apps/${app.appId}/keys/key_unknown`), 404, "not_found");
    assertRefused(await service.admin("POST", "/apps", {}), 400, "invalid_request");
  });
  assert.deepEqual(entries, []);
  assert.equal((await service.store.database.query("select * from audit_begun")).length, 0);
});

Deno.test("sign-ins, failed ones too, and their ends are logged by name and never with a token", async () => {
  const http = consoleOf(service);
  const entries = await entriesOf(async () => {
    await failSignIn(http);
    const visitor = await Visitor.signedIn(http, SUPPORT_TOKEN);
    await visitor.press(await visitor.get("/console/apps"), "Sign out");
  });
  assert.deepEqual(entries.map(({ who, via, what }) => [who, via, what]), [
    ["unknown", "console", "signInFailed"],
    ["support", "console", "signIn"],
    ["support", "console", "signOut"],
  ]);
  const rows = JSON.stringify(await service.store.database.query("select t::text as row from audit t"));
  for (const token of ["wrong-token", SUPPORT_TOKEN, ADMIN_TOKEN]) assert.ok(!rows.includes(token), token);
});

const WRONG = "wrong-token-0123456789";

function failSignIn(http: Hono, from = "192.0.2.1") {
  const headers = { "content-type": "application/x-www-form-urlencoded" };
  const init = { method: "POST", headers, body: `token=${WRONG}` };
  const request = new Request("http://service.test/console/sign-in", init);
  return http.fetch(request, { remoteAddr: { hostname: from } });
}

Deno.test("wrong tokens are one entry for each address and minute, with their number, and 100 a minute", async () => {
  using _limits = changedLimits(AUDIT_LIMITS, { failedWriteMs: 0, failedRowsMax: 4 });
  const http = consoleOf(service);
  service.clock.advance(60_000 - service.clock.now() % 60_000);
  const minute = service.clock.now();
  const asAdmin = { headers: { authorization: `Bearer ${WRONG}` } };
  const entries = await entriesOf(async () => {
    for (let at = 0; at < 8; at++) await failSignIn(http);
    const admin = new Request("http://service.test/api/admin/v1/apps", asAdmin);
    for (let at = 0; at < 5; at++) await http.fetch(admin, { remoteAddr: { hostname: "192.0.2.1" } });
    for (let at = 2; at < 8; at++) await failSignIn(http, `192.0.2.${at}`);
    // Those above the limit of guesses are written together, a little later.
    while ((await logged("limit=4")).entries.every(({ after }) => after?.count !== 13)) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    service.clock.advance(60_000);
    await failSignIn(http);
  });
  const shown = entries.map((
    { who, via, what, at, after },
  ) => [who, via, what, Date.parse(at) - minute, after]);
  const entry = (address: string, count: number, at = 0) =>
    ["unknown", "console", "signInFailed", at, { address, count }] as unknown[];
  assert.deepEqual(shown, [
    entry("192.0.2.1", 13),
    entry("192.0.2.2", 1),
    entry("192.0.2.3", 1),
    entry("others", 4),
    entry("192.0.2.1", 1, 60_000),
  ]);
  assert.deepEqual((await logged("limit=2")).entries.map(({ after }) => after?.address), [
    "192.0.2.1",
    "others",
  ]);
  const page = await (await Visitor.signedIn(http)).get("/console/audit");
  assert.match(page.text, /Failed sign-in .*192\.0\.2\.1/);
  service.clock.advance(90 * 24 * 3_600_000 - 60_000);
  const rows = () => service.store.database.query("select * from failed_sign_ins");
  assert.ok((await dataOf(service.admin("POST", "/sweep"))).failedSignIns >= 4);
  assert.equal((await rows()).length, 1);
  service.clock.advance(60_000);
  assert.equal((await dataOf(service.admin("POST", "/sweep"))).failedSignIns, 1);
  assert.equal((await rows()).length, 0);
});

async function appWithBalance(): Promise<{ app: TestApp; page: string }> {
  const app = await service.newApp();
  await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "plan_pro" }));
  return { app, page: `/console/apps/${app.appId}/live/users/u/grant` };
}

Deno.test("an act of the console is logged once, however often and through however many processes it is sent", async () => {
  const { app, page } = await appWithBalance();
  const visitor = await Visitor.signedIn(consoleOf(service));
  const preview = await visitor.press(await visitor.get(page), "Continue", {
    packId: "cpk_image_topup",
    notes: "for a good friend",
  });
  const entries = await entriesOf(async () => {
    await visitor.press(preview, "Grant");
    await visitor.press(preview, "Grant");
    visitor.http = consoleOf(service);
    await visitor.press(preview, "Grant");
  });
  const [entry, ...more] = entries.map(bare);
  assert.deepEqual(more, []);
  assert.ok(entry !== undefined && entry.after !== null);
  const { before, after, ...rest } = entry;
  assert.deepEqual(rest, {
    who: "admin",
    via: "console",
    what: "grantCredits",
    appId: app.appId,
    mode: "live",
    userId: "u",
  });
  assert.equal(Object.values(before ?? {})[0], "0");
  const { balanceId, notes, packId, ...said } = after;
  assert.match(String(balanceId), /^crb_/);
  assert.deepEqual([packId, notes], ["cpk_image_topup", "for a good friend"]);
  assert.ok(Object.values(said).includes("50"), JSON.stringify(said));
});

/** What a form of an operator asks with. */
function asking(once: string | null, role: "admin" | "support" = "admin"): ApiCaller {
  const operator = { name: "ann", role, sessionKey: "" };
  const session = { id: "session", until: service.clock.now() + 1_000, operator };
  const asker = { session, seesPrompts: true, agentGrants: 0, userId: null, once };
  const request = new Request("http://service.test/console/x");
  const stores = { serving: service.serving(), source: Stores.of(service.service) };
  return new ApiCaller(stores, endpointsOf(ENDPOINTS, ADMIN_ENDPOINTS), request, asker);
}

Deno.test("a write of the admin API happens once for a form, and a refused form may be sent again", async () => {
  const { appId } = await service.newApp();
  const key = { appId, class: "secret", mode: "live" } as const;
  const once = "0123456789abcdef";
  const entries = await entriesOf(async () => {
    const both = await Promise.all([1, 2].map(() => asking(once).admin(createKey, key)));
    assert.deepEqual(both.map(({ ok }) => ok).sort(), [false, true]);
    const [second] = both.filter(({ ok }) => !ok);
    assert.ok(second?.ok === false && second.error.code === "idempotency_conflict");
    const other = "fedcba9876543210";
    for (let at = 0; at < 2; at++) {
      const refused = await asking(other).admin(createKey, { ...key, appId: "app_unknown" });
      assert.ok(!refused.ok && refused.error.code === "not_found");
    }
    assert.ok((await asking(other).admin(createKey, key)).ok);
  });
  assert.deepEqual(entries.map(({ who, via, what }) => [who, via, what]), [
    ["ann", "console", "createKey"],
    ["ann", "console", "createKey"],
  ]);
});

Deno.test("a page that is looked at and a role that looks write nothing, whatever they ask", async () => {
  const { appId } = await service.newApp();
  const realm = { appId, mode: "live" } as const;
  const grant = { userId: "u", packId: "cpk_image_topup" };
  const once = "0123456789abcdef";
  const entries = await entriesOf(async () => {
    for (const ask of [asking(null), asking(once, "support")]) {
      for (
        const asked of [
          await ask.app(realm, grantCredits, grant),
          await ask.admin(createKey, { appId, class: "secret", mode: "live" }),
        ]
      ) {
        assert.ok(
          !asked.ok && ["forbidden", "internal_error"].includes(asked.error.code),
          JSON.stringify(asked),
        );
      }
      assert.ok((await ask.app(realm, explain, { userId: "u", event: "x" })).ok);
    }
  });
  assert.deepEqual(entries, []);
});

Deno.test("the log is read newest first, page by page, by app and by user, and no other key opens it", async () => {
  const { app, page } = await appWithBalance();
  const visitor = await Visitor.signedIn(consoleOf(service));
  for (let at = 0; at < 3; at++) {
    const preview = await visitor.press(await visitor.get(page), "Continue", {
      packId: "cpk_image_topup",
    });
    await visitor.press(preview, "Grant");
  }
  const all = (await logged(`appId=${app.appId}`)).entries;
  assert.deepEqual(all.map(({ what }) => what), [
    "grantCredits",
    "grantCredits",
    "grantCredits",
    "applyCatalog",
    "createApp",
  ]);
  assert.deepEqual((await logged(`appId=${app.appId}&userId=u`)).entries, all.slice(0, 3));
  assert.deepEqual((await logged(`appId=${app.appId}&userId=U`)).entries, []);
  const paged: Entry[] = [];
  let cursor = "";
  do {
    const page = await logged(`appId=${app.appId}&limit=2${cursor}`);
    assert.ok(page.entries.length <= 2);
    paged.push(...page.entries);
    cursor = page.nextCursor === null ? "" : `&cursor=${page.nextCursor}`;
  } while (cursor !== "");
  assert.deepEqual(paged, all);
  for (const key of [SUPPORT_TOKEN, app.secretLive]) {
    const answer = await send(service.http, "GET", "/api/admin/v1/audit", undefined, { key });
    assertRefused(answer, 401, "invalid_key");
  }
  for (const query of ["limit=0", "limit=201", "cursor=x", "cursor=evt_0123456789abcdefghij"]) {
    assertRefused(await service.admin("GET", `/audit?${query}`), 400, "invalid_request", query);
  }
});

Deno.test("a restart keeps the log, and a write whose process died in the middle is in it with an unknown outcome", async () => {
  const { appId } = await service.newApp();
  const action = {
    who: "ann",
    via: "console",
    what: "grantCredits",
    appId,
    mode: "live",
    userId: "u",
  } as const;
  await beginAudited(service.serving(), action);
  const before = (await logged("limit=200")).entries;
  await service.restart();
  assert.deepEqual((await logged("limit=200")).entries, before);
  const other = { name: "W" };
  await dataOf(service.admin("POST", "/workspaces", other));
  assert.deepEqual((await logged(`appId=${appId}&userId=u`)).entries, [], "it may still be under way");
  await service.store.database.query("update audit_begun set begun_ms = begun_ms - $1::bigint", [
    AUDIT_LIMITS.begunMs,
  ]);
  await dataOf(service.admin("POST", "/workspaces", other));
  const [entry] = (await logged(`appId=${appId}&userId=u`)).entries;
  assert.deepEqual([entry?.who, entry?.what, entry?.after], ["ann", "grantCredits", { outcome: "unknown" }]);
});

Deno.test("an erasure hides whom entries are about, those of writes that end meanwhile too, and changes no others", async () => {
  const { app } = await appWithBalance();
  const serving = service.serving();
  const action = (userId: string, mode: "live" | "test" = "live") =>
    ({ who: "ann", via: "console", what: "grantCredits", appId: app.appId, mode, userId }) as const;
  const done = { kind: "done", appId: null, before: { name: "zebra" }, after: { notes: "zebra" } } as const;
  for (const [userId, mode] of [["zebra", "live"], ["zebra", "test"], ["horse", "live"]] as const) {
    await (await beginAudited(serving, action(userId, mode)))(done);
  }
  const underWay = await beginAudited(serving, action("zebra"));
  await dataOf(app.call("POST", "/delete-person", { distinctId: "zebra" }));
  await dataOf(service.admin("POST", "/sweep"));
  await underWay(done);
  const shown = async (query: string) =>
    (await logged(`appId=${app.appId}&${query}`)).entries.map((
      { mode, before, after },
    ) => [mode, before, after]);
  assert.deepEqual(await shown("userId=zebra"), [["test", { name: "zebra" }, { notes: "zebra" }]]);
  assert.deepEqual(await shown("userId=horse"), [["live", { name: "zebra" }, { notes: "zebra" }]]);
  const hidden = (await logged(`appId=${app.appId}`)).entries.filter(({ what, before }) =>
    what === "grantCredits" && before === null
  );
  assert.equal(hidden.length, 2);
  const [one, other] = hidden;
  assert.deepEqual([one?.after, other?.after, one?.who], [null, null, "ann"]);
  assert.match(one?.userId ?? "", /^[\w-]{43}$/);
  assert.equal(one?.userId, other?.userId, "the same hash, so that entries of one person are still together");
});

Deno.test("no entry is rewritten: not by UPDATE, DELETE or TRUNCATE, and not as an erasure", async () => {
  await service.newApp();
  const { database } = service.store;
  const rows = () => database.query("select t::text as row from audit t order by id");
  const before = await rows();
  const hostile = [
    "update audit set who = 'mallory'",
    "update audit set after = null",
    "update audit set user_id = 'x', before = null, after = null",
    "delete from audit",
    "truncate audit",
    "truncate audit cascade",
    "insert into audit select * from audit on conflict (id) do update set what = 'nothing'",
  ];
  const asErasure = [
    "update audit set who = 'mallory', before = null, after = null",
    "update audit set at_ms = 0, before = null, after = null",
    "update audit set after = '{}'",
    "update audit set user_id = null, before = null, after = null where user_id is not null",
    "update audit set user_id = 'framed', before = null, after = null where user_id is null",
    "delete from audit",
  ];
  for (const isErasing of [false, true]) {
    for (const statement of isErasing ? asErasure : hostile) {
      await assert.rejects(
        database.transaction(async (session) => {
          if (isErasing) await session.query("select set_config('holdfast.erasing', 'on', true)");
          await session.query(statement);
        }),
        /append-only/,
        statement,
      );
    }
  }
  assert.deepEqual(await rows(), before);
});

Deno.test("values are cut to what the log keeps, and no character in half", () => {
  const long = "😀".repeat(300);
  const short = shortened({ text: long, list: [1, 2], none: null, gone: undefined, yes: true, number: 1.5 });
  assert.deepEqual(short, {
    text: `${"😀".repeat(99)}…`,
    list: "[1,2]",
    none: null,
    yes: true,
    number: 1.5,
  });
  const many = Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`name ${at}`, at]));
  assert.equal(Object.keys(shortened(many)).length, AUDIT_LIMITS.valuesMax);
});
