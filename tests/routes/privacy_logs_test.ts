// Prompt logs: when a text is kept, where it stands, how it is cut and shown, and when it goes.

import assert from "node:assert/strict";
import { applyCatalog, type Customer } from "./credits_support.ts";
import { assertRefused, dataOf, serviceOfFile } from "./support.ts";
import { HOLD_LIMITS } from "../../src/process/limits.ts";
import { changedLimits } from "../support/limits.ts";
import { askOf, catalogWith, feedOf, newLogged, optOut, rowsOf, sweep, tracesOf } from "./privacy_support.ts";

const service = serviceOfFile();
const DAY_S = 86_400;

/** The prompt on the row of a reservation. */
async function promptOn(reservationId: string): Promise<string | null | undefined> {
  const rows = await rowsOf<{ prompt: string | null }>(service, "select * from reservations where id = $1", [
    reservationId,
  ]);
  return rows[0]?.prompt;
}

/** What the detail of an event shows of its log. */
async function logOf(customer: Customer, eventId: string) {
  const { hasLog, promptPreview, prompt, response, errorCode } = await customer.event(eventId);
  return { hasLog, promptPreview, prompt, response, errorCode };
}

const NO_LOG = { hasLog: false, promptPreview: null, prompt: null, response: null, errorCode: null };

/** The newest event of an app, as the list has it. */
async function newest(customer: Customer) {
  return (await feedOf(customer))[0];
}

async function setLogging(customer: Customer, promptLogging: boolean): Promise<void> {
  await applyCatalog(service, customer.app, catalogWith({ promptLogging }));
}

Deno.test("a prompt waits on the held reservation and is only in the log after commit", async () => {
  const u = await newLogged(service);
  const id = await u.hold("image.x", { prompt: "draw a lighthouse" });
  assert.equal(await promptOn(id), "draw a lighthouse");
  const { eventId } = await u.commit(id, { response: "here it is" });
  assert.equal(await promptOn(id), null);
  assert.deepEqual(await tracesOf(service, "draw a lighthouse"), { event_logs: 1 });
  assert.deepEqual(await logOf(u, eventId), {
    hasLog: true,
    promptPreview: "draw a lighthouse",
    prompt: "draw a lighthouse",
    response: "here it is",
    errorCode: null,
  });
  const { hasLog, promptPreview } = await newest(u);
  assert.deepEqual({ hasLog, promptPreview }, { hasLog: true, promptPreview: "draw a lighthouse" });
});

Deno.test("a prompt within a nested options object is kept too, and a pending one survives a restart", async () => {
  const u = await newLogged(service);
  const id = await u.hold("image.x", { options: { prompt: "nested prompt" } });
  await service.restart();
  assert.equal(await promptOn(id), "nested prompt");
  const { eventId } = await u.commit(id, { options: { response: "nested response" } });
  await service.restart();
  assert.equal(await promptOn(id), null);
  const { prompt, response } = await logOf(u, eventId);
  assert.deepEqual([prompt, response], ["nested prompt", "nested response"]);
});

Deno.test("while the app does not log, no text is written anywhere, not even on a pending reservation", async () => {
  const u = await newLogged(service, { settings: { promptLogging: false } });
  const text = "unlogged-text-41";
  const held = await u.hold("image.x", { prompt: text });
  assert.deepEqual(await tracesOf(service, text), {});
  assert.equal(await promptOn(held), null);
  await u.commit(held, { response: text });
  const released = await u.hold("image.x", { prompt: text });
  await u.post("/release", { reservationId: released, response: text, errorCode: "E_OFF", reason: "why" });
  await u.post("/track", { event: "image.x", prompt: text, response: text });
  assert.deepEqual(await tracesOf(service, text), {}, "before the drain");
  await rowsOf(service, "select 1");
  assert.deepEqual(await tracesOf(service, text), {}, "after the drain");
  await setLogging(u, true);
  for (const { id } of await feedOf(u)) assert.deepEqual(await logOf(u, id), NO_LOG);
});

Deno.test("of a user who opted out of prompt logging no text is written, and other users are logged", async () => {
  const u = await newLogged(service);
  await optOut(u, "u", "prompt_logging");
  const text = "opted-out-text-42";
  const held = await u.hold("image.x", { prompt: text });
  assert.equal(await promptOn(held), null);
  const { eventId } = await u.commit(held, { response: text });
  const released = await u.hold("image.x", { prompt: text });
  await u.post("/release", { reservationId: released, response: text, errorCode: "E_OUT", reason: "why" });
  const after = await newest(u);
  assert.deepEqual(await logOf(u, after.id), NO_LOG);
  assert.equal((await u.event(after.id)).reason, "why");
  await u.post("/track", { event: "image.x", prompt: text, response: text });
  assert.deepEqual(await logOf(u, eventId), NO_LOG);
  await rowsOf(service, "select 1");
  assert.deepEqual(await tracesOf(service, text), {});
  const { eventId: others } = await u.post("/track", { userId: "other", event: "image.x", prompt: "mine" });
  assert.equal((await logOf(u, others)).prompt, "mine");
});

Deno.test("a release is logged with prompt, partial response and errorCode; with neither text it has no log", async () => {
  const u = await newLogged(service);
  const full = await u.hold("image.x", { prompt: "a prompt" });
  await u.post("/release", { reservationId: full, response: "partial", errorCode: "E_TIMEOUT" });
  const row = await newest(u);
  assert.deepEqual([row.matchStatus, row.hasLog, row.promptPreview], ["released", true, "a prompt"]);
  assert.deepEqual(await logOf(u, row.id), {
    hasLog: true,
    promptPreview: "a prompt",
    prompt: "a prompt",
    response: "partial",
    errorCode: "E_TIMEOUT",
  });
  assert.equal(await promptOn(full), null);
  const bare = await u.hold("image.x");
  await u.post("/release", { reservationId: bare, errorCode: "E_BARE", reason: "none" });
  const { id, hasLog } = await newest(u);
  assert.equal(hasLog, false);
  assert.deepEqual(await logOf(u, id), { ...NO_LOG, errorCode: "E_BARE" });
  assert.deepEqual(await rowsOf(service, "select 1 from event_logs where event_id = $1", [id]), []);
});

Deno.test("track logs whatever the match status", async () => {
  const u = await newLogged(service);
  const track = (members: object) => u.ask("POST", "/track", { prompt: "p", response: "r", ...members });
  await u.fund("cpk_wallet", 5, { userId: "c" });
  const blocked = await track({ event: "image.premium", count: 4 });
  const { details } = assertRefused(blocked, 429, "limit_reached");
  const ids = {
    matched: (await track({ event: "image.x" })).body.data.eventId,
    matched_credits_only: (await track({ userId: "c", event: "other" })).body.data.eventId,
    unmatched: (await track({ event: "other" })).body.data.eventId,
    blocked: details.eventId,
    no_subscription: (await track({ userId: "nobody", event: "image.x" })).body.data.eventId,
  };
  for (const [status, id] of Object.entries(ids)) {
    const { matchStatus, hasLog, prompt, response, promptPreview } = await u.event(id);
    assert.deepEqual([matchStatus, hasLog, prompt, response, promptPreview], [status, true, "p", "r", "p"]);
  }
});

Deno.test("a refused reserve leaves no text anywhere", async () => {
  const u = await newLogged(service);
  const data = await u.post("/reserve", { event: "image.premium", count: 4, prompt: "refused-44" });
  assert.equal(data.allowed, false);
  await rowsOf(service, "select 1");
  assert.deepEqual(await tracesOf(service, "refused-44"), {});
});

Deno.test("switching logging off hides every log at once, and on again shows them again", async () => {
  const u = await newLogged(service);
  const held = await u.hold("image.x", { prompt: "held while on" });
  const { eventId } = await u.post("/track", { event: "image.x", prompt: "p", response: "r" });
  await setLogging(u, false);
  assert.deepEqual(await logOf(u, eventId), NO_LOG);
  const page = await u.get("/events", {});
  assert.equal(page.logPromptsEnabled, false);
  assert.deepEqual([page.events[0].hasLog, page.events[0].promptPreview], [false, null]);
  const { eventId: off } = await u.commit(held, { response: "settled while off" });
  await setLogging(u, true);
  assert.equal((await u.get("/events", {})).logPromptsEnabled, true);
  assert.deepEqual([(await logOf(u, eventId)).prompt, (await logOf(u, eventId)).response], ["p", "r"]);
  assert.deepEqual(await logOf(u, off), NO_LOG);
});

Deno.test("past the retention time reads hide a log, and the sweep removes it and nothing else", async () => {
  const u = await newLogged(service, { mode: "test", settings: { promptLogRetentionDays: 2 } });
  const held = await u.hold("image.x");
  await u.post("/release", { reservationId: held, errorCode: "E_OLD", response: "old-45" });
  const old = (await newest(u)).id;
  await u.pass(DAY_S);
  const { eventId: young } = await u.post("/track", { event: "image.x", prompt: "young-45" });
  await u.pass(DAY_S - 0.001);
  assert.deepEqual([(await logOf(u, old)).response, (await logOf(u, old)).errorCode], ["old-45", "E_OLD"]);
  await u.pass(0.001);
  const { hasLog, prompt, response, promptPreview } = await logOf(u, old);
  assert.deepEqual([hasLog, prompt, response, promptPreview], [false, null, null, null]);
  assert.equal((await feedOf(u)).find(({ id }) => id === old).hasLog, false);
  assert.deepEqual(await tracesOf(service, "old-45"), { event_logs: 1 });
  assert.equal((await sweep(service)).promptLogs, 1);
  assert.deepEqual(await tracesOf(service, "old-45"), {});
  assert.equal((await sweep(service)).promptLogs, 0);
  assert.equal((await logOf(u, young)).prompt, "young-45");
  assert.equal((await feedOf(u)).length, 2);
});

Deno.test("a shorter retention holds at once, also for logs that were written before", async () => {
  const u = await newLogged(service, { mode: "test" });
  const { eventId } = await u.post("/track", { event: "image.x", prompt: "short" });
  await u.pass(5 * DAY_S);
  assert.equal((await logOf(u, eventId)).prompt, "short");
  await applyCatalog(service, u.app, catalogWith({ promptLogRetentionDays: 5 }));
  assert.deepEqual(await logOf(u, eventId), NO_LOG);
});

Deno.test("the prompt of an expired hold waits for a late commit", async () => {
  const u = await newLogged(service, { mode: "test" });
  const id = await u.hold("image.x", { prompt: "late", ttlSeconds: 10 });
  await u.pass(29 * DAY_S);
  await sweep(service);
  assert.equal(await promptOn(id), "late");
  assert.deepEqual(await feedOf(u), []);
  const { eventId, recharged } = await u.commit(id, { response: "done" });
  assert.equal(recharged, true);
  const { prompt, response } = await logOf(u, eventId);
  assert.deepEqual([prompt, response], ["late", "done"]);
  assert.equal(await promptOn(id), null);
});

Deno.test("a prompt waits no longer than logs are kept, swept or not", async () => {
  const u = await newLogged(service, { mode: "test", settings: { promptLogRetentionDays: 1 } });
  const ids = [];
  for (const prompt of ["kept-46", "unswept-46", "swept-46"]) {
    ids.push(await u.hold("image.x", { prompt, ttlSeconds: 10 }));
  }
  const [kept, unswept, swept] = ids as [string, string, string];
  await u.pass(10 + DAY_S - 0.001);
  const { eventId } = await u.commit(kept);
  assert.equal((await logOf(u, eventId)).prompt, "kept-46");
  await u.pass(0.001);
  const { eventId: late } = await u.commit(unswept, { response: "late" });
  assert.deepEqual([(await logOf(u, late)).prompt, (await logOf(u, late)).response], [null, "late"]);
  assert.equal((await sweep(service)).promptLogs, 1);
  assert.deepEqual(await tracesOf(service, "swept-46"), {});
  assert.equal(await promptOn(swept), null);
  assert.equal((await logOf(u, (await u.commit(swept)).eventId)).prompt, null);
});

Deno.test("logs and pending prompts follow a metering alias", async () => {
  const u = await newLogged(service);
  const { eventId } = await u.post("/track", { userId: "old", event: "image.x", prompt: "of old" });
  await u.post("/subscriptions", { userId: "old", planId: "plan_pro" });
  const id = await u.hold("image.x", { userId: "old", prompt: "held by old" });
  await u.post("/customers/alias", { from: "old", to: "u" });
  const committed = await u.commit(id);
  for (const [event, prompt] of [[eventId, "of old"], [committed.eventId, "held by old"]]) {
    const detail = await u.event(event);
    assert.deepEqual([detail.endUserId, detail.prompt], ["u", prompt]);
  }
  assert.equal((await feedOf(u, "&userId=u")).filter(({ hasLog }) => hasLog).length, 2);
});

Deno.test("a prompt that is no text is refused without being quoted", async () => {
  const u = await newLogged(service);
  const answer = await askOf(u, "/reserve", { userId: "u", event: "image.x", prompt: ["quoted-47"] });
  assertRefused(answer, 400, "invalid_request");
  assert.doesNotMatch(JSON.stringify(answer.body), /quoted-47/);
});

const BYTES_MAX = 32_768;
const SUFFIX = "…[truncated]";
const encoder = new TextEncoder();

/** Texts around the bound with what is stored of them; more of them are in tests/domain/values/texts_test.ts. */
const TEXTS: readonly (readonly [name: string, text: string, stored: string])[] = [
  ["at the bound", "😀".repeat(8192), "😀".repeat(8192)],
  ["across the bound by one", "a" + "😀".repeat(8192), "a" + "😀".repeat(8191) + SUFFIX],
];

/** The log of an event: prompt and response. */
async function textsOf(customer: Customer, eventId: string): Promise<[string | null, string | null]> {
  const { prompt, response } = await customer.event(eventId);
  return [prompt, response];
}

for (const [name, text, stored] of TEXTS) {
  Deno.test(`a text is cut between characters and marked: ${name}`, async () => {
    const u = await newLogged(service);
    const kept = stored.endsWith(SUFFIX) && stored !== text ? stored.slice(0, -SUFFIX.length) : stored;
    assert.ok(encoder.encode(kept).length <= BYTES_MAX);
    const tracked = await u.post("/track", { event: "image.x", prompt: text, response: text });
    assert.deepEqual(await textsOf(u, tracked.eventId), [stored, stored]);
    const held = await u.hold("image.x", { prompt: text });
    const committed = await u.commit(held, { response: text });
    assert.deepEqual(await textsOf(u, committed.eventId), [stored, stored]);
    const open = await u.hold("image.x", { prompt: text });
    await u.post("/release", { reservationId: open, response: text });
    const [released] = await feedOf(u);
    assert.deepEqual(await textsOf(u, released.id), [stored, stored]);
  });
}

Deno.test("a preview is the first 200 characters of the stored text, whatever their size", async () => {
  const u = await newLogged(service);
  const cases = [
    ["", ""],
    ["a".repeat(200), "a".repeat(200)],
    ["a".repeat(201), "a".repeat(200)],
    ["😀".repeat(200), "😀".repeat(200)],
    ["😀".repeat(201), "😀".repeat(200)],
    ["a" + "😀".repeat(200), "a" + "😀".repeat(199)],
    ["\u{feff}  \n" + "é".repeat(300), "\u{feff}  \n" + "é".repeat(196)],
    ["😀".repeat(10_000), "😀".repeat(200)],
  ];
  for (const [prompt, preview] of cases) {
    const { eventId } = await u.post("/track", { event: "chat.x", inputTokens: 1, prompt });
    const detail = await u.event(eventId);
    const [listed] = await feedOf(u);
    assert.deepEqual([listed.id, listed.hasLog, listed.promptPreview], [eventId, true, preview]);
    assert.deepEqual([detail.hasLog, detail.promptPreview], [true, preview]);
    assert.ok(detail.prompt.startsWith(preview));
  }
});

Deno.test("reason and errorCode of a release are cut by characters", async () => {
  const u = await newLogged(service);
  const reservationId = await u.hold("image.x");
  await u.post("/release", { reservationId, reason: "😀".repeat(501), errorCode: "€".repeat(101) });
  const [{ id }] = await feedOf(u) as [{ id: string }];
  const { reason, errorCode } = await u.event(id);
  assert.deepEqual([reason, errorCode], ["😀".repeat(500), "€".repeat(100)]);
});

Deno.test("texts without room in memory are read at the settlement, before and after a drain, a restart and a merge", async () => {
  using _limits = changedLimits(HOLD_LIMITS, { textBytesOfUserMax: 0, loadedBytesMax: 0 });
  const u = await newLogged(service);
  const before = service.service.counts.runtime.holdTextsLoaded;
  const metadata = { deep: "in the tables" };
  const hold = (more = {}) => u.hold("image.x", { prompt: "draw", metadata, ...more });
  const shows = async (id: string, note: string) => {
    const { eventId } = await u.commit(id, { response: "done" });
    const event = await u.event(eventId);
    assert.deepEqual([event.prompt, event.response, event.metadata], ["draw", "done", metadata], note);
  };
  await shows(await hold(), "at once");
  const drained = await hold();
  await service.serving().term.flush();
  await shows(drained, "drained");
  const restarted = await hold();
  await service.restart();
  await shows(restarted, "replayed");
  const lapsed = await hold({ ttlSeconds: 10 });
  service.clock.advance(11_000);
  await shows(lapsed, "lapsed, in the turn of its commit");
  const late = await hold({ ttlSeconds: 10 });
  service.clock.advance(11_000);
  await u.counts();
  await shows(late, "lapsed before");
  const released = await hold();
  await u.release(released);
  assert.deepEqual((await u.event((await newest(u)).id)).metadata, metadata);
  const merged = await hold();
  await dataOf(u.app.call("POST", "/customers/alias", { from: u.userId, to: "canonical" }, { key: u.key }));
  await shows(merged, "merged");
  assert.equal(service.service.counts.runtime.holdTextsLoaded - before, 7);
  assert.equal(service.serving().term.directory.textRoom.bytes, 0);
});
