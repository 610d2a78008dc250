// The metering calls: reserve, commit, release, track, can-use, explain and usage. They are methods of the client itself.

import type { CallOptions, Transport } from "./transport.ts";
import { type UsageCalls, usageCallsOf } from "./usage_calls.ts";
import { TrackLater } from "./track_later.ts";
import { type Outcome, reserveAndSettle, type ReservedWork, type Settled } from "./with_reservation.ts";
import type { Held, ReserveAnswer } from "./metering_types.ts";
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

/** The metering calls. */
export class Metering {
  /** Reads usage: `usage(...)` once, `usage.watch(...)` as it changes. */
  readonly usage: UsageCalls;
  readonly #transport: Transport;
  readonly #later: TrackLater;

  /** Called by the client. */
  constructor(transport: Transport) {
    this.#transport = transport;
    this.usage = usageCallsOf(transport);
    this.#later = new TrackLater(transport, transport.onTrackError);
  }

  /**
   * Sets quota aside before the work. At a limit the answer is `allowed: false` with reasons, not an error.
   *
   * @param quantity for audio and video the seconds; 1 by default
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
  reserve(
    userId: string,
    event: string,
    quantity?: number,
    metadata?: Metadata,
    options: ReserveOptions = {},
    call?: CallOptions,
  ): Promise<ReserveAnswer> {
    return this.#write("/reserve", { ...options, userId, event, quantity, metadata }, call);
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
  commit(reservationId: string, options: CommitOptions = {}, call?: CallOptions): Promise<CommitAnswer> {
    return this.#write("/commit", { ...options, reservationId }, call);
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
    await this.#write("/release", { ...options, reservationId }, call);
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
    return this.#write("/track", { ...options, userId, event, quantity, metadata }, call);
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
   * Sends every event that `trackLater` was given.
   *
   * @throws AggregateError of a `TrackError` for each event that was not counted, if there is no `onTrackError`
   */
  flush(): Promise<void> {
    return this.#later.flush();
  }

  /**
   * Returns what a reserve would answer now, and reserves nothing: for disabling a button, not for guarding work.
   *
   * @example
   * ```ts
   * const { allowed, details } = await client.canUse("user_1", "image.render", 1, {}, { count: 101 });
   * console.log(allowed); // false
   * console.log(details[0]?.quota); // 100
   * ```
   */
  canUse(
    userId: string,
    event: string,
    quantity?: number,
    metadata?: Metadata,
    options: HeldSize = {},
    call?: CallOptions,
  ): Promise<CanUseAnswer> {
    return this.#ask("/can-use", { ...options, userId, event, quantity, metadata }, call);
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
    return this.#ask("/explain", { ...options, userId, event, quantity, metadata }, call);
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
   * console.log(counters.length); // 5
   * ```
   */
  usageMe(event?: string, call?: CallOptions): Promise<Usage> {
    return this.#transport.send(
      { method: "GET", path: "/usage/me", access: "any", query: { event } },
      call,
    );
  }

  /**
   * Reserves, runs your work, and commits what it returns. If the work throws, the reservation is released and the
   * error is thrown on. Without enough quota the work does not start. Commit and release are sent even when the `signal`
   * has ended the work. With an `idempotencyKey` a job that runs again gets the same reservation; where the first run
   * has committed, the second commit rejects with `reservation_not_pending`, so nothing is charged twice.
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
   * console.log(outcome.commit.groups[0]?.current); // 4120
   * console.log(outcome.commit.cost.cents); // 0.0672
   * ```
   */
  withReservation<Value>(
    asked: ReservedWork,
    work: (hold: Held) => Promise<Settled<Value>> | Settled<Value>,
    call?: CallOptions,
  ): Promise<Outcome<Value>> {
    return reserveAndSettle(this, asked, work, call);
  }

  #ask<Answer>(path: string, body: object, call: CallOptions | undefined): Promise<Answer> {
    return this.#transport.send({ method: "POST", path, access: "secret", body, isRead: true }, call);
  }

  #write<Answer>(path: string, body: object, call: CallOptions | undefined): Promise<Answer> {
    return this.#transport.send({ method: "POST", path, access: "secret", body }, call);
  }
}
