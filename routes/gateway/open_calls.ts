// Calls under way, from their hold to its settlement. Each is settled once, by what ends it first: the end of the answer, a
// fault of the server, a caller who leaves, or the end of this process. One timer checks all of them.

import { tokensOfBytes } from "../../src/domain/pricing/model_call.ts";
import { readReport } from "../../src/domain/pricing/provider_usage.ts";
import type { Usage } from "../../src/domain/pricing/usage.ts";
import { type Amount, numberOf } from "../../src/domain/values/amount.ts";
import type { GatewayCounts, GatewayOutcome } from "../../src/process/counts/gateway_counts.ts";
import { GATEWAY_LIMITS } from "../../src/process/limits.ts";
import { Stopping } from "../../actors/port.ts";
import type { Source } from "../http/auth.ts";
import { type Hold, type HoldSource, prolongAnywhere, settleAnywhere, type Settlement } from "./holds.ts";

/** What is known of an answer so far. */
export interface Progress {
  /** The report of the usage; undefined until it has arrived. */
  readonly report?: unknown;
  /** Bytes of the text that the model wrote. */
  readonly textBytes: number;
  /** The beginning of that text, where it goes into a log. */
  readonly text: string;
}

const NOTHING_YET: Progress = { textBytes: 0, text: "" };

/** A call under way. */
export interface OpenCall {
  /** Aborts the call to the server. */
  readonly signal: AbortSignal;
  readonly reservationId: string;
  /** The answer so far, by which the call is settled. */
  progress: Progress;
  isStream: boolean;
  /** Notes that the server has sent something, or the caller has taken something. */
  moves(): void;
  /** Ends a call with a complete answer. Resolves when the hold is settled, or after a bounded time. */
  finish(): Promise<void>;
  /** Ends a call after its caller has left, and its request to the server. */
  leave(): void;
  /**
   * Ends a call after the server has failed.
   *
   * @param hasBegun whether a part of the answer was passed on already
   */
  fail(hasBegun: boolean, reason: string): Promise<void>;
}

type HoldWorldOf = ReturnType<HoldSource["world"]>;

/** Where calls get the running term. */
export interface CallSource extends Source<HoldWorldOf> {
  readonly counts: { readonly gateway: GatewayCounts };
  /** Sets work that a stop does before its term ends. */
  beforeStop(work: () => Promise<void>): void;
}

/** All calls under way of a process. */
export class OpenCalls implements HoldSource {
  readonly counts: GatewayCounts;
  readonly #source: CallSource;
  readonly #open = new Set<Call>();
  readonly #settling = new Set<Promise<void>>();
  #world: HoldWorldOf | null = null;
  #timer: ReturnType<typeof setInterval> | null = null;

  constructor(source: CallSource) {
    this.#source = source;
    this.counts = source.counts.gateway;
  }

  /** The running term. While the process stops it takes no new calls, but open calls still end in the last term. */
  world(): HoldWorldOf {
    try {
      return this.#world = this.#source.requireServing();
    } catch (error) {
      if (error instanceof Stopping && this.#world?.term.isServing === true) return this.#world;
      throw error;
    }
  }

  get hasRoom(): boolean {
    return this.#open.size < GATEWAY_LIMITS.callsMax;
  }

  /** Begins a call that has its hold. */
  open(world: HoldWorldOf, hold: Hold, ttlMs: number, inputTokens: Amount): OpenCall {
    if (this.#world === null) this.#source.beforeStop(() => this.endAll());
    this.#world = world;
    const call = new Call(this, hold, ttlMs, inputTokens);
    this.#open.add(call);
    this.#count();
    this.#timer ??= setInterval(() => this.#look(), GATEWAY_LIMITS.lookEveryMs);
    return call;
  }

  /** Ends every call as if its caller had left; resolves when their holds are settled. */
  async endAll(): Promise<void> {
    for (const call of this.#open) call.leave();
    await Promise.all(this.#settling);
  }

  /** Settles the hold of a call that has ended. */
  settle(call: Call, outcome: GatewayOutcome, settlement: Settlement): Promise<void> {
    this.#open.delete(call);
    this.#count();
    if (this.#open.size === 0 && this.#timer !== null) {
      clearInterval(this.#timer);
      this.#timer = null;
    }
    this.counts.outcomes[outcome] += 1;
    const settled = settleAnywhere(this, call.hold, settlement).then((isSettled) => {
      if (!isSettled) this.counts.unsettled += 1;
      this.#settling.delete(settled);
    });
    this.#settling.add(settled);
    return settled;
  }

  prolong({ hold, ttlMs }: Call): void {
    void prolongAnywhere(this, hold, ttlMs);
  }

  #count(): void {
    this.counts.open = this.#open.size;
  }

  #look(): void {
    const now = performance.now();
    for (const call of this.#open) call.look(now);
  }
}

class Call implements OpenCall {
  readonly hold: Hold;
  readonly ttlMs: number;
  progress = NOTHING_YET;
  readonly #calls: OpenCalls;
  readonly #inputTokens: Amount;
  readonly #server = new AbortController();
  #isStream = false;
  #settled: Promise<void> | null = null;
  #movedAt = performance.now();
  #prolongedAt = this.#movedAt;

  constructor(calls: OpenCalls, hold: Hold, ttlMs: number, inputTokens: Amount) {
    this.#calls = calls;
    this.hold = hold;
    this.ttlMs = ttlMs;
    this.#inputTokens = inputTokens;
  }

  get signal(): AbortSignal {
    return this.#server.signal;
  }

  get reservationId(): string {
    return this.hold.reservationId;
  }

  set isStream(isStream: boolean) {
    this.#isStream = isStream;
    if (isStream) this.#calls.counts.streams += 1;
  }

  get isStream(): boolean {
    return this.#isStream;
  }

  moves(): void {
    this.#movedAt = performance.now();
  }

  finish(): Promise<void> {
    return soon(this.#settle("committed"));
  }

  leave(): void {
    void this.#settle("left");
    this.#server.abort();
  }

  fail(hasBegun: boolean, reason: string): Promise<void> {
    if (hasBegun) return soon(this.#settle("estimated"));
    const settlement = { by: "release", reason, errorCode: "model_server_failed" } as const;
    return soon(this.#settleBy("failed", () => settlement));
  }

  /** Prolongs the hold when it is time, and ends a call that stands still. */
  look(now: number): void {
    if (now - this.#movedAt > GATEWAY_LIMITS.stillMs) return this.leave();
    if (now - this.#prolongedAt < Math.min(GATEWAY_LIMITS.prolongEveryMs, this.ttlMs / 3)) return;
    this.#prolongedAt = now;
    this.#calls.prolong(this);
  }

  /** Charges what the server reported, else an estimate by the answer so far. */
  #settle(outcome: "committed" | "estimated" | "left"): Promise<void> {
    const { report, textBytes, text } = this.progress;
    const reported = readReport(report);
    const usage = reported === null
      ? { inputTokens: this.#inputTokens, outputTokens: tokensOfBytes(textBytes) }
      : reported;
    const isEstimate = reported === null;
    return this.#settleBy(isEstimate && outcome === "committed" ? "estimated" : outcome, () => ({
      by: "commit",
      usage: numbersOf(usage),
      isEstimate,
      response: text === "" ? null : loggable(text),
    }));
  }

  #settleBy(outcome: GatewayOutcome, settlement: () => Settlement): Promise<void> {
    if (this.#settled !== null) return this.#settled;
    if (this.#isStream) this.#calls.counts.streams -= 1;
    return this.#settled = this.#calls.settle(this, outcome, settlement());
  }
}

/** The amounts of a usage as numbers, which pass the channel between processes. */
function numbersOf(usage: Partial<Usage>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(usage).flatMap(([name, amount]) =>
      typeof amount === "bigint" ? [[name, numberOf(amount)]] : []
    ),
  );
}

/** Replaces the characters that no column of the database takes. */
function loggable(text: string): string {
  return text.replaceAll("\0", "\uFFFD").toWellFormed();
}

/** Resolves with the work, or after a bounded time; the work then goes on. */
async function soon(work: Promise<void>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<void>((resolve) => timer = setTimeout(resolve, GATEWAY_LIMITS.settledMs));
  await Promise.race([work, late]);
  clearTimeout(timer);
}
