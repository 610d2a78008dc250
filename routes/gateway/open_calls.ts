// Calls under way, from their hold to its settlement. Each is settled once, by what ends it first: the end of the answer, a
// fault of the server, a caller who leaves, or the end of this process. After its caller has left, a call is read on for a
// bounded time, since leaving before the report must not make it cheap. One timer checks all of them.

import {
  type CallEstimate,
  tokensOfBytes,
  tokensOfImages,
  usageOfLeft,
} from "../../src/domain/pricing/model_call.ts";
import { readReport } from "../../src/domain/pricing/provider_usage.ts";
import type { Usage } from "../../src/domain/pricing/usage.ts";
import { larger, numberOf } from "../../src/domain/values/amount.ts";
import type { GatewayCounts, GatewayOutcome } from "../../src/process/counts/gateway_counts.ts";
import { GATEWAY_LIMITS } from "../../src/process/gateway_limits.ts";
import { Stopping, Unavailable } from "../../actors/port.ts";
import type { Source } from "../http/auth.ts";
import { type Hold, type HoldSource, prolongAnywhere, settleAnywhere, type Settlement } from "./holds.ts";

/** The part of an answer that has arrived. */
export interface Progress {
  /** The report of the usage; undefined until it has arrived. */
  readonly report?: unknown;
  /** What was reported at the beginning: the input, and the output by then. */
  readonly begun?: unknown;
  /** The images that have come; for a call for images alone. */
  readonly images?: number;
  /** Whether there is any work of the model: text, reasoning, a tool call, a refusal, sound, a vector. */
  readonly hasWork: boolean;
  /** Bytes of the text that the model wrote. */
  readonly textBytes: number;
  /** The beginning of that text, where it goes into a log. */
  readonly text: string;
  /** Whether the answer shows that the model reasons. */
  readonly hasReasoned?: boolean;
}

const NOTHING_YET: Progress = { hasWork: false, textBytes: 0, text: "" };

/** A call under way. */
export interface OpenCall {
  /** Aborts the call to the server. */
  readonly signal: AbortSignal;
  readonly reservationId: string;
  /** The answer so far, by which the call is settled. */
  progress: Progress;
  isStream: boolean;
  /** Whether the caller has left, so that the answer is only read for its report. */
  readonly hasLeft: boolean;
  /** Notes that the caller has taken something. */
  moves(): void;
  /** Notes that the server has sent something. */
  receives(bytes: number): void;
  /**
   * Ends a call after its answer; one without a report and without work of the model has failed. Resolves after the
   * settlement, or after a bounded time.
   */
  finish(): Promise<void>;
  /** Notes that the caller has left: the answer is read on for its report, or the call ends now. */
  leave(): void;
  /** Sets work that begins when the caller leaves and the answer is read on, or at once if that is so already. */
  whenLeft(work: () => void): void;
  /** Ends a call after the server has failed. It is charged what the model had done by then. */
  fail(reason: string): Promise<void>;
}

type HoldWorldOf = ReturnType<HoldSource["world"]>;

/** Where calls get the running term. */
export interface CallSource extends Source<HoldWorldOf> {
  /** The running term of the database that has an app. @throws MayNotAnswer */
  requireServingOf(app: { readonly appId: string }): HoldWorldOf;
  readonly counts: { readonly gateway: GatewayCounts };
  /** Sets work that a stop does before its term ends. */
  beforeStop(work: () => Promise<void>): void;
}

/** What a call is charged by where its server reports no usage. */
interface CallTraits {
  readonly estimate: CallEstimate;
  /** Whether the model's prices show that it reasons. */
  readonly hasReasoningPrice: boolean;
  /** Whether tokens are held: not for images that are paid by their number. */
  readonly holdsTokens: boolean;
  /** How long the answer is read on after its caller has left; 0 for not at all. */
  readonly readOnMs: number;
}

/** All calls under way of a process. */
export class OpenCalls implements HoldSource {
  readonly counts: GatewayCounts;
  readonly #source: CallSource;
  readonly #open = new Set<Call>();
  readonly #settling = new Set<Promise<void>>();
  /** Places of calls under way, by app: from before their hold, or their question, to their end. */
  readonly #places = new Map<string, number>();
  #placesTaken = 0;
  /** The last known term of each app with open calls. */
  readonly #worlds = new Map<string, HoldWorldOf>();
  #isStopAwaited = false;
  #timer: ReturnType<typeof setInterval> | null = null;

  constructor(source: CallSource) {
    this.#source = source;
    this.counts = source.counts.gateway;
  }

  /** The running term. While the process stops it takes no new calls, but open calls still end in the last term. */
  world(appId: string): HoldWorldOf {
    try {
      const world = this.#source.requireServingOf({ appId });
      this.#worlds.set(appId, world);
      return world;
    } catch (error) {
      const last = this.#worlds.get(appId);
      if (error instanceof Stopping && last?.term.isServing === true) return last;
      throw error;
    }
  }

  /**
   * Takes a place for a call of an app. The returned function gives it back.
   *
   * @throws Unavailable when the process or the app has too many calls under way
   */
  takePlace(appId: string): () => void {
    const { callsMax, callsOfAppMax } = GATEWAY_LIMITS;
    if (this.#placesTaken >= callsMax) throw new Unavailable("Too many calls of model servers are under way");
    if ((this.#places.get(appId) ?? 0) >= callsOfAppMax) {
      throw new Unavailable("Too many calls of model servers are under way for this app");
    }
    const add = (by: 1 | -1) => {
      const ofApp = (this.#places.get(appId) ?? 0) + by;
      if (ofApp === 0) this.#places.delete(appId);
      else this.#places.set(appId, ofApp);
      this.#placesTaken += by;
    };
    add(1);
    return () => add(-1);
  }

  /**
   * Begins a call that has its hold.
   *
   * @param givePlace gives the place of the call back at its end
   */
  open(
    world: HoldWorldOf,
    hold: Hold,
    ttlMs: number,
    traits: CallTraits,
    givePlace: () => void,
  ): OpenCall {
    if (!this.#isStopAwaited) this.#source.beforeStop(() => this.endAll());
    this.#isStopAwaited = true;
    this.#worlds.set(hold.appId, world);
    const call = new Call(this, hold, ttlMs, traits, givePlace);
    this.#open.add(call);
    this.#count();
    this.#timer ??= setInterval(() => this.#look(), GATEWAY_LIMITS.lookEveryMs);
    return call;
  }

  /** Takes a place for reading on; false if there is none. */
  readsOn(): boolean {
    if (this.counts.readingOn >= GATEWAY_LIMITS.readOnCallsMax) {
      this.counts.readOnRefused += 1;
      return false;
    }
    this.counts.readingOn += 1;
    return true;
  }

  /** Ends every call now; resolves when their holds are settled. */
  async endAll(): Promise<void> {
    for (const call of this.#open) call.stop();
    await Promise.all(this.#settling);
  }

  /** Settles the hold of a call that has ended. */
  settle(call: Call, outcome: GatewayOutcome, settlement: Settlement): Promise<void> {
    this.#open.delete(call);
    call.givePlace();
    this.#count();
    if (this.#open.size === 0 && this.#timer !== null) {
      clearInterval(this.#timer);
      this.#timer = null;
    }
    this.counts.outcomes[outcome] += 1;
    const settled = settleAnywhere(this, call.hold, settlement).then((isSettled) => {
      if (!isSettled) this.counts.unsettled += 1;
      this.#settling.delete(settled);
      if (this.#open.size === 0 && this.#settling.size === 0) this.#worlds.clear();
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
  readonly givePlace: () => void;
  progress = NOTHING_YET;
  readonly #calls: OpenCalls;
  readonly #traits: CallTraits;
  readonly #server = new AbortController();
  readonly #whenLeft: (() => void)[] = [];
  #isStream = false;
  /** The time of leaving and the bytes read since, while the answer is read on; else null. */
  #readOn: { readonly from: number; bytes: number } | null = null;
  #settled: Promise<void> | null = null;
  /** Whether the whole answer has arrived. */
  #isWhole = false;
  #movedAt = performance.now();
  #prolongedAt = this.#movedAt;

  constructor(calls: OpenCalls, hold: Hold, ttlMs: number, traits: CallTraits, givePlace: () => void) {
    this.#calls = calls;
    this.hold = hold;
    this.ttlMs = ttlMs;
    this.#traits = traits;
    this.givePlace = givePlace;
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

  get hasLeft(): boolean {
    return this.#readOn !== null;
  }

  moves(): void {
    this.#movedAt = performance.now();
  }

  receives(bytes: number): void {
    this.moves();
    if (this.#readOn === null) return;
    this.#readOn.bytes += bytes;
    if (this.#readOn.bytes > GATEWAY_LIMITS.readOnBytesMax) this.#endLeft();
  }

  finish(): Promise<void> {
    this.#isWhole = true;
    return soon(this.#end("committed", "The model server answered without any text"));
  }

  leave(): void {
    if (this.hasLeft) return;
    if (this.#settled !== null || this.#traits.readOnMs === 0 || !this.#calls.readsOn()) {
      return this.#endLeft();
    }
    this.#readOn = { from: performance.now(), bytes: 0 };
    for (const work of this.#whenLeft) work();
  }

  whenLeft(work: () => void): void {
    if (this.hasLeft) work();
    else this.#whenLeft.push(work);
  }

  /** Ends the call because this process stops. */
  stop(): void {
    void this.#settle(this.hasLeft ? "left" : "stopped");
    this.#server.abort();
  }

  #endLeft(): void {
    void this.#settle("left");
    this.#server.abort();
  }

  fail(reason: string): Promise<void> {
    return soon(this.#end("estimated", reason));
  }

  /** Charges an answer that has ended; releases one without a report and without any work of the model. */
  #end(outcome: "committed" | "estimated", reason: string): Promise<void> {
    const { hasWork, report } = this.progress;
    if (hasWork || readReport(report) !== null) return this.#settle(this.hasLeft ? "left" : outcome);
    const settlement = { by: "release", reason, errorCode: "model_server_failed" } as const;
    return this.#settleBy("failed", () => settlement);
  }

  /** Prolongs the hold when it is time, and ends a call that stands still. */
  look(now: number): void {
    if (now - this.#movedAt > GATEWAY_LIMITS.stillMs) return this.#endLeft();
    if (this.#readOn !== null && now - this.#readOn.from >= this.#traits.readOnMs) return this.#endLeft();
    if (now - this.#prolongedAt < Math.min(GATEWAY_LIMITS.prolongEveryMs, this.ttlMs / 3)) return;
    this.#prolongedAt = now;
    this.#calls.prolong(this);
  }

  /** Charges what the server reported, else an estimate by the answer so far. */
  #settle(end: "committed" | "estimated" | "left" | "stopped"): Promise<void> {
    const { report, text } = this.progress;
    const reported = readReport(report);
    const hasLeft = end === "left" && !this.#isWhole;
    const images = this.#imagesOf(hasLeft && reported === null);
    // Images that are paid by their number need no report.
    const isEstimate = reported === null && (hasLeft || images === null || this.#traits.holdsTokens);
    const outcome = end === "stopped" ? "left" : isEstimate && end === "committed" ? "estimated" : end;
    return this.#settleBy(outcome, () => ({
      by: "commit",
      usage: numbersOf(reported ?? this.#estimate(end === "left", images)),
      images,
      isEstimate,
      response: text === "" ? null : loggable(text),
    }));
  }

  /** The images to charge; null for a call of text. A caller who leaves before they have come pays for all. */
  #imagesOf(hasLeft: boolean): number | null {
    const { images } = this.#traits.estimate;
    return images === null || hasLeft ? images : this.progress.images ?? 0;
  }

  /** The usage where the server reported none, or only its beginning. The caller's own leaving must not make it cheap. */
  #estimate(hasLeft: boolean, images: number | null): Partial<Usage> {
    const { textBytes, hasReasoned = false, begun } = this.progress;
    const { estimate, hasReasoningPrice, holdsTokens } = this.#traits;
    if (!holdsTokens) return {};
    if (images !== null) return { inputTokens: estimate.inputTokens, outputTokens: tokensOfImages(images) };
    const written = tokensOfBytes(textBytes);
    const plain = { inputTokens: estimate.inputTokens, outputTokens: written };
    const usage = hasLeft ? usageOfLeft(estimate, written, hasReasoned || hasReasoningPrice) : plain;
    const reported = readReport(begun);
    if (reported === null) return usage;
    return { ...reported, outputTokens: larger(reported.outputTokens ?? 0n, usage.outputTokens) };
  }

  #settleBy(outcome: GatewayOutcome, settlement: () => Settlement): Promise<void> {
    if (this.#settled !== null) return this.#settled;
    if (this.#isStream) this.#calls.counts.streams -= 1;
    if (this.hasLeft) this.#calls.counts.readingOn -= 1;
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
