// The clients: parallel loops that reserve, commit, release, track and read for a few users, one of them hot, and
// write down every answer. Calls with an idempotency key are sent again until they are answered, also after a
// restart, and some are sent twice at once; calls without a key are left as unknown when their connection broke.

import { type Call, type Hold, Record, type Settlement } from "tests/crash/record.ts";
import { pause } from "tests/crash/program.ts";
import { TIGHT_USER, WIDE_USERS } from "tests/crash/stage.ts";
import { type Outcome, Wire, type WireCall, type WireResponse } from "tests/crash/wire.ts";

const LOOPS = 20;
const PAUSE_MAX_MS = 12;
const TTL_SECONDS = 86_400;

/** A keyed call that waits for an answer. */
interface Pending {
  readonly request: WireCall;
  readonly take: (outcome: Outcome) => boolean;
}

/** Clients of one service, whichever process serves it. */
export class Load {
  readonly record = new Record();
  /** Where the clients send; changed when another process serves. */
  origins: string[];
  readonly #key: string;
  readonly #free: Hold[] = [];
  readonly #pending: Pending[] = [];
  #running: Promise<void>[] = [];
  #isOn = false;
  /** When the first 503 came since the start: a call that is sent later may find the port closing. */
  #refusedAt = Infinity;
  #last = 0;

  constructor(origin: string, secretKey: string) {
    this.origins = [origin];
    this.#key = secretKey;
  }

  /** Starts the loops. */
  start(): void {
    this.#isOn = true;
    this.#refusedAt = Infinity;
    this.#running = Array.from({ length: LOOPS }, () => this.#loop());
  }

  /** Ends the loops; each ends with its call. */
  async stop(): Promise<void> {
    this.#isOn = false;
    await Promise.all(this.#running);
  }

  /** Sends every keyed call again that has no answer yet, until it has one. */
  async finish(origin: string, limitMs = 60_000): Promise<void> {
    const deadline = performance.now() + limitMs;
    const wire = new Wire(origin);
    try {
      for (let next = this.#pending.shift(); next !== undefined; next = this.#pending.shift()) {
        if (next.take(await wire.call(next.request))) continue;
        if (performance.now() > deadline) throw new Error(`No answer to ${JSON.stringify(next.request)}`);
        this.#pending.push(next);
        await pause(20);
      }
    } finally {
      wire.close();
    }
  }

  /** Holds that no client is busy with and whose state is known, newest first. */
  knownHolds(): Hold[] {
    return this.#free.filter(({ settlements }) => settlements.every(({ fate }) => fate === "refused"))
      .reverse();
  }

  /** Commits a hold, as an auditor does; a fault when the service does not know it. */
  async commit(origin: string, hold: Hold): Promise<void> {
    const wire = new Wire(origin);
    this.#free.splice(this.#free.indexOf(hold), 1);
    await this.#settle(wire, hold, "commit");
    wire.close();
  }

  async #loop(): Promise<void> {
    let wire: Wire | null = null;
    let at = "";
    while (this.#isOn) {
      const origin = this.origins[Math.floor(Math.random() * this.origins.length)] as string;
      if (wire === null || at !== origin) {
        wire?.close();
        wire = new Wire(origin);
        at = origin;
      }
      await this.#step(wire);
      await pause(Math.random() * PAUSE_MAX_MS);
    }
    wire?.close();
  }

  async #step(wire: Wire): Promise<void> {
    const again = this.#pending.shift();
    if (again !== undefined) {
      if (!again.take(await wire.call(again.request))) {
        this.#pending.push(again);
        await pause(50);
      }
      return;
    }
    const choice = Math.random();
    if (choice < 0.4) return await this.#open(wire, "reserve");
    if (choice < 0.6) return await this.#open(wire, "track");
    if (choice < 0.66) return await this.#read(wire);
    const hold = this.#takeHold();
    if (hold === null) return await this.#open(wire, "reserve");
    if (choice > 0.97) return await this.#race(wire, hold);
    await this.#settle(wire, hold, choice < 0.85 ? "commit" : "release");
    const isOpen = hold.settlements.every(({ fate }) => fate === "refused" || fate === "unknown");
    if (isOpen) this.#free.push(hold);
  }

  #takeHold(): Hold | null {
    if (this.#free.length === 0) return null;
    const [hold] = this.#free.splice(Math.floor(Math.random() * this.#free.length), 1);
    return hold ?? null;
  }

  /** A reserve or a track. */
  async #open(wire: Wire, kind: "reserve" | "track"): Promise<void> {
    const tag = `c${++this.#last}`;
    const idempotencyKey = Math.random() < 0.5 ? `key-${tag}` : null;
    const call: Call = {
      tag,
      kind,
      userId: pickUser(),
      count: 1 + Math.floor(Math.random() * 3),
      idempotencyKey,
      fate: "open",
      id: null,
      isBlocked: false,
    };
    this.record.calls.set(tag, call);
    const { userId, count } = call;
    const body = { userId, event: `image.${kind}`, count, metadata: { call: tag } };
    const request = this.#request(`/${kind}`, {
      ...body,
      ...(kind === "reserve" ? { ttlSeconds: TTL_SECONDS } : {}),
    }, idempotencyKey);
    const take = (outcome: Outcome) => this.#takeOpen(call, outcome);
    await this.#send(wire, { request, take });
  }

  /** Sends a call; one with a key twice at once now and then, and again later when it got no answer. */
  async #send(wire: Wire, pending: Pending): Promise<void> {
    const hasKey = pending.request.idempotencyKey != null;
    if (hasKey && Math.random() < 0.2) await this.#sendTwins(wire, pending);
    else if (!pending.take(await wire.call(pending.request)) && hasKey) this.#pending.push(pending);
  }

  async #sendTwins(wire: Wire, pending: Pending): Promise<void> {
    const second = new Wire(this.origins.at(-1) as string);
    const [a, b] = await Promise.all([wire.call(pending.request), second.call(pending.request)]);
    second.close();
    if (isDone(a) && isDone(b) && JSON.stringify(a.answer.body) !== JSON.stringify(b.answer.body)) {
      this.record.fault(`Twins differ: ${JSON.stringify([pending.request, a.answer.body, b.answer.body])}`);
    }
    const done = [pending.take(a), pending.take(b)];
    if (!done.includes(true)) this.#pending.push(pending);
  }

  /** Takes what became of a reserve or track; whether it is an answer. */
  #takeOpen(call: Call, outcome: Outcome): boolean {
    const answer = this.#answerOf(outcome);
    if (answer === null) {
      if (call.fate === "open" || call.fate === "refused") {
        call.fate = outcome.kind === "unsent" ? "refused" : "unknown";
      }
      return false;
    }
    const { status, body } = answer;
    const isBlocked = call.kind === "track" && status === 429 && body.error.code === "limit_reached";
    if (status !== 200 && !isBlocked) {
      this.record.fault(`${call.kind} ${call.tag}: ${status} ${JSON.stringify(body)}`);
      return true;
    }
    const id = isBlocked
      ? body.error.details.eventId
      : (call.kind === "reserve" ? body.data.reservationId : body.data.eventId) ?? null;
    if (call.id !== null && call.id !== id) {
      this.record.fault(`${call.tag} was done twice: ${call.id}, ${id}`);
    }
    const isNew = call.id === null && id !== null;
    call.id = id;
    call.isBlocked = isBlocked;
    call.fate = id === null ? "refused" : "acked";
    if (isNew && call.kind === "reserve") this.#addHold(call, id);
    if (isNew && call.kind === "track") this.record.eventIds.push(id);
    return true;
  }

  #addHold(call: Call, id: string): void {
    const hold: Hold = { id, call, settlements: [] };
    if (this.record.holds.has(id)) this.record.fault(`Two reserves were given ${id}`);
    this.record.holds.set(id, hold);
    this.#free.push(hold);
  }

  /** Commits and releases a hold at once: one of the two wins. */
  async #race(wire: Wire, hold: Hold): Promise<void> {
    const second = new Wire(this.origins.at(-1) as string);
    await Promise.all([this.#settle(wire, hold, "commit"), this.#settle(second, hold, "release")]);
    second.close();
  }

  async #settle(wire: Wire, hold: Hold, kind: "commit" | "release"): Promise<void> {
    const isTight = hold.call.userId === TIGHT_USER;
    const settlement: Settlement = {
      kind,
      extra: kind === "commit" && !isTight ? Math.floor(Math.random() * 3) : 0,
      idempotencyKey: Math.random() < 0.5 ? `key-s${++this.#last}` : null,
      fate: "open",
      eventId: null,
    };
    hold.settlements.push(settlement);
    const extra = settlement.extra === 0 ? {} : { extra: { count: settlement.extra } };
    const body = { reservationId: hold.id, ...extra };
    const request = this.#request(`/${kind}`, body, settlement.idempotencyKey);
    await this.#send(wire, { request, take: (outcome) => this.#takeSettlement(hold, settlement, outcome) });
  }

  #takeSettlement(hold: Hold, settlement: Settlement, outcome: Outcome): boolean {
    const answer = this.#answerOf(outcome);
    if (answer === null) {
      if (settlement.fate === "open" || settlement.fate === "refused") {
        settlement.fate = outcome.kind === "unsent" ? "refused" : "unknown";
      }
      return false;
    }
    const { status, body } = answer;
    if (status === 409 && body.error.code === "reservation_not_pending") {
      const others = hold.settlements.filter((other) => other !== settlement);
      const mayBeDone = others.some(({ fate }) => fate !== "refused") ||
        (settlement.fate === "unknown" && settlement.idempotencyKey === null);
      if (!mayBeDone) this.record.fault(`${hold.id} was settled by nobody: ${JSON.stringify(body)}`);
      settlement.fate = "refused";
      return true;
    }
    if (status !== 200) {
      const known = JSON.stringify(hold);
      this.record.fault(`${settlement.kind} ${hold.id}: ${status} ${JSON.stringify(body)} of ${known}`);
      return true;
    }
    const eventId = settlement.kind === "commit" ? body.data.eventId : null;
    const known = hold.settlements.find(({ fate }) => fate === "acked");
    if (known !== undefined && (known !== settlement || known.eventId !== eventId)) {
      this.record.fault(`${hold.id} was settled twice`);
    }
    if (settlement.fate !== "acked" && eventId !== null) this.record.eventIds.push(eventId);
    settlement.fate = "acked";
    settlement.eventId = eventId;
    return true;
  }

  async #read(wire: Wire): Promise<void> {
    const path = Math.random() < 0.3 ? "/api/v1/events?limit=5" : `/api/v1/usage?userId=${pickUser()}`;
    const answer = this.#answerOf(await wire.call({ method: "GET", path, bearer: this.#key }));
    if (answer !== null && answer.status !== 200) {
      this.record.fault(`GET ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    }
  }

  #request(path: string, body: unknown, idempotencyKey: string | null): WireCall {
    return { method: "POST", path: `/api/v1${path}`, bearer: this.#key, body, idempotencyKey };
  }

  /** The answer, or null where the outcome is unknown: no answer, or 503, which must say when to try again. */
  #answerOf(outcome: Outcome): WireResponse | null {
    if (outcome.kind !== "answer") {
      const isLate = outcome.kind === "cut" && outcome.sentAt > this.#refusedAt;
      this.record.count(isLate ? "sent after a 503 and cut" : outcome.kind);
      return null;
    }
    const { answer } = outcome;
    this.record.count(answer.status);
    if (answer.status === 503) this.#refusedAt = Math.min(this.#refusedAt, performance.now());
    if (answer.status !== 503) return answer;
    if (!(Number(answer.headers.get("retry-after")) >= 1)) {
      this.record.fault("A 503 came without Retry-After");
    }
    return null;
  }
}

function isDone(outcome: Outcome): outcome is Extract<Outcome, { kind: "answer" }> {
  return outcome.kind === "answer" && outcome.answer.status !== 503;
}

function pickUser(): string {
  const choice = Math.random();
  if (choice < 0.15) return TIGHT_USER;
  if (choice < 0.55) return WIDE_USERS[0] as string;
  return WIDE_USERS[Math.floor(Math.random() * WIDE_USERS.length)] as string;
}
