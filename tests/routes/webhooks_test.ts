// The admin API of webhooks: valid and invalid input, who sees what, secrets, and pages of messages. That messages
// arrive is proved beside it.

import assert from "node:assert/strict";
import type { MessageRecord } from "../../src/storage/stores/webhook_store.ts";
import type { TestApp } from "../support/test_service.ts";
import { appWithUser, assertRefused, dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();
const URL_A = "https://example.com/hooks?from=holdfast";
const INPUT = { url: URL_A, mode: "live", events: ["*"] };

const pathOf = ({ appId }: TestApp) => `/apps/${appId}/webhooks`;
// deno-lint-ignore no-explicit-any -- tests look at whatever came back
const make = (app: TestApp, members: object = {}): Promise<any> =>
  dataOf(service.admin("POST", pathOf(app), { ...INPUT, ...members }));
// deno-lint-ignore no-explicit-any -- tests look at whatever came back
const list = (app: TestApp): Promise<any> => dataOf(service.admin("GET", pathOf(app)));

/** The listeners of a realm, as decisions know them. */
function listenersOf({ appId }: TestApp, mode: "live" | "test"): string[] {
  const outbox = service.serving().registry.apps.get(appId)?.realms[mode].outbox;
  return outbox?.listeners.map(({ webhookId }) => webhookId) ?? [];
}

Deno.test("a webhook shows its secret once, and itself in every list, also after a restart", async () => {
  const app = await appWithUser(service);
  const { secret, ...made } = await make(app, {
    events: ["credits.*", "ping", "credits.*"],
    description: "é",
  });
  assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
  assert.match(made.webhookId, /^whk_/);
  assert.deepEqual(made, {
    webhookId: made.webhookId,
    url: URL_A,
    mode: "live",
    events: ["credits.*", "ping"],
    description: "é",
    disabled: false,
    createdAt: new Date(service.clock.now()).toISOString(),
    lastSuccessAt: null,
    failingSince: null,
    pending: 0,
  });
  const other = await make(app, { mode: "test" });
  assert.notEqual(other.secret, secret);
  assert.equal(other.description, null);
  for (const isRestarted of [false, true]) {
    if (isRestarted) await service.restart();
    const [first, second, ...more] = await list(app);
    assert.deepEqual(first, made);
    assert.deepEqual([second.webhookId, more], [other.webhookId, []]);
    assert.deepEqual(listenersOf(app, "live"), [made.webhookId]);
    assert.deepEqual(listenersOf(app, "test"), [other.webhookId]);
  }
});

Deno.test("a PATCH changes the members that it names, and a disabled webhook gets no messages", async () => {
  const app = await appWithUser(service);
  const { secret: _, ...made } = await make(app, { description: "first" });
  const path = `${pathOf(app)}/${made.webhookId}`;
  const patch = (body: unknown) => dataOf(service.admin("PATCH", path, body));
  assert.deepEqual(await patch({}), made);
  assert.deepEqual(await patch({ url: null, events: null, disabled: null, secret: "x" }), made);
  const changed = { ...made, url: "https://example.com/other", events: ["user.merged"], disabled: true };
  const { url, events, disabled } = changed;
  assert.deepEqual(await patch({ url, events, disabled }), changed);
  assert.deepEqual(listenersOf(app, "live"), []);
  assert.deepEqual(await patch({ description: null }), { ...changed, description: null });
  await Promise.all([patch({ disabled: false }), patch({ description: "second" }), patch({ events: ["*"] })]);
  const last = { ...changed, disabled: false, description: "second", events: ["*"] };
  assert.deepEqual(await list(app), [last]);
  assert.deepEqual(listenersOf(app, "live"), [made.webhookId]);
});

Deno.test("a removed webhook is gone for every call and told nothing, and nothing of it is kept", async () => {
  const app = await appWithUser(service);
  const { webhookId, secret } = await make(app, { description: "gone soon" });
  const left = await make(app, { mode: "test" });
  const path = `${pathOf(app)}/${webhookId}`;
  assert.deepEqual(await dataOf(service.admin("DELETE", path)), {});
  for (const isRestarted of [false, true]) {
    if (isRestarted) await service.restart();
    assert.deepEqual((await list(app)).map((row: { webhookId: string }) => row.webhookId), [left.webhookId]);
    assert.deepEqual(listenersOf(app, "live"), []);
    for (
      const [method, suffix] of [["DELETE", ""], ["PATCH", ""], ["POST", "/rotate"], ["GET", "/messages"]]
    ) {
      const body = method === "PATCH" ? {} : undefined;
      const answer = await service.admin(method as string, path + suffix, body);
      assertRefused(answer, 404, "not_found", `${method} ${suffix}`);
    }
  }
  const rows = await service.store.database.query("select * from webhooks where id = $1", [webhookId]);
  for (const text of [secret, URL_A, "gone soon"]) assert.ok(!JSON.stringify(rows).includes(text), text);
});

Deno.test("what belongs to another app is not found", async () => {
  const [app, other] = [await appWithUser(service), await appWithUser(service)];
  const { webhookId } = await make(other);
  await dataOf(service.admin("PATCH", `${pathOf(other)}/${webhookId}`, { disabled: true }));
  const own = await make(app);
  await insertMessage(other, webhookId, { id: "whm_of_other" });
  const redeliver = (id: string) => `/${id}/messages/whm_of_other/redeliver`;
  for (
    const [method, suffix] of [
      ["PATCH", `/${webhookId}`],
      ["DELETE", `/${webhookId}`],
      ["POST", `/${webhookId}/rotate`],
      ["POST", `/${webhookId}/ping`],
      ["GET", `/${webhookId}/messages`],
      ["POST", redeliver(webhookId)],
      ["POST", redeliver(own.webhookId)],
      ["POST", `/${own.webhookId}/messages/whm_unknown/redeliver`],
    ] as const
  ) {
    const answer = await service.admin(method, pathOf(app) + suffix, method === "PATCH" ? {} : undefined);
    assertRefused(answer, 404, "not_found", `${method} ${suffix}`);
  }
  assert.equal((await list(other)).length, 1);
});

Deno.test("a refused address names the setting that allows it, and a refused type the types", async () => {
  const app = await service.newApp(undefined);
  const create = async (more: object) => {
    const sent = { url: URL_A, mode: "live", events: ["*"], ...more };
    const answer = await service.admin("POST", `/apps/${app.appId}/webhooks`, sent);
    return assertRefused(answer, 400, "invalid_request").message;
  };
  for (const url of ["http://127.0.0.1:3000/hook", "https://127.0.0.1/"]) {
    assert.match(await create({ url }), /HOLDFAST_WEBHOOKS_ALLOW_PRIVATE=true$/);
  }
  assert.doesNotMatch(await create({ url: "ftp://example.com" }), /ALLOW_PRIVATE/);
  assert.match(await create({ events: ["usage.threshold"] }), /usage\.threshold_reached, .*credits\.low/);
});

const FAULTY: readonly (readonly [member: string, values: readonly unknown[], path?: string])[] = [
  ["url", [
    "",
    "example.com",
    "/hooks",
    "ftp://example.com",
    "http://example.com/",
    "javascript:alert(1)",
    "https://",
    "https://user@example.com/",
    "https://user:pass@example.com/",
    "https://127.0.0.1/",
    "https://2130706433/",
    "https://0x7f.1/",
    "https://[::1]/",
    "https://[::ffff:10.0.0.1]/",
    "https://169.254.169.254/latest",
    `https://example.com/${"x".repeat(2000)}`,
    5,
    ["https://example.com/"],
  ]],
  ["events", [
    [],
    "*",
    "credits.low",
    ["credits"],
    ["credits.l*"],
    ["nothing.*"],
    [".*"],
    ["**"],
    [""],
    ["Credits.low"],
    ["*", 5],
    Array(51).fill("*"),
    {},
  ]],
  ["description", [5, {}, "x".repeat(501), "a\u0000"]],
];

Deno.test("input that no webhook can have is refused by its member, and changes nothing", async () => {
  const app = await appWithUser(service);
  const { webhookId } = await make(app);
  const before = await list(app);
  const path = `${pathOf(app)}/${webhookId}`;
  const faulty: [string, unknown, boolean][] = [
    ...FAULTY.flatMap(([member, values]) =>
      values.map((value): [string, unknown, boolean] => [member, value, true])
    ),
    ...["url", "mode", "events"].flatMap((member): [string, unknown, boolean][] => [
      [member, undefined, false],
      [member, null, false],
    ]),
    ["mode", "both", false],
    ["mode", ["live"], false],
  ];
  for (const [member, value, isOfPatch] of faulty) {
    const note = `${member}: ${JSON.stringify(value)}`;
    const refusals = [await service.admin("POST", pathOf(app), { ...INPUT, [member]: value })];
    if (isOfPatch) refusals.push(await service.admin("PATCH", path, { [member]: value }));
    for (const answer of refusals) {
      const { details } = assertRefused(answer, 400, "invalid_request", note);
      assert.ok(details[0].path.startsWith(member), `${note}: ${JSON.stringify(details)}`);
    }
  }
  for (const disabled of ["true", 1, {}]) {
    assertRefused(await service.admin("PATCH", path, { disabled }), 400, "invalid_request");
  }
  assert.deepEqual(await list(app), before);
});

Deno.test("an app has at most twenty webhooks, however many are made at the same time", async () => {
  const app = await appWithUser(service);
  const answers = await Promise.all(
    Array.from(
      { length: 23 },
      (_, place) => service.admin("POST", pathOf(app), { ...INPUT, mode: place % 2 === 0 ? "live" : "test" }),
    ),
  );
  const [refusals, made] = [answers.filter(({ status }) => status !== 200), await list(app)];
  assert.deepEqual([refusals.length, made.length], [3, 20]);
  for (const refusal of refusals) assertRefused(refusal, 400, "invalid_request");
  await dataOf(service.admin("DELETE", `${pathOf(app)}/${made[7].webhookId}`));
  await make(app);
  assertRefused(await service.admin("POST", pathOf(app), INPUT), 400, "invalid_request");
});

Deno.test("a rotation leaves the newest two secrets, the older one for a day", async () => {
  const app = await appWithUser(service);
  const { webhookId, secret } = await make(app);
  const rotate = async () =>
    (await dataOf(service.admin("POST", `${pathOf(app)}/${webhookId}/rotate`))).secret as string;
  const secretsOf = () =>
    service.serving().registry.apps.get(app.appId)?.webhooks.get(webhookId)?.secrets ?? [];
  const day = 24 * 3_600_000;
  const second = await rotate();
  const untilFirst = service.clock.now() + day;
  assert.deepEqual(secretsOf(), [
    { secret: second, validUntil: null },
    { secret, validUntil: untilFirst },
  ]);
  service.clock.advance(3_600_000);
  const third = await rotate();
  assert.equal(new Set([secret, second, third]).size, 3);
  await service.restart();
  assert.deepEqual(secretsOf(), [
    { secret: third, validUntil: null },
    { secret: second, validUntil: service.clock.now() + day },
  ]);
  assert.ok(!JSON.stringify(await list(app)).includes("whsec_"));
});

/** Writes a message as the sender leaves it. */
async function insertMessage(
  { appId }: TestApp,
  webhookId: string,
  members: Partial<MessageRecord> & { readonly id: string },
): Promise<void> {
  const realm = service.serving().registry.apps.get(appId)?.realms.live.realm as number;
  const data = { appId, mode: "live", from: "a", to: members.id, mergeId: "mrg_1" };
  const body = JSON.stringify({ type: "user.merged", timestamp: "2026-01-15T12:00:00.000Z", data });
  const { status = "pending", attempts = 0, nextAttemptAt = 0, lastStatus = null, lastError = null } =
    members;
  await service.store.database.query(
    `insert into webhook_messages (id, webhook_id, user_key, realm, type, body, created_at_ms, status, attempts,
       next_attempt_at_ms, last_status, last_error, ended_at_ms)
     values ($1, $2, null, $3::int, 'user.merged', $4, $5::bigint, $6, $7::int, $8::bigint, $9::int, $10,
       case when $6 = 'pending' then null else $5::bigint end)`,
    [
      members.id,
      webhookId,
      realm,
      body,
      service.clock.now(),
      status,
      attempts,
      nextAttemptAt,
      lastStatus,
      lastError,
    ],
  );
}

Deno.test("messages come newest first, by status and in pages, each with what it says", async () => {
  const app = await appWithUser(service);
  const { webhookId } = await make(app);
  // Nothing is sent from a disabled one.
  await dataOf(service.admin("PATCH", `${pathOf(app)}/${webhookId}`, { disabled: true }));
  const outcomes: readonly Partial<MessageRecord>[] = [
    { status: "delivered", attempts: 1, lastStatus: 204 },
    { status: "failed", attempts: 8, lastStatus: 500, lastError: "It answered 500" },
    { attempts: 2, nextAttemptAt: service.clock.now() + 60_000, lastError: "No answer within 15 s" },
    {},
  ];
  for (const [place, outcome] of outcomes.entries()) {
    await insertMessage(app, webhookId, { id: `whm_${place}`, ...outcome });
  }
  const page = async (query = "") =>
    (await dataOf(service.admin("GET", `${pathOf(app)}/${webhookId}/messages${query}`))).messages;
  const idsOf = async (query: string) =>
    (await page(query)).map(({ messageId }: { messageId: string }) => messageId);
  const [last, , failed, delivered] = await page();
  assert.deepEqual(last, {
    messageId: "whm_3",
    type: "user.merged",
    status: "pending",
    attempts: 0,
    nextAttemptAt: null,
    lastStatus: null,
    lastError: null,
    createdAt: new Date(service.clock.now()).toISOString(),
    data: { appId: app.appId, mode: "live", from: "a", to: "whm_3", mergeId: "mrg_1" },
  });
  assert.deepEqual([failed.lastStatus, failed.lastError, failed.nextAttemptAt], [
    500,
    "It answered 500",
    null,
  ]);
  assert.deepEqual([delivered.status, delivered.attempts, delivered.nextAttemptAt], ["delivered", 1, null]);
  assert.deepEqual(await idsOf("?status=pending"), ["whm_3", "whm_2"]);
  assert.deepEqual(await idsOf("?status=failed"), ["whm_1"]);
  assert.deepEqual(await idsOf("?limit=2&offset=1"), ["whm_2", "whm_1"]);
  assert.deepEqual(await idsOf("?offset=4"), []);
  assert.deepEqual((await list(app)).map(({ pending }: { pending: number }) => pending), [2]);
  for (
    const query of [
      "?status=sent",
      "?limit=0",
      "?limit=101",
      "?limit=x",
      "?offset=-1",
      "?offset=10001",
      "?status=",
    ]
  ) {
    const answer = await service.admin("GET", `${pathOf(app)}/${webhookId}/messages${query}`);
    assertRefused(answer, 400, "invalid_request", query);
  }
});

Deno.test("pending messages are counted to a bound", async () => {
  const app = await appWithUser(service);
  const { webhookId } = await make(app);
  await dataOf(service.admin("PATCH", `${pathOf(app)}/${webhookId}`, { disabled: true }));
  await service.store.database.query(
    `insert into webhook_messages (id, webhook_id, realm, type, body, created_at_ms)
     select $1 || '_' || n, $1, 1, 'ping', '{"data":{}}', 0 from generate_series(1, 10050) n`,
    [webhookId],
  );
  assert.equal((await list(app))[0].pending, 10_000);
});
