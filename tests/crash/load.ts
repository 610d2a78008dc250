// The clients: parallel loops that reserve, commit, release, track and read for a few users, one of them hot, and
// write down every answer. Calls with an idempotency key are sent again until they are answered, also after a
// restart, and some are sent twice at once; calls without a key are left as unknown when their connection broke. Of one
// user usage only grows: an answer that shows less than one before its call rests on memory that is stale or was lost.

import { type Call, type Hold, Record, type Settlement } from "./record.ts";
import { pause } from "./program.ts";
import { type BatchResult, type CallResult, isDone, outcomeAt, outcomeOf } from "./results.ts";
import { GUARDED_USER, TIGHT_QUOTA, TIGHT_USER, WIDE_USERS, WITNESS_USER } from "./stage.ts";
import { type Outcome, Wire, type WireCall, type WireResponse } from "./wire.ts";
import { isDeep } from "../support/depth.ts";

const LOOPS = 20;
const TTL_SECONDS = 86_400;

/** A keyed call that waits for an answer. */
interface Pending {
  readonly request: WireCall;
  readonly take: (outcome: Outcome) => boolean;
}

/** The part of an answer to a reserve or track that says what is used by now. */
interface ShownCounts {
  readonly groups?: readonly { readonly current: number }[];
  readonly counters?: readonly { readonly count: number }[];
}

/** Whether a batch has a result that a repetition may change: its answer is not kept. */
function isToRepeat(body: { data?: { results?: readonly BatchResult[] } }): boolean {
  return body.data?.results?.some((result) => result.error?.code === "unavailable") === true;
}

/** Clients of one service, whichever process serves it. */
export class Load {
  readonly record = new Record();
  /** Where the clients send; changed when another process serves. */
  origins: string[];
  /**
   * The longest pause of a client between two calls. All clients together have some call under way at most moments; ones
   * that hardly rest would take both cores from what is waited for, and leave ten times as much to audit.
   */
  pauseMaxMs = isDeep ? 12 : 240;
  /** How many of the reads look at the feed, which asks for a drain at once. */
  feedShare = 0.3;
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
        if (this.#take(next, await wire.call(next.request))) continue;
        if (performance.now() > deadline) throw new Error(`No answer to ${JSON.stringify(next.request)}`);
        this.#pending.push(next);
        await pause(20);
      }
    } finally {
      wire.close();
    }
  }

  /** Holds of a known state that no client is busy with, newest first. */
  knownHolds(): Hold[] {
    return this.#free.filter(({ settlements }) => settlements.every(({ fate }) => fate === "refused"))
      .reverse();
  }

  /** Releases what a user may still hold: also where the answer to a settlement was lost. */
  async releaseAll(origin: string, userId: string): Promise<void> {
    const wire = new Wire(origin);
    for (const hold of [...this.record.holds.values()].filter(({ call }) => call.userId === userId)) {
      if (hold.settlements.some(({ fate }) => fate === "acked")) continue;
      const place = this.#free.indexOf(hold);
      if (place >= 0) this.#free.splice(place, 1);
      await this.#settle(wire, hold, "release");
    }
    wire.close();
  }

  /** Commits a hold, as an auditor does; a fault when the service does not know it. */
  async commit(origin: string, hold: Hold): Promise<void> {
    const wire = new Wire(origin);
    this.#free.splice(this.#free.indexOf(hold), 1);
    await this.#settle(wire, hold, "commit");
    wire.close();
  }

  async #loop(): Promise<void> {
    const wire = new Wire(this.origins[0] as string);
    while (this.#isOn) {
      wire.moveTo(this.origins[Math.floor(Math.random() * this.origins.length)] as string);
      await this.#step(wire);
      await pause(Math.random() * this.pauseMaxMs);
    }
    wire.close();
  }

  async #step(wire: Wire): Promise<void> {
    const again = this.#pending.shift();
    if (again !== undefined) {
      if (!this.#take(again, await wire.call(again.request))) {
        this.#pending.push(again);
        await pause(50);
      }
      return;
    }
    const choice = Math.random();
    if (choice < 0.34) return await this.#open(wire, "reserve");
    if (choice < 0.47) return await this.#open(wire, "track");
    if (choice < 0.52) return await (choice < 0.49 ? this.#batch(wire) : this.#together(wire));
    if (choice < 0.54) return await this.#capture(wire);
    if (choice < 0.58) return await this.#read(wire);
    if (choice < 0.62) return await this.#witness(wire);
    if (choice < 0.67) return await this.#open(wire, "track", GUARDED_USER);
    if (choice < 0.69) return await this.#open(wire, "reserve", GUARDED_USER);
    const hold = this.#takeHold();
    if (hold === null) return await this.#open(wire, "reserve");
    if (choice > 0.97) return await this.#race(wire, hold);
    await this.#settle(wire, hold, choice < 0.85 ? "commit" : "release");
    this.#freeIfOpen(hold);
  }

  #freeIfOpen(hold: Hold): void {
    const isOpen = hold.settlements.every(({ fate }) => fate === "refused" || fate === "unknown");
    if (isOpen) this.#free.push(hold);
  }

  #takeHold(): Hold | null {
    if (this.#free.length === 0) return null;
    const [hold] = this.#free.splice(Math.floor(Math.random() * this.#free.length), 1);
    return hold ?? null;
  }

  /** A reserve or a track. */
  async #open(wire: Wire, kind: "reserve" | "track", userId = pickUser()): Promise<void> {
    // Where calls are limited each one is known in the end.
    await this.#send(wire, this.#opening(kind, userId, userId === GUARDED_USER || Math.random() < 0.5));
  }

  #opening(kind: "reserve" | "track", userId: string, hasKey: boolean): Pending {
    const call = this.#newCall(kind, userId, hasKey);
    const { tag, count, idempotencyKey } = call;
    const body = { userId, event: `image.${kind}`, count, metadata: { call: tag } };
    const request = this.#request(`/${kind}`, {
      ...body,
      ...(kind === "reserve" ? { ttlSeconds: TTL_SECONDS } : {}),
    }, idempotencyKey);
    return { request, take: (outcome: Outcome) => this.#takeOpen(call, outcome) };
  }

  /** Calls in one request, each with a key of its own. One without an answer is sent again by itself. */
  async #together(wire: Wire): Promise<void> {
    const hold = this.#takeHold();
    const settling = hold === null
      ? []
      : [this.#settling(hold, Math.random() < 0.7 ? "commit" : "release", true)];
    const kinds = Array.from({ length: 1 + Math.floor(Math.random() * 5) }, () => Math.random() < 0.6);
    const opening = kinds.map((isReserve) =>
      this.#opening(isReserve ? "reserve" : "track", pickUser(), true)
    );
    const calls = [...settling, ...opening];
    const elements = calls.map(({ request: { path, body, idempotencyKey } }) => {
      return { ...body as object, call: path.replace("/api/v1/", ""), idempotencyKey };
    });
    const outcome = await wire.call(this.#request("/batch", { calls: elements }, null));
    const results: readonly CallResult[] | null = isDone(outcome) && outcome.answer.status === 200
      ? outcome.answer.body.data.results
      : null;
    for (const [place, call] of calls.entries()) {
      if (!this.#take(call, outcomeOf(outcome, results?.[place]))) this.#pending.push(call);
    }
    if (hold !== null) this.#freeIfOpen(hold);
  }

  /** A batch with a key, whose events have none. */
  async #batch(wire: Wire): Promise<void> {
    const calls = Array.from(
      { length: 1 + Math.floor(Math.random() * 4) },
      () => this.#newCall("track", pickUser(), false),
    );
    const events = calls.map(({ tag, userId, count }) => ({
      userId,
      event: "image.track",
      count,
      metadata: { call: tag },
    }));
    const request = this.#request("/track/batch", { events }, `key-b${++this.#last}`);
    const take = (outcome: Outcome) => {
      const results: readonly BatchResult[] | null = isDone(outcome) && outcome.answer.status === 200
        ? outcome.answer.body.data.results
        : null;
      const taken = calls.map((call, place) => this.#takeOpen(call, outcomeAt(outcome, results?.[place])));
      return results !== null || taken.every(Boolean);
    };
    await this.#send(wire, { request, take });
  }

  #newCall(kind: Call["kind"], userId: string, hasKey: boolean): Call {
    const tag = `c${++this.#last}`;
    const call: Call = {
      tag,
      kind,
      userId,
      count: 1 + Math.floor(Math.random() * 3),
      idempotencyKey: hasKey ? `key-${tag}` : null,
      fate: "open",
      id: null,
      isBlocked: false,
      sentAt: performance.now(),
      answeredAt: null,
    };
    this.record.calls.set(call.tag, call);
    return call;
  }

  /** A capture with a key: its event has a name of its own. */
  async #capture(wire: Wire): Promise<void> {
    const event = `captured.${++this.#last}`;
    this.record.captures.set(event, "unknown");
    const request = this.#request("/capture", { event }, `key-p${this.#last}`);
    const take = (outcome: Outcome) => {
      const answer = this.#answerOf(outcome);
      if (answer === null) return false;
      if (answer.status === 200) this.record.captures.set(event, "acked");
      else this.record.fault(`capture ${event}: ${answer.status} ${JSON.stringify(answer.body)}`);
      return true;
    };
    await this.#send(wire, { request, take });
  }

  /** Sends a call; one with a key twice at once now and then, and again later when it got no answer. */
  async #send(wire: Wire, pending: Pending): Promise<void> {
    const hasKey = pending.request.idempotencyKey != null;
    if (hasKey && Math.random() < 0.2) await this.#sendTwins(wire, pending);
    else if (!this.#take(pending, await wire.call(pending.request)) && hasKey) this.#pending.push(pending);
  }

  async #sendTwins(wire: Wire, pending: Pending): Promise<void> {
    const second = new Wire(this.origins.at(-1) as string);
    const [a, b] = await Promise.all([wire.call(pending.request), second.call(pending.request)]);
    second.close();
    const done = [this.#take(pending, a), this.#take(pending, b)];
    if (!done.includes(true)) this.#pending.push(pending);
  }

  /** Takes the outcome of a call, and keeps a first answer. */
  #take({ request, take }: Pending, outcome: Outcome): boolean {
    const { idempotencyKey } = request;
    if (idempotencyKey != null && isDone(outcome) && !isToRepeat(outcome.answer.body)) {
      const { status, body } = outcome.answer;
      const answer = { request, status, body: JSON.stringify(body) };
      const first = this.record.firstAnswers.get(idempotencyKey);
      if (first === undefined) this.record.firstAnswers.set(idempotencyKey, answer);
      else if (first.status !== status || first.body !== answer.body) {
        this.record.fault(`${idempotencyKey} was answered in two ways: ${first.body}, ${answer.body}`);
      }
    }
    return take(outcome);
  }

  /** Takes the outcome of a reserve or track; returns whether it is an answer. */
  #takeOpen(call: Call, outcome: Outcome): boolean {
    const answer = this.#answerOf(outcome);
    if (answer === null) {
      if (call.fate === "open" || call.fate === "refused") {
        call.fate = outcome.kind === "unsent" ? "refused" : "unknown";
      }
      return false;
    }
    const { status, body } = answer;
    const limit = call.userId === GUARDED_USER ? "rate_limit_reached" : "limit_reached";
    const isBlocked = call.kind === "track" && status === 429 && body.error.code === limit;
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
    if (status === 200 && id !== null) this.#lookAtCount(call, body.data);
    call.id = id;
    call.isBlocked = isBlocked;
    call.fate = id === null ? "refused" : "acked";
    call.answeredAt ??= performance.now();
    if (isNew && call.kind === "reserve") this.#addHold(call, id);
    if (isNew && call.kind === "track") this.record.eventIds.push(id);
    return true;
  }

  /** What was allowed fits the quota; what was used once stays used. */
  #lookAtCount({ tag, kind, userId }: Call, data: ShownCounts): void {
    const count = (kind === "reserve" ? data.groups?.[0]?.current : data.counters?.[0]?.count) ?? 0;
    if (userId === TIGHT_USER && count > TIGHT_QUOTA) {
      this.record.fault(`${tag} was allowed at ${count} of ${TIGHT_QUOTA}`);
    }
    if (userId === WITNESS_USER) this.record.witnessed = Math.max(this.record.witnessed, count);
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
    await this.#send(wire, this.#settling(hold, kind, Math.random() < 0.5));
  }

  #settling(hold: Hold, kind: "commit" | "release", hasKey: boolean): Pending {
    const isTight = hold.call.userId === TIGHT_USER;
    const settlement: Settlement = {
      kind,
      extra: kind === "commit" && !isTight ? Math.floor(Math.random() * 3) : 0,
      idempotencyKey: hasKey ? `key-s${++this.#last}` : null,
      sentAt: performance.now(),
      fate: "open",
      eventId: null,
    };
    hold.settlements.push(settlement);
    const extra = settlement.extra === 0 ? {} : { extra: { count: settlement.extra } };
    const body = { reservationId: hold.id, ...extra };
    const request = this.#request(`/${kind}`, body, settlement.idempotencyKey);
    return { request, take: (outcome) => this.#takeSettlement(hold, settlement, outcome) };
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
      if (!mayBeDone) this.record.fault(`${hold.id} was settled by no call: ${JSON.stringify(body)}`);
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
    const path = Math.random() < this.feedShare
      ? "/api/v1/events?limit=5"
      : `/api/v1/usage?userId=${pickUser()}`;
    const answer = this.#answerOf(await wire.call({ method: "GET", path, bearer: this.#key }));
    if (answer !== null && answer.status !== 200) {
      this.record.fault(`GET ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    }
  }

  /** Uses some of what is only ever used, or looks how much that is. */
  async #witness(wire: Wire): Promise<void> {
    if (Math.random() < 0.5) return await this.#open(wire, "track", WITNESS_USER);
    const before = this.record.witnessed;
    const path = `/api/v1/usage?userId=${WITNESS_USER}`;
    const answer = this.#answerOf(await wire.call({ method: "GET", path, bearer: this.#key }));
    if (answer === null) return;
    const shown: number = answer.body.data.counters[0].count;
    if (shown < before) this.record.fault(`Usage of ${WITNESS_USER} was ${before} and then ${shown}`);
    this.record.witnessed = Math.max(this.record.witnessed, shown);
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

function pickUser(): string {
  const choice = Math.random();
  if (choice < 0.15) return TIGHT_USER;
  if (choice < 0.55) return WIDE_USERS[0] as string;
  return WIDE_USERS[Math.floor(Math.random() * WIDE_USERS.length)] as string;
}
