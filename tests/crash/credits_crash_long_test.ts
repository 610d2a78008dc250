// `kill -9` between a hold that took credits and its settlement, and in the middle of the settlements: every answer
// stays true, no credit is lost, spent twice or given back twice, and each balance is the sum of its ledger.

import assert from "node:assert/strict";
import type { Program } from "./program.ts";
import { ADMIN_TOKEN, Stage } from "./stage.ts";
import { answerOf, type Outcome, Wire, type WireCall } from "./wire.ts";

const USERS = ["a", "b", "c"];
const HOLDS = 24;
const QUOTA = 10;
const FUNDS: readonly [packId: string, quantity: number][] = [["cpk_first", 7], ["cpk_count", 20], [
  "cpk_count",
  30,
]];
const WIRES = 8;

const CATALOG = {
  plans: [{
    id: "plan_a",
    name: "A",
    rank: 1,
    period: { type: "lifetime", anchor: "subscription_start" },
    limits: [{ id: "lg_a", label: "Images", unit: "count", quota: QUOTA, matches: [{ event: "image.*" }] }],
  }],
  packs: [["cpk_first", 200], ["cpk_count", 100]].map(([id, priority]) => {
    const matches = [{ event: "image.*" }];
    return { id, name: id, kind: "per_type", priority, unit: "count", matches, items: [] };
  }),
};

/** A hold as its client knows it, and its planned settlement. */
interface Hold {
  readonly id: string;
  readonly userId: string;
  readonly count: number;
  readonly settlement: { readonly path: string; readonly body: object; readonly final: number } | null;
  /** The body of the first answer to the settlement. */
  answer: string | null;
}

/** A service under test whose process may be another one by now. */
class Client {
  readonly #stage: Stage;
  #origin = "";
  #program: Program | null = null;
  #key = ADMIN_TOKEN;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  /** Kills the process, if there is one, and starts another. */
  async restart(): Promise<void> {
    await this.#program?.kill();
    ({ program: this.#program, origin: this.#origin } = await this.#stage.startReady());
  }

  kill(): Promise<void> {
    return this.#program?.kill() ?? Promise.resolve();
  }

  async populate(): Promise<void> {
    const { workspaceId } = await this.must("POST", "/admin/v1/workspaces", { name: "Credits" });
    const { appId, keys } = await this.must("POST", "/admin/v1/apps", { name: "Credits", workspaceId });
    await this.must("PUT", `/admin/v1/apps/${appId}/catalog`, CATALOG);
    const isSecretLive = (row: { class: string; mode: string }) =>
      row.class === "secret" && row.mode === "live";
    this.#key = keys.find(isSecretLive).key;
    for (const userId of USERS) {
      await this.must("POST", "/v1/subscriptions", { userId, planId: "plan_a" });
      for (const [packId, quantity] of FUNDS) {
        await this.must("POST", "/v1/credits/grant", { userId, packId, quantity });
      }
    }
  }

  /** The data of a call that must succeed. */
  async must(method: string, path: string, body?: object) {
    const [outcome] = await this.all([{ method, path, body }]);
    const answer = answerOf(outcome as Outcome);
    assert.equal(answer.status, 200, `${path}: ${JSON.stringify(answer.body)}`);
    return answer.body.data;
  }

  /** Sends calls over several connections at once; reports each answer as it arrives. */
  async all(calls: readonly WireCall[], onAnswer: (place: number) => void = () => {}): Promise<Outcome[]> {
    const outcomes: Outcome[] = [];
    const queue = calls.entries();
    await Promise.all(Array.from({ length: Math.min(WIRES, calls.length) }, async () => {
      const wire = new Wire(this.#origin);
      for (const [place, call] of queue) {
        outcomes[place] = await wire.call({ ...call, path: `/api${call.path}`, bearer: this.#key });
        onAnswer(place);
      }
      wire.close();
    }));
    return outcomes;
  }

  /** Everything that a user shows of credits and the plan. */
  async picture(userId: string) {
    const { credits } = await this.must("GET", `/v1/credits?userId=${userId}&includeExpired=true`);
    const { entries, nextCursor } = await this.must("GET", `/v1/credits/history?userId=${userId}&limit=500`);
    assert.equal(nextCursor, null);
    const { counters } = await this.must("GET", `/v1/usage?userId=${userId}`);
    const { events } = await this.must("GET", `/v1/events?userId=${userId}&limit=100`);
    return { credits, entries, count: counters[0].count as number, events };
  }
}

/** Half is committed, in three ways, a quarter released, and the rest let be. */
function settlementOf(place: number, reservationId: string, count: number): Hold["settlement"] {
  switch (place % 8) {
    case 0:
    case 1:
      return { path: "/v1/commit", body: { reservationId }, final: count };
    case 2:
      return { path: "/v1/commit", body: { reservationId, extra: { count: 1 } }, final: count + 1 };
    case 3:
      return { path: "/v1/commit", body: { reservationId, actual: { count: 0.5 } }, final: 0.5 };
    case 4:
    case 5:
      return { path: "/v1/release", body: { reservationId }, final: 0 };
    default:
      return null;
  }
}

async function reserveAll(client: Client): Promise<Hold[]> {
  const wanted = Array.from({ length: HOLDS * USERS.length }, (_, place) => {
    return { userId: USERS[place % USERS.length] as string, event: "image.x", count: 1 + place % 4 };
  });
  const outcomes = await client.all(wanted.map((body) => ({ method: "POST", path: "/v1/reserve", body })));
  return wanted.map(({ userId, count }, place) => {
    const { body } = answerOf(outcomes[place] as Outcome);
    assert.equal(body.data.allowed, true);
    const id = body.data.reservationId;
    return { id, userId, count, settlement: settlementOf(Math.floor(place / 3), id, count), answer: null };
  });
}

/** Settles each hold under one key, so that the call can be sent again. */
async function settle(client: Client, holds: readonly Hold[], onAnswer: (place: number) => void) {
  const due = holds.filter(({ settlement }) => settlement !== null);
  const calls = due.map(({ id, settlement }) => {
    return { method: "POST", path: settlement!.path, body: settlement!.body, idempotencyKey: id };
  });
  const outcomes = await client.all(calls, onAnswer);
  let known = 0;
  due.forEach((hold, place) => {
    const outcome = outcomes[place] as Outcome;
    if (outcome.kind !== "answer" || outcome.answer.status === 503) return;
    const { status, body } = outcome.answer;
    assert.equal(status, 200, JSON.stringify(body));
    assert.equal(
      JSON.stringify(body),
      hold.answer ?? JSON.stringify(body),
      "a repeated call has the same answer",
    );
    hold.answer = JSON.stringify(body);
    known++;
  });
  return { known, all: due.length };
}

interface Row {
  readonly id: string;
  readonly balanceId: string;
  readonly delta: number;
  readonly reason: string;
  readonly eventId: string | null;
  readonly reservationId: string | null;
}

const sumOf = (numbers: readonly number[]) => numbers.reduce((sum, each) => sum + each, 0);

/** Compares a user with the answers to the clients; all amounts are halves, so that sums are exact. */
async function audit(client: Client, userId: string, holds: readonly Hold[], isSettled: boolean) {
  const { credits, entries, count, events } = await client.picture(userId);
  const rows: readonly Row[] = entries;
  assert.equal(credits.length, FUNDS.length);
  assert.equal(new Set(rows.map(({ id }) => id)).size, rows.length);
  for (const { balanceId, remaining } of credits) {
    const deltas = rows.filter((row) => row.balanceId === balanceId).map(({ delta }) => delta);
    assert.equal(sumOf(deltas), remaining, balanceId);
  }
  let used = 0;
  for (const { id, count, settlement, answer } of holds) {
    const own = rows.filter(({ reservationId }) => reservationId === id);
    const isOpen = settlement === null || !isSettled;
    const final = isOpen ? count : settlement.final;
    used += final;
    const paid = -sumOf(own.map(({ delta }) => delta));
    assert.ok(paid >= 0 && paid <= final, `credits pay ${paid} of ${final}`);
    const [held, settling] = [true, false].map((isValid) =>
      own.filter(({ reason }) => (reason === "reservation_held") === isValid)
    ) as [Row[], Row[]];
    if (isOpen) assert.equal(settling.length, 0, "an open hold has no other rows");
    else if (settlement.path === "/v1/release") {
      assert.deepEqual(settling.map(({ reason }) => reason), held.map(() => "reservation_released"));
    } else {
      const { eventId } = JSON.parse(answer as string).data;
      assert.ok(settling.length >= held.length, "one row for each held balance");
      for (const row of settling) {
        assert.deepEqual([row.reason, row.eventId], ["event_committed", eventId]);
      }
      assert.equal(events.filter((event: { id: string }) => event.id === eventId).length, 1);
    }
  }
  const spent = sumOf(credits.map(({ initial, remaining }: Record<string, number>) => initial! - remaining!));
  assert.equal(spent + count, used, "what was held and committed is what plan and credits gave");
  assert.ok(count <= QUOTA);
  if (isSettled) assert.equal(events.length, holds.filter(({ settlement }) => settlement !== null).length);
}

Deno.test("kill -9 between hold and settlement, and amid settlements, keeps every credit in its place", async () => {
  await using stage = await Stage.open();
  const client = new Client(stage);
  await client.restart();
  await client.populate();
  const holds = await reserveAll(client);
  await client.restart();
  const holdsOf = (userId: string) => holds.filter((hold) => hold.userId === userId);
  for (const userId of USERS) await audit(client, userId, holdsOf(userId), false);

  let answered = 0;
  let killed: Promise<void> | null = null;
  const first = await settle(client, holds, () => {
    if (++answered === 20) killed = client.kill();
  });
  await killed;
  assert.ok(first.known >= 20 && first.known < first.all, `${first.known} of ${first.all} answered`);
  await client.restart();
  const second = await settle(client, holds, () => {});
  assert.equal(second.known, second.all);
  for (const userId of USERS) await audit(client, userId, holdsOf(userId), true);

  const pictures = await Promise.all(USERS.map((userId) => client.picture(userId)));
  await client.restart();
  assert.deepEqual(await Promise.all(USERS.map((userId) => client.picture(userId))), pictures);
  const open = holds.filter(({ settlement }) => settlement === null);
  const rest = open.map(({ id }) => ({ method: "POST", path: "/v1/release", body: { reservationId: id } }));
  for (const outcome of await client.all(rest)) assert.equal(answerOf(outcome).status, 200);
});
