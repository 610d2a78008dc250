// The calls that meter: reserve, commit, release, track, can-use and usage. They are methods of the client itself.
// Specification, "Reservations"; sections 4 and 5 of the decisions.

import type { Metadata } from "./shapes.ts";
import type {
  CallSize,
  CanUseAnswer,
  CommitAnswer,
  CommitOptions,
  Held,
  ReleaseOptions,
  ReserveAnswer,
  ReserveOptions,
  TrackAnswer,
  TrackOptions,
  Usage,
} from "./metering_shapes.ts";
import type { CallOptions, Transport } from "./transport.ts";
import { type Outcome, reserveAndSettle, type ReservedWork, type Settled } from "./with_reservation.ts";

/** The calls that meter. */
export class Metering {
  readonly #transport: Transport;

  /** Called by the client. */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Sets quota aside before the work. At a limit the answer is `allowed: false` with reasons, not an error.
   *
   * @param quantity for audio and video the seconds; 1 by default
   * @example
   * ```ts
   * const hold = await client.reserve("user_1", "chat.reply", 1, { model: "gpt-4o-mini" }, {
   *   inputTokens: 4000,
   *   prompt: "Write a haiku.",
   * });
   * if (!hold.allowed) throw new Error(hold.reasons.join());
   * await client.commit(hold.reservationId, { extra: { outputTokens: 120 }, response: "Old pond..." });
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
    const { inputTokens, inputCostCents, count, prompt, ttlSeconds } = options;
    const size = { inputTokens, inputCostCents, count };
    return this.#write("/reserve", { userId, event, quantity, metadata, ...size, prompt, ttlSeconds }, call);
  }

  /**
   * Charges what the work used in place of what was reserved. It succeeds while the reservation is open, and also
   * after it has expired: then it charges anew.
   *
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
    const { extra, actual, costCents, response } = options;
    return this.#write("/commit", { reservationId, extra, actual, costCents, response }, call);
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
    const { reason, errorCode, response } = options;
    await this.#write("/release", { reservationId, reason, errorCode, response }, call);
  }

  /**
   * Charges work in one call, without a reservation. At a limit it rejects with `limit_reached`: its `details` name
   * the record of the attempt and the groups that are full.
   *
   * @example
   * ```ts
   * const { matchStatus, counters } = await client.track("user_1", "chat.reply", 1, { model: "gpt-4o-mini" }, {
   *   inputTokens: 4000,
   * });
   * console.log(matchStatus); // "matched"
   * console.log(counters[0]?.remaining); // 96_000
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
    const { inputTokens, inputCostCents, count, costCents, prompt, response } = options;
    const size = { inputTokens, inputCostCents, count };
    const members = { userId, event, quantity, metadata, ...size, costCents, prompt, response };
    return this.#write("/track", members, call);
  }

  /**
   * Says what a reserve would answer now, and reserves nothing: for greying out a button, not for guarding work.
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
    options: CallSize = {},
    call?: CallOptions,
  ): Promise<CanUseAnswer> {
    const { inputTokens, inputCostCents, count } = options;
    const body = { userId, event, quantity, metadata, inputTokens, inputCostCents, count };
    return this.#transport.send(
      { method: "POST", path: "/can-use", access: "secret", body, isRead: true },
      call,
    );
  }

  /**
   * Reads the counters and credits of a user. With a public key and an end-user token leave `userId` out.
   *
   * @param event lists only groups whose rules cover this event
   * @example
   * ```ts
   * const { counters, period } = await client.usage("user_1", "image.render");
   * console.log(counters[0]?.remaining); // 100
   * console.log(period?.end); // "2026-02-15T12:00:00.000Z"
   * ```
   */
  usage(userId?: string, event?: string, call?: CallOptions): Promise<Usage> {
    return this.#transport.send(
      { method: "GET", path: "/usage", access: "any", query: { userId, event } },
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
   * error thrown on. If quota is lacking, the work does not start. Commit and release are sent even when the `signal`
   * has ended the work. With an `idempotencyKey` a job that runs again gets the same reservation; where the first run
   * has committed, the second commit rejects with `reservation_not_pending`, so nothing is charged twice.
   *
   * @example
   * ```ts
   * const asked = { userId: "user_1", event: "chat.reply", inputTokens: 4000 };
   * const outcome = await client.withReservation(asked, async () => {
   *   const reply = await Promise.resolve({ text: "Old pond...", tokens: 120 });
   *   return { value: reply.text, commit: { extra: { outputTokens: reply.tokens } } };
   * });
   * if (!outcome.allowed) throw new Error(outcome.reasons.join());
   * console.log(outcome.value); // "Old pond..."
   * console.log(outcome.commit.groups[0]?.current); // 4120
   * ```
   */
  withReservation<Value>(
    asked: ReservedWork,
    work: (hold: Held) => Promise<Settled<Value>> | Settled<Value>,
    call?: CallOptions,
  ): Promise<Outcome<Value>> {
    return reserveAndSettle(this, asked, work, call);
  }

  #write<Answer>(path: string, body: object, call: CallOptions | undefined): Promise<Answer> {
    return this.#transport.send({ method: "POST", path, access: "secret", body }, call);
  }
}
