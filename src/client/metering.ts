// The metering calls: reserve, commit, release, track, can-use, explain and usage. They are methods of the client itself.

import { Afterwards, tell } from "./afterwards.ts";
import { CallGroup } from "./call_group.ts";
import { Decisions, mayPassLater, NoDecision, UNMETERED } from "./decisions.ts";
import { HoldfastError, invalidInput } from "./errors.ts";
import { waitPauseMs, waitTimeMs } from "./retry.ts";
import { type CallOptions, TIMEOUT_MS, type Transport, type WireCall } from "./transport.ts";
import { type UsageCalls, usageCallsOf } from "./usage_calls.ts";
import { TrackLater } from "./track_later.ts";
import {
  eventOfWork,
  type Outcome,
  OWN,
  type OwnCalls,
  partsOf,
  reserveAndSettle,
  type ReservedWork,
  type Settled,
} from "./with_reservation.ts";
import type { Held, OnCommitError, ReserveAnswer, Unmetered, WaitOptions } from "./metering_types.ts";
import { bodyOf } from "./wire.ts";
import type {
  CanUseAnswer,
  CommitAnswer,
  CommitOptions,
  Explanation,
  HeldSize,
  Metadata,
  ReleaseOptions,
  ReserveOptions,
  TrackAnswer,
  TrackOptions,
  Usage,
} from "./wire_types.ts";

/** The metering calls. `Allowed` is what a reserve may answer without a decision: nothing, or `Unmetered`. */
export class Metering<Allowed extends Unmetered = never> extends CallGroup {
  /** Reads usage: `usage(...)` once, `usage.watch(...)` as it changes. */
  readonly usage: UsageCalls;
  readonly #later: TrackLater;
  readonly #afterwards: Afterwards;
  readonly #decisions: Decisions;
  readonly #now: () => number;
  /** Calls for helpers of the client's own. */
  readonly [OWN]: OwnCalls;

  /**
   * Called by the client.
   *
   * @param now a clock in milliseconds; tests pass their own
   */
  constructor(transport: Transport, now: () => number = () => Date.now()) {
    super(transport);
    this.#now = now;
    this.usage = usageCallsOf(transport);
    this.#later = new TrackLater(transport, transport.onTrackError);
    this.#afterwards = new Afterwards(transport);
    this.#decisions = new Decisions(transport, transport.decisions);
    this[OWN] = {
      reserve: (asked, call) => this.#reserveWork(asked, call),
      trackUnmetered: (asked, commit, call) => this.#trackUnmetered(asked, commit, call),
      commit: (...args) => this.#commitWork(...args),
    };
  }

  /**
   * Sets quota aside before the work. At a limit the answer is `allowed: false` with reasons, not an error.
   *
   * While the service is unavailable it rejects, or with `onUnavailable: "allow"` answers `{ allowed: true, unmetered: true }`
   * without a reservation; the work is then tracked when the service is back.
   *
   * With `waitSeconds` it asks again while rates and concurrency limits alone refuse.
   *
   * @param quantity for audio and video the seconds; 1 by default. How many is `count` in the options
   * @example
   * ```ts
   * const hold = await client.reserve("user_1", "image.render", 1, {}, { count: 4 });
   * if (hold.allowed) console.log(hold.groups?.[0]?.current); // 4
   * ```
   * @example
   * ```ts
   * const hold = await client.reserve("user_1", "chat.reply", 1, { model: "gpt-4o-mini" }, {
   *   inputTokens: 4000,
   *   maxOutputTokens: 500,
   *   prompt: "Write a haiku.",
   * });
   * if (!hold.allowed) throw new Error(hold.reasons.join());
   * const usage = { inputTokens: 4000, outputTokens: 120 };
   * await client.commit(hold.reservationId, { usage, response: "Old pond..." });
   * ```
   */
  async reserve(
    userId: string,
    event: string,
    quantity?: number,
    metadata?: Metadata,
    options: ReserveOptions & WaitOptions = {},
    call?: CallOptions,
  ): Promise<ReserveAnswer | Allowed> {
    const asked = { ...options, userId, event, quantity, metadata };
    const hold = await this.#reserveWork(asked, call);
    // There will be no commit that says more.
    if (hold.reservationId === undefined && hold.allowed) this.#trackUnmetered(asked, {}, call);
    return hold as ReserveAnswer | Allowed;
  }

  /**
   * Charges the usage of the work in place of the reserved amounts. It succeeds while the reservation is open, and also
   * after it has expired: then it charges again. Without a usage it charges the reserved amounts.
   *
   * @example
   * ```ts
   * const hold = await client.reserve("user_1", "chat.reply", 1, { model: "gpt-4o-mini" }, {
   *   inputTokens: 4000,
   *   maxOutputTokens: 500,
   * });
   * if (hold.allowed) {
   *   const usage = { inputTokens: 4000, cachedInputTokens: 0, outputTokens: 120 };
   *   const settled = await client.commit(hold.reservationId, { usage });
   *   console.log(settled.cost); // { cents: 0.0672, priced: true, model: "gpt-4o-mini" }
   * }
   * ```
   * @example
   * ```ts
   * const hold = await client.reserve("user_1", "image.render");
   * if (hold.allowed) {
   *   const settled = await client.commit(hold.reservationId, { costCents: 4.2 });
   *   console.log(settled.groups[0]?.current); // 1
   *   console.log(settled.recharged); // false
   * }
   * ```
   */
  async commit(
    reservationId: string,
    options: CommitOptions = {},
    call?: CallOptions,
  ): Promise<CommitAnswer> {
    return await this.transport.send(commitCall(reservationId, options), call);
  }

  /**
   * Gives a reservation back: the work did not happen.
   *
   * @example
   * ```ts
   * const hold = await client.reserve("user_1", "image.render");
   * if (hold.allowed) {
   *   await client.release(hold.reservationId, { reason: "the model was down", errorCode: "503" });
   * }
   * ```
   */
  async release(reservationId: string, options: ReleaseOptions = {}, call?: CallOptions): Promise<void> {
    requireReservation(reservationId);
    const body = { ...options, reservationId };
    await this.transport.send({ ...RELEASE, body }, call);
  }

  /**
   * Charges work in one call, without a reservation. At a limit it rejects with `limit_reached`: its `details` have
   * the id of the recorded attempt and the full groups.
   *
   * @example
   * ```ts
   * const { matchStatus, counters, cost } = await client.track("user_1", "chat.reply", 1, { model: "gpt-4o-mini" }, {
   *   usage: { inputTokens: 4000, outputTokens: 120 },
   * });
   * console.log(matchStatus); // "matched"
   * console.log(counters[0]?.remaining); // 95_880
   * console.log(cost.cents); // 0.0672
   * ```
   */
  track(
    userId: string,
    event: string,
    quantity?: number,
    metadata?: Metadata,
    options: TrackOptions = {},
    call?: CallOptions,
  ): Promise<TrackAnswer> {
    return this.send("POST", "/track", "secret", call, { ...options, userId, event, quantity, metadata });
  }

  /**
   * Queues an event that is sent within a second, with up to a hundred others: for finished work that is only counted.
   * Each event counts once however often it is sent. Errors go to `onTrackError`, else to `flush`. The rest is sent at
   * the end of a Node or Deno process, but not by `process.exit()`.
   *
   * @example
   * ```ts
   * client.trackLater("user_1", "chat.reply", 1, { model: "gpt-4o-mini" }, {
   *   usage: { inputTokens: 4000, outputTokens: 120 },
   * });
   * client.trackLater("user_1", "image.render");
   * await client.flush();
   * const { events } = await client.events.list({ userId: "user_1" });
   * console.log(events.length); // 2
   * ```
   */
  trackLater(
    userId: string,
    event: string,
    quantity?: number,
    metadata?: Metadata,
    options: TrackOptions = {},
  ): void {
    this.#later.add({ ...options, userId, event, quantity, metadata });
  }

  /**
   * Sends every event that `trackLater` was given, and tries once what waits for the service to be back.
   *
   * @throws AggregateError of a `TrackError` for each event that was not counted, if there is no `onTrackError`; or of the
   * error for which something still waits
   */
  async flush(): Promise<void> {
    const error = await this.#afterwards.flush();
    await this.#later.flush();
    if (error !== null) throw new AggregateError([error], "Some work still waits for the service to be back");
  }

  /**
   * Returns what a reserve would answer now, and reserves nothing: for disabling a button, not for guarding work. Without a
   * decision it rejects, or with `onUnavailable: "allow"` its answer has `unmetered: true`.
   *
   * @example
   * ```ts
   * const { allowed, details } = await client.canUse("user_1", "image.render", 1, {}, { count: 101 });
   * console.log(allowed); // false
   * console.log(details[0]?.quota); // 100
   * ```
   */
  async canUse(
    userId: string,
    event: string,
    quantity?: number,
    metadata?: Metadata,
    options: HeldSize = {},
    call?: CallOptions,
  ): Promise<CanUseAnswer & { readonly unmetered?: true | undefined }> {
    const body = { ...options, userId, event, quantity, metadata };
    const answer = await this.#decisions.ask<CanUseAnswer>(readCall("/can-use", body), call);
    if (!(answer instanceof NoDecision)) return answer;
    const { allowed, matched, unmetered } = UNMETERED;
    return { allowed, matched, unmetered, reasons: [], details: [] };
  }

  /**
   * Returns what a reserve would answer now and why, with every limit group and balance: for support.
   *
   * @example
   * ```ts
   * const { text, groups } = await client.explain("user_1", "image.render", 1, {}, { count: 101 });
   * console.log(groups[0]?.fits); // false
   * console.log(text);
   * // Refused by the limit "Images a month": 0 of 100 are used, and the call needs 101.
   * ```
   */
  explain(
    userId: string,
    event: string,
    quantity?: number,
    metadata?: Metadata,
    options: HeldSize = {},
    call?: CallOptions,
  ): Promise<Explanation> {
    return this.transport.send(
      readCall("/explain", { ...options, userId, event, quantity, metadata }),
      call,
    );
  }

  /**
   * Reads the counters and credits of the end-user token's user.
   *
   * @example In your backend: sign a token. In the page: ask with it and a public key
   * ```ts
   * const endUserToken = await signEndUserToken({ identitySecret, userId: "user_1" });
   * const page = createClient({ apiKey: "pk_live_...", baseUrl: "https://holdfast.example.com", endUserToken });
   * const { userId, counters } = await page.usageMe();
   * console.log(userId); // "user_1"
   * console.log(counters.length); // 6
   * ```
   */
  usageMe(event?: string, call?: CallOptions): Promise<Usage> {
    return this.send("GET", "/usage/me", "any", call, { event });
  }

  /**
   * Reserves, runs your work, and commits what it returns. If the work throws, the reservation is released and the
   * error is thrown on. Without enough quota the work does not start. Commit and release are sent even when the `signal`
   * has ended the work. With an `idempotencyKey` a job that runs again gets the same reservation; where the first run
   * has committed, the second commit is refused with `reservation_not_pending`, so nothing is charged twice.
   *
   * The result of the work is never lost: if the commit fails, `onCommitError` gets the error, `commit` is null, and a
   * temporary error is retried in the background with the same key.
   *
   * @example
   * ```ts
   * const metadata = { model: "gpt-4o-mini" };
   * const asked = { userId: "user_1", event: "chat.reply", metadata, inputTokens: 4000, maxOutputTokens: 500 };
   * const outcome = await client.withReservation(asked, async () => {
   *   const usage = { prompt_tokens: 4000, completion_tokens: 120 };
   *   const reply = await Promise.resolve({ text: "Old pond...", usage });
   *   return { value: reply.text, commit: { providerUsage: reply.usage } };
   * });
   * if (!outcome.allowed) throw new Error(outcome.reasons.join());
   * console.log(outcome.value); // "Old pond..."
   * console.log(outcome.commit?.groups[0]?.current); // 4120
   * console.log(outcome.commit?.cost.cents); // 0.0672
   * ```
   * @example Four images
   * ```ts
   * const draw = (count: number) => Promise.resolve(Array(count).fill("an image"));
   * const images = await client.withReservation({ userId: "user_1", event: "image.render", count: 4 }, async () => {
   *   return { value: await draw(4) };
   * });
   * if (images.allowed) console.log(images.commit?.groups[0]?.current); // 4
   * ```
   */
  withReservation<Value>(
    asked: ReservedWork,
    work: (hold: Held | Unmetered) => Promise<Settled<Value>> | Settled<Value>,
    call?: CallOptions,
  ): Promise<Outcome<Value>> {
    return reserveAndSettle(this, asked, work, call);
  }

  async #reserveWork(asked: ReservedWork, call: CallOptions | undefined): Promise<ReserveAnswer | Unmetered> {
    const { userId, event, quantity, metadata, size, decision, waitSeconds } = partsOf(asked);
    const body = { ...size, userId, event, quantity, metadata };
    const wire = { method: "POST", path: "/reserve", access: "secret", body } as const;
    const until = this.#now() + waitTimeMs(waitSeconds);
    for (let time = 1;; time++) {
      const answer = await this.#decisions.ask<ReserveAnswer>(wire, askedAgain(call, time), decision);
      if (answer instanceof NoDecision) {
        const handler = decision.onAllowedUnmetered ?? this.transport.decisions.onAllowedUnmetered;
        if (handler !== undefined) tell(handler, answer.error, eventOfWork(asked, {}));
        return UNMETERED;
      }
      const pauseMs = waitPauseMs(answer, until - this.#now(), Math.random());
      if (pauseMs === null) return answer;
      await this.transport.wait(pauseMs, call?.signal);
    }
  }

  #trackUnmetered(asked: ReservedWork, commit: CommitOptions, call: CallOptions | undefined): void {
    const event = eventOfWork(asked, commit);
    const idempotencyKey = call?.idempotencyKey === undefined
      ? this.transport.keys.next()
      : trackKeyOf(call.idempotencyKey);
    const lost = (error: HoldfastError) => this.#later.report(error, event, idempotencyKey);
    try {
      const wire = { method: "POST", path: "/track", access: "secret", text: bodyOf(event) } as const;
      this.#afterwards.add(wire, idempotencyKey, lost);
    } catch (error) {
      lost(errorOf(error));
    }
  }

  async #commitWork(
    ...[reservationId, options, call, { onCommitError, hasOther }]: Parameters<OwnCalls["commit"]>
  ): Promise<CommitAnswer | HoldfastError> {
    const handler = onCommitError ?? this.transport.decisions.onCommitError ?? printCommitError;
    const idempotencyKey = this.transport.keys.next();
    try {
      return await this.transport.send(commitCall(reservationId, options), { ...call, idempotencyKey });
    } catch (thrown) {
      const error = errorOf(thrown);
      if (hasOther && error.code === "invalid_request") return error;
      const failed = { reservationId, options, idempotencyKey };
      const isRetried = mayPassLater(error);
      tell(handler, error, { ...failed, isRetried });
      if (isRetried) {
        const lost = (last: HoldfastError) => tell(handler, last, { ...failed, isRetried: false });
        this.#afterwards.add(commitCall(reservationId, options), idempotencyKey, lost);
      }
      return error;
    }
  }
}

const RELEASE = { method: "POST", path: "/release", access: "secret", timeoutMinMs: TIMEOUT_MS } as const;

function commitCall(reservationId: string, options: CommitOptions): WireCall {
  requireReservation(reservationId);
  const body = { ...options, reservationId };
  return { method: "POST", path: "/commit", access: "secret", body, timeoutMinMs: TIMEOUT_MS };
}

function readCall(path: string, body: object): WireCall {
  return { method: "POST", path, access: "secret", body, isRead: true };
}

/** Without this check, the service would say that a member is missing, and not why. */
function requireReservation(reservationId: string | undefined): void {
  if (reservationId !== undefined) return;
  throw invalidInput("reservationId: is missing; work that was allowed with `unmetered: true` has none");
}

/** A question that is asked again needs another key: with the first one the service would repeat its refusal. */
function askedAgain(call: CallOptions | undefined, time: number): CallOptions | undefined {
  if (time === 1 || call?.idempotencyKey === undefined) return call;
  return { ...call, idempotencyKey: keyWith(call.idempotencyKey, `:${time}`) };
}

/** The key of the event of a job that has a key: another one than that of its reserve, which the service may know. */
function trackKeyOf(key: string): string {
  return keyWith(key, ":unmetered");
}

/** A key has at most so many characters. */
const KEY_LENGTH_MAX = 200;

/** Another key of the same job. As little as possible is cut off, because the ends of long keys may tell jobs apart. */
function keyWith(key: string, end: string): string {
  return key.slice(0, KEY_LENGTH_MAX - end.length) + end;
}

function errorOf(thrown: unknown): HoldfastError {
  if (thrown instanceof HoldfastError) return thrown;
  return new HoldfastError({ code: "network_error", status: 0, message: String(thrown), cause: thrown });
}

const printCommitError: OnCommitError = (error, { reservationId, isRetried }) =>
  console.error(
    `holdfast: the commit of ${reservationId} failed${isRetried ? ", and is retried" : ""}:`,
    error,
  );
