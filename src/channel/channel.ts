// One open channel to a node that has proved its identity: calls, HTTP requests and notifications both ways, until the
// connection breaks, the peer is silent or violates the protocol, or this side closes it. A call is sent once and never
// again. When a channel ends, all of its pending calls are rejected.

import { CHANNEL_LIMITS } from "../process/channel_limits.ts";
import { AskedRequests } from "./asked.ts";
import { answerJson, type CallOutcome, noAnswerJson, readAnswers, readCalls, readNotes } from "./batches.ts";
import {
  CHANNEL_BOUNDS,
  fitsFrame,
  type Frame,
  type FrameReader,
  HEADER_BYTES,
  KIND,
  ProtocolFault,
  textFrame,
} from "./frames.ts";
import { jsonOf } from "./json.ts";
import type { Connection } from "./network.ts";
import { Outbox } from "./outbox.ts";
import { ServedRequests } from "./served.ts";
import {
  ChannelFull,
  ChannelLost,
  type ChannelStats,
  type Receiver,
  type Reply,
  type StreamedReply,
} from "./shapes.ts";
import { rest } from "../process/rest.ts";

/** The parts of a channel. */
interface ChannelParts {
  readonly connection: Connection;
  readonly reader: FrameReader;
  /** The term of the peer. */
  readonly term: number;
  readonly receiver: Receiver;
  readonly stats: ChannelStats;
  /** Called once, if the channel ends without `close`. */
  readonly onEnd: () => void;
}

/** A call that waits for its answer. */
interface Pending {
  readonly resolve: (reply: Reply) => void;
  readonly reject: (reason: Error) => void;
  readonly chars: number;
}

/** Bytes that one call or answer needs in a frame beside its JSON. */
const BATCH_BYTES = HEADER_BYTES + 64;
/** How often a channel that is being closed checks whether all calls have ended. */
const LEAVE_LOOK_MS = 10;

/** An open channel. */
export class Channel {
  readonly term: number;
  readonly openedAt = performance.now();
  readonly #parts: ChannelParts;
  readonly #outbox: Outbox;
  readonly #asked: AskedRequests;
  readonly #served: ServedRequests;
  readonly #pending = new Map<number, Pending>();
  readonly #ticks: ReturnType<typeof setInterval>;
  #lastId = 0;
  #pendingChars = 0;
  /** Calls of the peer that this side has not answered yet. */
  #unanswered = 0;
  /** Ticks since the last read, and ticks of a write that makes no progress. */
  #silentTicks = 0;
  #stuckTicks = 0;
  #readsSeen = 0;
  #writesSeen = 0;
  #hasPeerLeft = false;
  #isLeaving = false;
  #isEnded = false;

  constructor(parts: ChannelParts) {
    const { connection, stats, receiver, term } = parts;
    this.#parts = parts;
    this.term = term;
    this.#outbox = new Outbox(connection, stats, (error) => this.#end(`The connection broke: ${error}`));
    this.#asked = new AskedRequests(this.#outbox);
    this.#served = new ServedRequests(
      this.#outbox,
      (head, body, signal) => receiver.onRequest(head, body, term, signal),
    );
    this.#ticks = setInterval(() => this.#tick(), CHANNEL_LIMITS.pingEveryMs);
  }

  /** Whether new calls may be made. */
  get isOpen(): boolean {
    return !this.#isEnded && !this.#isLeaving && !this.#hasPeerLeft;
  }

  /** Reads until the channel ends. */
  async read(): Promise<void> {
    const { reader, stats } = this.#parts;
    try {
      for (;;) {
        const frame = await reader.next(CHANNEL_BOUNDS);
        if (this.#isEnded) return;
        if (frame === null) return this.#end("The peer closed it");
        this.#onFrame(frame);
      }
    } catch (error) {
      if (error instanceof ProtocolFault) stats.refusedPeers++;
      this.#end(`${error}`);
    }
  }

  call(call: unknown): Promise<Reply> {
    const json = jsonOf(call);
    if (
      this.#pending.size >= CHANNEL_LIMITS.callsMax ||
      this.#pendingChars + json.length > CHANNEL_LIMITS.callCharsMax ||
      !this.#outbox.hasRoomFor(json.length) || !fitsFrame(json, BATCH_BYTES)
    ) throw new ChannelFull(`The channel to process ${this.term} has no room for another call`);
    const id = ++this.#lastId;
    this.#pendingChars += json.length;
    this.#outbox.addCall(id, json);
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject, chars: json.length });
    });
  }

  request(head: unknown, body: Uint8Array, signal: AbortSignal): Promise<StreamedReply> {
    return this.#asked.ask(head, body, signal);
  }

  note(json: string): void {
    if (this.#outbox.hasRoomFor(json.length) && fitsFrame(json, BATCH_BYTES)) this.#outbox.addNote(json);
  }

  /** Takes no new calls of either side, waits a short time for those in flight, and closes. */
  async leave(): Promise<void> {
    this.#isLeaving = true;
    this.#outbox.addStreamFrame(textFrame(KIND.leaving, ""));
    const isBusy = () =>
      this.#pending.size + this.#unanswered + this.#asked.size + this.#served.size > 0 ||
      !this.#outbox.isIdle;
    for (
      let leftMs = CHANNEL_LIMITS.leaveMs;
      leftMs > 0 && isBusy() && !this.#isEnded;
      leftMs -= LEAVE_LOOK_MS
    ) {
      await rest(LEAVE_LOOK_MS);
    }
    this.close();
  }

  /** Closes at once, without `onEnd`; calls in flight are lost. */
  close(): void {
    this.#end("This process closed it", false);
  }

  #end(reason: string, isReported = true): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    clearInterval(this.#ticks);
    this.#parts.connection.close();
    this.#outbox.stop();
    const message = `The channel to process ${this.term} was lost. ${reason}`;
    const lost = new ChannelLost(message);
    const unsent = new ChannelFull(message);
    const pending = [...this.#pending];
    this.#pending.clear();
    for (const [id, { reject }] of pending) reject(id > this.#outbox.lastCallLeft ? unsent : lost);
    this.#asked.fail(lost, unsent);
    this.#served.fail();
    if (isReported) this.#parts.onEnd();
  }

  /**
   * Pings the peer, and closes when the peer has long sent or read nothing. It counts ticks instead of time: after this
   * process was frozen itself, the peer gets another chance to be heard.
   */
  #tick(): void {
    const { reads } = this.#parts.reader;
    const { writes, isWriting } = this.#outbox;
    this.#silentTicks = reads === this.#readsSeen ? this.#silentTicks + 1 : 0;
    this.#stuckTicks = isWriting && writes === this.#writesSeen ? this.#stuckTicks + 1 : 0;
    this.#readsSeen = reads;
    this.#writesSeen = writes;
    const most = CHANNEL_LIMITS.silentPingsMax;
    if (this.#silentTicks >= most) this.#end("The peer is silent");
    else if (this.#stuckTicks >= most) this.#end("The peer reads nothing");
    else this.#outbox.ping();
  }

  #onFrame({ kind, payload }: Frame): void {
    switch (kind) {
      case KIND.calls:
        return readCalls(payload, (id, call) => this.#onCall(id, call));
      case KIND.answers:
        return readAnswers(payload, (id, outcome, head, body) => this.#onAnswer(id, outcome, head, body));
      case KIND.notes:
        for (const note of readNotes(payload)) this.#parts.receiver.onNote(note, this.term);
        return;
      case KIND.leaving:
        this.#hasPeerLeft = true;
        return;
      case KIND.request:
        return this.#served.onRequest(payload, !this.#isLeaving);
      case KIND.cancel:
        return this.#served.onCancel(payload);
      case KIND.credit:
        return this.#served.onCredit(payload);
      case KIND.replyHead:
        return this.#asked.onHead(payload);
      case KIND.replyChunk:
        return this.#asked.onChunk(payload);
      case KIND.replyEnd:
        return this.#asked.onEnd(payload);
      case KIND.replyAbort:
        return this.#asked.onAbort(payload);
      case KIND.notTaken:
        return this.#asked.onNotTaken(payload);
    }
  }

  #onCall(id: number, call: unknown): void {
    if (++this.#unanswered > CHANNEL_LIMITS.callsMax) throw new ProtocolFault("Too many calls");
    if (this.#isLeaving) return this.#answerNot(id, "notTaken");
    this.#parts.receiver.onCall(call, this.term).then(
      (reply) => this.#answer(id, reply),
      () => this.#answerNot(id, "lost"),
    );
  }

  #answer(id: number, reply: Reply): void {
    let json: string | null = null;
    let body = "";
    try {
      body = reply.body;
      const head = JSON.stringify(reply.head) ?? "null";
      if (this.#outbox.hasRoomFor(head.length + body.length) && fitsFrame(head + body, BATCH_BYTES)) {
        json = answerJson(id, head, body);
      }
    } catch {
      // An answer that cannot be written is lost.
    }
    if (json === null) return this.#answerNot(id, "lost");
    this.#unanswered--;
    this.#outbox.addAnswer(json, body);
  }

  #answerNot(id: number, outcome: "lost" | "notTaken"): void {
    this.#unanswered--;
    this.#outbox.addAnswer(noAnswerJson(id, outcome), "");
  }

  #onAnswer(id: number, outcome: CallOutcome, head: unknown, body: string): void {
    const pending = this.#pending.get(id);
    if (pending === undefined) throw new ProtocolFault("An answer to an unknown call");
    this.#pending.delete(id);
    this.#pendingChars -= pending.chars;
    if (outcome === "answered") pending.resolve({ head, body });
    else if (outcome === "lost") pending.reject(new ChannelLost(`Process ${this.term} has no answer`));
    else pending.reject(new ChannelFull(`Process ${this.term} is leaving and did not take the call`));
  }
}
