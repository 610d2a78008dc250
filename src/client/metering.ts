// Reserve, commit, release, track, can-use and usage: what stands on the client itself. Specification,
// "Reservations"; sections 4 and 5 of the decisions.

import type {
  Counter,
  CreditBalance,
  DuplicateActiveSubscriptions,
  Metadata,
  Period,
  Unit,
} from "./shapes.ts";
import type { CallOptions, Transport } from "./transport.ts";
import { type Outcome, reserveAndSettle, type ReservedWork, type Settled } from "./with_reservation.ts";

/** Sizes of a call; which one counts depends on the unit of each limit group. */
export interface CallSize {
  readonly inputTokens?: number | undefined;
  /** Where it is left out, the catalog's price of the model decides. */
  readonly inputCostCents?: number | undefined;
  /** 1 by default. */
  readonly count?: number | undefined;
}

/** What a reserve may say beside event and metadata. */
export interface ReserveOptions extends CallSize {
  /** Kept with the event where prompt logging is on and the user has not opted out. */
  readonly prompt?: string | undefined;
  /** How long the hold lasts: 10 to 86,400; the app's setting by default. */
  readonly ttlSeconds?: number | undefined;
}

/** A limit group after a reserve or commit. */
export interface GroupStanding {
  readonly groupId: string;
  readonly unit: Unit;
  readonly quota: number;
  readonly current: number;
}

/** A limit group in a reserve's answer. */
export interface ReservedGroup extends GroupStanding {
  /** Where new reserves stop, when the plan keeps headroom. */
  readonly headroomGate?: number;
}

/** Why a reserve was refused. */
export type ReserveReason =
  | "limit_reached"
  | "reservation_headroom_exceeded"
  | "unmatched_event"
  | "no_subscription";

/** A reserve that holds quota. */
export interface Held {
  readonly allowed: true;
  readonly matched: true;
  readonly reservationId: string;
  readonly expiresAt: string;
  /** Missing where credits alone pay. */
  readonly groups?: readonly ReservedGroup[];
  readonly reasons?: undefined;
}

/** A reserve that holds nothing. */
export interface NotHeld {
  readonly allowed: false;
  /** false: no limit group covers the event, or the user has no subscription. */
  readonly matched: boolean;
  readonly reasons: readonly ReserveReason[];
  readonly groups?: readonly ReservedGroup[];
  readonly reservationId?: undefined;
  readonly expiresAt?: undefined;
}

/** The answer of a reserve; look at `allowed` first. */
export type ReserveAnswer = Held | NotHeld;

/** Amounts on top of what was reserved, of any sign. Of two names for one amount give one. */
export interface Extra {
  readonly count?: number | undefined;
  readonly tokens?: number | undefined;
  /** Another name of `tokens`. */
  readonly outputTokens?: number | undefined;
  readonly cents?: number | undefined;
  /** Another name of `cents`. */
  readonly outputCostCents?: number | undefined;
  readonly seconds?: number | undefined;
}

/** Final amounts in place of what was reserved. */
export interface Actual {
  readonly count?: number | undefined;
  readonly tokens?: number | undefined;
  readonly cents?: number | undefined;
  readonly seconds?: number | undefined;
}

/** What the work turned out to be. `extra` and `actual` must not name the same unit. */
export interface CommitOptions {
  readonly extra?: Extra | undefined;
  readonly actual?: Actual | undefined;
  /** The event's whole cost, in place of any that the reservation carries. */
  readonly costCents?: number | undefined;
  /** The model's output, kept under the same rules as the prompt. */
  readonly response?: string | undefined;
}

/** A limit group after a commit. */
export interface CommittedGroup extends GroupStanding {
  /** Whether this commit added to a counter that is past its quota now. */
  readonly overflow: boolean;
}

/** The answer of a commit. */
export interface CommitAnswer {
  readonly eventId: string;
  readonly groups: readonly CommittedGroup[];
  /** Whether the hold had lapsed and was charged again. */
  readonly recharged: boolean;
}

/** What a release may say. */
export interface ReleaseOptions {
  /** Cut at 500 characters. */
  readonly reason?: string | undefined;
  /** Cut at 100 characters. */
  readonly errorCode?: string | undefined;
  /** A part of the output, kept under the same rules as the prompt. */
  readonly response?: string | undefined;
}

/** What a track may say beside event and metadata. */
export interface TrackOptions extends CallSize {
  readonly costCents?: number | undefined;
  readonly prompt?: string | undefined;
  readonly response?: string | undefined;
}

/** The answer of a track. */
export interface TrackAnswer {
  readonly eventId: string;
  readonly matchStatus: "matched" | "matched_credits_only" | "unmatched" | "no_subscription";
  readonly matchedGroupIds: readonly string[];
  /** Of the matched groups. */
  readonly counters: readonly Counter[];
}

/** Credits that could pay. */
export interface CreditOffer {
  readonly packId: string;
  readonly packName: string;
  readonly available: number;
}

/** A limit group in a can-use's answer. */
export interface UseDetail {
  readonly groupId: string;
  readonly current: number;
  readonly quota: number;
  /** null for a lifetime plan. */
  readonly resetsAt: string | null;
  readonly creditAvailable: number;
  readonly creditPacks: readonly CreditOffer[];
}

/** What reserve would answer. */
export interface CanUseAnswer {
  readonly allowed: boolean;
  readonly matched: boolean;
  readonly reasons: readonly ReserveReason[];
  readonly details: readonly UseDetail[];
}

/** Where a user stands. */
export interface Usage {
  readonly userId: string;
  /** null without a plan. */
  readonly period: Period | null;
  readonly counters: readonly Counter[];
  readonly credits: readonly CreditBalance[];
  /** With a secret key only. */
  readonly duplicateActiveSubscriptions?: DuplicateActiveSubscriptions | null;
}

/** The calls that meter. */
export class Metering {
  readonly #transport: Transport;

  /** A client makes it. */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Holds quota before the work. At a limit the answer is `allowed: false` with reasons, not an error.
   *
   * @param quantity seconds of audio or video; 1 by default
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
   * Settles a hold with what the work turned out to be. Always succeeds while the hold is open or has lapsed.
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
   * Gives a hold back: the work did not happen.
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
   * Counts work that needs no hold. At a limit it rejects with `limit_reached`; `details.eventId` names the record.
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
   * Says what a reserve would answer now, and holds nothing: for greying out a button, not for guarding work.
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
   * The counters and credits of a user. With a public key and an end-user token leave `userId` out.
   *
   * @param event narrows to groups whose rules cover it
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
   * The counters and credits of the end-user token's user.
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
   * Does work under a hold: reserves, does it, commits what it says; when it throws, releases and throws on. The
   * settlement is sent even if the signal has ended the work. Where quota is lacking the work is not begun. With an
   * `idempotencyKey` a job that runs again works under the same hold; its second commit rejects with
   * `reservation_not_pending`, since it is charged already.
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
