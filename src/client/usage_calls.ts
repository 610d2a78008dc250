// Reads a user's usage, once or whenever it changes. A watch stays connected: it connects again when the connection
// breaks, when the process that serves it stops, when its token has expired and can be replaced, and when its user
// becomes an alias of another user, whose usage it then shows.

import { HoldfastError } from "./errors.ts";
import { eventsOf } from "./event_stream.ts";
import { mayPass } from "./retry.ts";
import type { CallOptions, Transport } from "./transport.ts";
import type { OverageList, OverageQuery, SpendCap, SpendCapInput, Usage } from "./wire_types.ts";

/** Options of a read. */
export interface UsageOptions extends CallOptions {
  /** Whether to add the users above, as `levels`. */
  readonly levels?: boolean | undefined;
}

/** Whether a watch is connected, and if not, why. */
export interface WatchConnection {
  readonly isLive: boolean;
  /** The error that broke the connection; null while it is live, and after a regular end. */
  readonly error: HoldfastError | null;
}

/** Options of a watch. */
export interface WatchOptions {
  /** Ends the watch. */
  readonly signal?: AbortSignal | undefined;
  /** Lists only groups and credits whose rules cover this event. */
  readonly event?: string | undefined;
  /** Used in place of the client's. */
  readonly endUserToken?: CallOptions["endUserToken"];
  /** Names the watch in the service's log. */
  readonly requestId?: CallOptions["requestId"];
  /** Called when the watch becomes live, and when it has lost its connection and will connect again. */
  readonly onConnection?: ((connection: WatchConnection) => void) | undefined;
}

/**
 * Why a watch ended. `aborted`: by its signal. `token_expired`: the client has no other token; give `endUserToken` as a
 * function to continue. `replaced`: newer streams of the user or of its token took the place of this one, as in a
 * browser with many open pages. Watch again when this page is looked at again, not by a timer: the pages would replace
 * each other without end.
 */
export interface WatchEnd {
  readonly reason: "aborted" | "erased" | "key_revoked" | "replaced" | "token_expired";
}

/** The calls that read usage: `usage(...)`, and `usage.watch(...)`. */
export interface UsageCalls {
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
   * @example Of a user in a team, with what the team has left
   * ```ts
   * await client.accounts.setParent("user_1", "team_1");
   * await client.subscriptions.upsert({ userId: "team_1", planId: "Pro" });
   * const { levels = [] } = await client.usage("user_1", "image.render", { levels: true });
   * console.log(levels[0]?.userId); // "team_1"
   * console.log(levels[0]?.counters[0]?.remaining); // 100
   * ```
   */
  (userId?: string, event?: string, options?: UsageOptions): Promise<Usage>;

  /**
   * Calls `onUsage` with the usage of a user, at once and whenever it changes. The promise resolves when the watch has
   * ended. It rejects when the service refuses the watch, and with an error of `onUsage`; temporary errors are retried.
   * With a public key `userId` may be undefined: the user of the token.
   *
   * @example
   * ```ts
   * const stop = new AbortController();
   * const { reason } = await client.usage.watch("user_1", ({ counters }) => {
   *   console.log(counters[0]?.label); // "Images a month"
   *   stop.abort();
   * }, { signal: stop.signal });
   * console.log(reason); // "aborted"
   * ```
   */
  watch(
    userId: string | undefined,
    onUsage: (usage: Usage) => void,
    options?: WatchOptions,
  ): Promise<WatchEnd>;

  /**
   * Lists what limit groups sold to a user past their quotas, by UTC hour, oldest first: 92 days at most. Needs a secret
   * key.
   *
   * @example
   * ```ts
   * await client.track("user_1", "render.video", 3);
   * const { overage } = await client.usage.overage({ userId: "user_1" });
   * console.log(overage[0]?.amount); // 3
   * ```
   */
  overage(query: OverageQuery, options?: CallOptions): Promise<OverageList>;

  /**
   * Sets or removes the most that a group may sell to a user past its quota in a window. With a public key and an end-user
   * token leave `userId` out.
   *
   * @example
   * ```ts
   * const cap = await client.usage.setSpendCap({ userId: "user_1", groupId: "lg_renders", max: 50 });
   * console.log(cap.max); // 50
   * ```
   */
  setSpendCap(input: SpendCapInput, options?: CallOptions): Promise<SpendCap>;
}

/** The calls of a transport. */
export function usageCallsOf(transport: Transport): UsageCalls {
  const read = (
    userId?: string,
    event?: string,
    { levels, ...call }: UsageOptions = {},
  ): Promise<Usage> =>
    transport.send({ method: "GET", path: "/usage", access: "any", query: { userId, event, levels } }, call);
  const watch: UsageCalls["watch"] = (userId, onUsage, options = {}) =>
    new Watch(transport, userId, onUsage, options).run();
  const overage: UsageCalls["overage"] = (query, call) =>
    transport.send({ method: "GET", path: "/overage", access: "secret", query }, call);
  const setSpendCap: UsageCalls["setSpendCap"] = (body, call) =>
    transport.send({ method: "PUT", path: "/usage/spend-cap", access: "any", body }, call);
  return Object.assign(read, { watch, overage, setSpendCap });
}

/** The service sends at least a comment every 15 s. */
const SILENCE_MS = 45_000;

/** The reason for which the service ended a connection; null without one. */
type Ended = WatchEnd["reason"] | "stopping" | "merged" | null;

/** One watch over all its connections. */
class Watch {
  readonly #transport: Transport;
  readonly #userId: string | undefined;
  readonly #onUsage: (usage: Usage) => void;
  readonly #options: WatchOptions;
  /** Consecutive connections without a state. */
  #retry = 0;

  constructor(
    transport: Transport,
    userId: string | undefined,
    onUsage: (usage: Usage) => void,
    options: WatchOptions,
  ) {
    this.#transport = transport;
    this.#userId = userId;
    this.#onUsage = onUsage;
    this.#options = options;
  }

  async run(): Promise<WatchEnd> {
    const { signal } = this.#options;
    while (true) {
      if (signal?.aborted) return { reason: "aborted" };
      const ended = await this.#connect().catch((error) => this.#mayPass(error));
      if (signal?.aborted) return { reason: "aborted" };
      if (ended === "erased" || ended === "key_revoked" || ended === "replaced") return { reason: ended };
      if (ended === "token_expired" && !this.#hasFreshToken) return { reason: ended };
      const error = ended instanceof HoldfastError ? ended : null;
      this.#options.onConnection?.({ isLive: false, error });
      const pauseMs = this.#pauseMs(ended, error);
      this.#retry += 1;
      await this.#transport.wait(pauseMs, signal).catch(() => {});
    }
  }

  get #hasFreshToken(): boolean {
    return this.#options.endUserToken === undefined && this.#transport.fetchesTokens;
  }

  /** Returns a temporary error; throws any other. */
  #mayPass(error: unknown): HoldfastError | null {
    if (this.#options.signal?.aborted) return null;
    if (error instanceof HoldfastError && mayPass(error)) return error;
    throw error;
  }

  /**
   * The pause before the next connection. It grows with each connection without a state. Much of it is random, so that
   * the clients of a process that stops do not all come back at once.
   */
  #pauseMs(ended: Ended | HoldfastError, error: HoldfastError | null): number {
    if (this.#retry === 0 && (ended === "merged" || ended === "token_expired")) return 0;
    const { baseDelayMs, maxDelayMs } = this.#transport.retries;
    const chance = Math.random();
    if (ended === "stopping") return chance * 4 * baseDelayMs;
    const full = Math.min(baseDelayMs * 2 ** this.#retry, maxDelayMs);
    return (error?.retryAfterMs ?? 0) + full * (1 + chance) / 2;
  }

  /** Reads one connection to its end. */
  async #connect(): Promise<Ended> {
    const { signal, event, endUserToken, requestId, onConnection } = this.#options;
    const stop = new AbortController();
    const onAbort = () => stop.abort(signal?.reason);
    signal?.addEventListener("abort", onAbort, { once: true });
    let silence = setTimeout(onSilence, SILENCE_MS);
    let isSilent = false;
    function onSilence(): void {
      isSilent = true;
      stop.abort();
    }
    const onBytes = () => {
      clearTimeout(silence);
      silence = setTimeout(onSilence, SILENCE_MS);
    };
    let isOwnFault = false;
    try {
      const wire = {
        method: "GET",
        path: "/usage/stream",
        access: "any",
        query: { userId: this.#userId, event },
      } as const;
      const body = await this.#transport.openStream(wire, { endUserToken, requestId }, stop.signal);
      let isLive = false;
      for await (const { name, data } of eventsOf(body, stop.signal, onBytes)) {
        if (signal?.aborted) return "aborted";
        if (name === "end") return JSON.parse(data).reason;
        if (name !== "usage") continue;
        this.#retry = 0;
        const usage = JSON.parse(data) as Usage;
        isOwnFault = true;
        if (!isLive) onConnection?.({ isLive: true, error: null });
        isLive = true;
        this.#onUsage(usage);
        isOwnFault = false;
      }
      if (isSilent) throw faultOf(isSilent);
      return null;
    } catch (cause) {
      if (isOwnFault || cause instanceof HoldfastError) throw cause;
      throw faultOf(isSilent, cause);
    } finally {
      clearTimeout(silence);
      signal?.removeEventListener("abort", onAbort);
      stop.abort();
    }
  }
}

function faultOf(isSilent: boolean, cause?: unknown): HoldfastError {
  const message = isSilent ? `No data for ${SILENCE_MS} ms` : "The stream ended unexpectedly";
  return new HoldfastError({ code: isSilent ? "timeout" : "network_error", status: 0, message, cause });
}
