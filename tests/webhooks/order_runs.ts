// The property of deliveries: whatever fails, of endpoints and of the service, every recorded message is accepted by its
// endpoint in the end, one user's in the order of the turns, always with the same bytes, and none that was not recorded.

import assert from "node:assert/strict";
import { Unavailable } from "../../actors/port.ts";
import { SENDER_LIMITS } from "../../src/process/webhook_limits.ts";
import type { Attempt, AttemptResult } from "../../src/webhooks/transport.ts";
import { Random } from "../model/random.ts";
import { limitsOfFile } from "../support/limits.ts";
import {
  BROKEN,
  type MessageRow,
  OK,
  ScriptedTransport,
  type SendingService,
  startSending,
} from "./support.ts";

/** Users come anew now and then, since those who are merged stay so. */
const ERA_STEPS = 15;
const ERA_USERS = 5;
const HOUR = 3_600_000;
/** Rounds of an hour each in which everything has to arrive; the longest delay is twelve. */
const ROUNDS_MAX = 1_000;

/** Tests a run of some steps. */
export function testOrder(seed: number, steps: number): void {
  // Nothing in a run depends on how long the sender pauses.
  limitsOfFile(SENDER_LIMITS, { pauseMs: 1, flushEveryMs: 1 });
  Deno.test(`every message arrives, each user's in order, whatever fails: seed ${seed}`, async () => {
    const run = new Run(new Random(seed));
    await run.make(steps);
    await run.settle();
    await run.check();
    await run.end();
  });
}

class Run {
  readonly #random: Random;
  readonly #transport = new ScriptedTransport();
  #sending!: SendingService;
  /** Messages in the order in which their endpoints first accepted them. */
  readonly #accepted = new Set<string>();
  #isCalm = false;

  constructor(random: Random) {
    this.#random = random;
    this.#transport.answer = (attempt) => this.#answer(attempt);
  }

  async make(steps: number): Promise<void> {
    this.#sending = await startSending(this.#transport);
    await this.#sending.put("whk_1", { url: "https://one.test/" });
    await this.#sending.put("whk_2", { url: "https://two.test/", events: ["credits.*", "user.merged"] });
    for (let step = 0; step < steps; step++) await this.#step(step);
  }

  async #step(step: number): Promise<void> {
    const { app, clock, crash, serving, put } = this.#sending;
    const era = Math.floor(step / ERA_STEPS);
    const [one, other] = [1, 2].map(() => `u${era}-${this.#random.whole(1, ERA_USERS)}`);
    const kind = this.#random.weighted({ grant: 16, merge: 3, pass: 2, crash: 1, toggle: 1 });
    const grant = { userId: one, packId: "pack", quantity: 1, externalRef: `ref_${step}` };
    if (kind === "grant") await app.call("POST", "/credits/grant", grant);
    else if (kind === "merge") await app.call("POST", "/customers/alias", { from: one, to: other });
    else if (kind === "crash") await crash();
    else if (kind === "toggle") {
      await put("whk_2", { disabled: true });
      await put("whk_2", { disabled: false });
    } else {
      clock.advance(this.#random.whole(1, 300) * 1000);
      serving().sender.wake();
    }
  }

  async #answer({ messageId }: Attempt): Promise<AttemptResult> {
    const how = this.#isCalm
      ? "ok"
      : this.#random.weighted({ ok: 12, refused: 4, silent: 2, lost: 2, unmade: 2 });
    for (let turns = this.#random.whole(0, 5); turns > 0; turns--) {
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
    if (how === "refused") return BROKEN;
    if (how === "silent") return { status: null, fault: "no answer within 15 s" };
    if (how === "unmade") throw new Unavailable("A test broke the thread before the attempt");
    this.#accepted.add(messageId);
    if (how === "lost") throw new Unavailable("A test broke the thread after the attempt");
    return OK;
  }

  /** Lets everything succeed until nothing is pending. */
  async settle(): Promise<void> {
    this.#isCalm = true;
    for (let rounds = 0;; rounds++) {
      const pending = (await this.#sending.messages()).filter(({ status }) => status === "pending");
      if (pending.length === 0) return;
      assert.ok(
        rounds < ROUNDS_MAX,
        `${pending.length} messages stay pending, ${textOf(pending[0] as MessageRow)}`,
      );
      this.#sending.clock.advance(HOUR);
      this.#sending.serving().sender.wake();
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }

  async check(): Promise<void> {
    const rows = await this.#sending.messages();
    assert.ok(rows.length > 20, `only ${rows.length} messages`);
    const byId = new Map(rows.map((row) => [row.id, row]));
    for (const { messageId, body } of this.#transport.attempts) assert.equal(body, byId.get(messageId)?.body);
    const place = new Map([...this.#accepted].map((id, index) => [id, index]));
    for (const { id, status } of rows) {
      if (status === "delivered") assert.ok(place.has(id), `${id} never arrived`);
    }
    // Only what arrived has a place; a message that was given up has none.
    const arrived = rows.filter(({ id }) => place.has(id));
    const keys = await this.#keys();
    for (const later of arrived) {
      const from = later.type === "user.merged" ? keys.get(JSON.parse(later.body).data.from) : undefined;
      for (const earlier of arrived) {
        if (earlier.webhook_id !== later.webhook_id || earlier.id >= later.id) continue;
        if (earlier.user_key !== later.user_key && earlier.user_key !== from) continue;
        const [first, second] = [earlier, later].map(({ id }) => place.get(id) as number) as [number, number];
        assert.ok(first < second, `${textOf(later)} arrived before ${textOf(earlier)}`);
      }
    }
  }

  async #keys(): Promise<Map<string, number>> {
    const rows = await this.#sending.store.database.query<{ id: string; key: number }>(
      "select id, key from users",
    );
    return new Map(rows.map(({ id, key }) => [id, key]));
  }

  end(): Promise<void> {
    return this.#sending.close();
  }
}

function textOf({ id, type, user_key: key }: MessageRow): string {
  return `${type} ${id} of user ${key}`;
}
