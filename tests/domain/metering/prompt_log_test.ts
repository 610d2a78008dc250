// Prompt logs and consent as decisions: which changes carry a text, whatever the order of opt-outs and settlements.

import assert from "node:assert/strict";
import { compileCatalog } from "../../../src/domain/catalog/catalog.ts";
import type { Commands } from "../../../src/domain/command.ts";
import type { Change } from "../../../src/domain/state/user.ts";
import { SCOPE_BITS } from "../../../src/domain/state/user.ts";
import { planOf, Scene, sizeOf } from "../scene.ts";

const PLANS = [planOf("plan_a", { g: 10 })];
const DAY_S = 86_400;

/** A subscribed user of an app that logs, or does not. */
function sceneThat(promptLogging: boolean): Scene {
  const scene = new Scene(PLANS);
  setLogging(scene, promptLogging);
  scene.subscribe("plan_a");
  return scene;
}

function setLogging(scene: Scene, promptLogging: boolean, promptLogRetentionDays = 30): void {
  const settings = { promptLogging, promptLogRetentionDays };
  scene.catalog = compileCatalog({ plans: PLANS, settings }, 2);
}

function hold(scene: Scene, prompt: string | null, ttlMs: number | null = null): string {
  const size = sizeOf({ count: 1 });
  const { hold } = scene.ask("reserve", { event: "x.make", metadata: null, size, ttlMs, prompt });
  assert.ok(hold !== null);
  return hold.reservationId;
}

function commit(scene: Scene, reservationId: string, response: string | null = null): Change[] {
  const input = { reservationId, costCents: null, extra: {}, actual: {}, response };
  return changesOf(scene, "commit", input);
}

function changesOf<Name extends "commit" | "release" | "track" | "consent">(
  scene: Scene,
  name: Name,
  input: Commands[Name]["input"],
): Change[] {
  return [...scene.do(name, input).changes];
}

function consentTo(scene: Scene, members: Partial<Commands["consent"]["input"]>): Change[] {
  return changesOf(scene, "consent", { add: 0, remove: 0, entry: null, ...members });
}

/** The texts that changes log: prompt and response of each log. */
function logged(changes: readonly Change[]): [string | null, string | null][] {
  return changes.flatMap((change) =>
    change.table === "event_logs" ? [[change.row.prompt, change.row.response]] : []
  );
}

/** Everything that changes write, as text. */
function written(changes: readonly Change[]): string {
  return JSON.stringify(changes, (_, value) => typeof value === "bigint" ? String(value) : value);
}

Deno.test("a hold keeps its prompt until it is settled, and the log has it afterwards", () => {
  const scene = sceneThat(true);
  const id = hold(scene, "the prompt");
  assert.equal(scene.state.reservations.get(id)?.prompt, "the prompt");
  const changes = commit(scene, id, "the response");
  assert.deepEqual(logged(changes), [["the prompt", "the response"]]);
  assert.equal(scene.state.reservations.get(id)?.prompt, null);
  const [event] = changes.filter(({ table }) => table === "events");
  const [log] = changes.filter(({ table }) => table === "event_logs");
  assert.ok(event?.table === "events" && log?.table === "event_logs");
  assert.deepEqual([log.row.eventId, log.row.at, log.row.realm, log.row.userKey], [
    event.row.id,
    event.row.createdAt,
    event.row.realm,
    event.row.userKey,
  ]);
});

Deno.test("no change carries a text while the app does not log, or the user has opted out", () => {
  for (const optedOut of [false, true]) {
    const scene = sceneThat(optedOut);
    if (optedOut) consentTo(scene, { add: SCOPE_BITS.prompt_logging });
    const text = "never written";
    commit(scene, hold(scene, text), text);
    const release = { reservationId: hold(scene, text), reason: "why", errorCode: text, response: text };
    const released = changesOf(scene, "release", release);
    assert.match(written(released), /"reason":"why"/);
    const size = sizeOf();
    const track = { event: "x.make", metadata: null, size, costCents: null, prompt: text, response: text };
    changesOf(scene, "track", track);
    changesOf(scene, "track", { ...track, event: "unmatched" });
    assert.doesNotMatch(written(scene.changes), /never written/);
  }
});

Deno.test("the rule that holds at settlement decides, not the one at reserve", () => {
  const scene = sceneThat(true);
  const [first, second, third] = [hold(scene, "one"), hold(scene, "two"), hold(scene, "three")];
  setLogging(scene, false);
  assert.deepEqual(logged(commit(scene, first, "r")), []);
  setLogging(scene, true);
  consentTo(scene, { add: SCOPE_BITS.prompt_logging });
  assert.deepEqual(logged(commit(scene, second, "r")), []);
  consentTo(scene, { remove: SCOPE_BITS.prompt_logging });
  assert.deepEqual(logged(commit(scene, third, "r")), [["three", "r"]]);
});

Deno.test("a prompt that was not kept at reserve does not come back with an opt-in", () => {
  const scene = sceneThat(false);
  const id = hold(scene, "gone");
  setLogging(scene, true);
  assert.deepEqual(logged(commit(scene, id, "response")), [[null, "response"]]);
});

Deno.test("opt-outs of other scopes leave logs on", () => {
  const scene = sceneThat(true);
  consentTo(scene, { add: SCOPE_BITS.analytics | SCOPE_BITS.ai_personalization });
  assert.deepEqual(logged(commit(scene, hold(scene, "p"))), [["p", null]]);
});

Deno.test("an event without texts has no log, and its error code is kept where texts would be", () => {
  const scene = sceneThat(true);
  assert.deepEqual(logged(commit(scene, hold(scene, null))), []);
  const release = { reservationId: hold(scene, null), reason: null, errorCode: "E1", response: null };
  const changes = changesOf(scene, "release", release);
  assert.deepEqual(logged(changes), []);
  assert.match(written(changes), /"errorCode":"E1"/);
});

Deno.test("an expired hold keeps its prompt for a late commit, at most as long as logs are kept", () => {
  for (const [late, prompt] of [[DAY_S - 1, "late"], [DAY_S, null]] as const) {
    const scene = sceneThat(true);
    setLogging(scene, true, 1);
    const id = hold(scene, "late", 10_000);
    scene.wait(10);
    scene.do("settle", {});
    assert.equal(scene.state.reservations.get(id)?.status, "expired");
    assert.equal(scene.state.reservations.get(id)?.prompt, "late");
    scene.wait(late);
    assert.deepEqual(logged(commit(scene, id, "r")), [[prompt, "r"]]);
    assert.equal(scene.state.reservations.get(id)?.prompt, null);
  }
});
