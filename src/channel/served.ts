// HTTP requests of a peer that this side serves. Pieces of an answer are sent only as far as the peer has room for them,
// and no more of the answer is in memory.

import { CHANNEL_LIMITS } from "../process/channel_limits.ts";
import { integerOf } from "./batches.ts";
import {
  creditOf,
  fitsFrame,
  HEADER_BYTES,
  idFrame,
  idOf,
  jsonLineOf,
  KIND,
  ProtocolFault,
  textFrame,
} from "./frames.ts";
import type { Outbox } from "./outbox.ts";
import type { StreamedReply } from "./shapes.ts";

/** Answers a request. */
type Serve = (head: unknown, body: Uint8Array, signal: AbortSignal) => Promise<StreamedReply>;

/** A request that is being served. */
interface Served {
  readonly id: number;
  readonly bodyBytes: number;
  readonly unwanted: AbortController;
  /** Bytes that the peer still has room for. */
  creditBytes: number;
  /** Wakes the sending of the answer when there is credit, or when the request is cancelled. */
  wake: (() => void) | null;
}

/** The serving side of a channel's requests. */
export class ServedRequests {
  readonly #outbox: Outbox;
  readonly #serve: Serve;
  readonly #served = new Map<number, Served>();
  #bodyBytes = 0;

  constructor(outbox: Outbox, serve: Serve) {
    this.#outbox = outbox;
    this.#serve = serve;
  }

  get size(): number {
    return this.#served.size;
  }

  /** @param isTaken false to answer that the request did not run */
  onRequest(payload: Uint8Array, isTaken: boolean): void {
    const { value, bytes } = jsonLineOf(payload);
    if (!Array.isArray(value) || value.length !== 2) throw new ProtocolFault("Malformed request");
    const id = integerOf(value[0]);
    this.#bodyBytes += bytes.length;
    if (
      id < 0 || this.#served.has(id) || this.#served.size >= CHANNEL_LIMITS.requestsMax ||
      this.#bodyBytes > CHANNEL_LIMITS.requestBytesMax
    ) throw new ProtocolFault("Invalid request id, or too many requests");
    const served: Served = {
      id,
      bodyBytes: bytes.length,
      unwanted: new AbortController(),
      creditBytes: CHANNEL_LIMITS.streamBytesMax,
      wake: null,
    };
    this.#served.set(id, served);
    if (isTaken) void this.#answer(served, value[1], bytes.slice());
    else this.#end(served, KIND.notTaken);
  }

  onCancel(payload: Uint8Array): void {
    const served = this.#served.get(idOf(payload));
    // The answer may have ended before its cancellation arrived.
    if (served !== undefined) this.#abort(served, "The peer no longer wants the answer");
  }

  onCredit(payload: Uint8Array): void {
    const served = this.#served.get(idOf(payload));
    if (served === undefined) return;
    served.creditBytes += creditOf(payload);
    if (served.creditBytes > CHANNEL_LIMITS.streamBytesMax) {
      throw new ProtocolFault("Too much credit");
    }
    served.wake?.();
  }

  /** Aborts all requests. */
  fail(): void {
    for (const served of [...this.#served.values()]) this.#abort(served, "The channel was lost");
  }

  async #answer(served: Served, head: unknown, body: Uint8Array): Promise<void> {
    const { id, unwanted: { signal } } = served;
    try {
      const reply = await this.#serve(head, body, signal);
      const json = `[${id},${JSON.stringify(reply.head) ?? "null"},${reply.body !== null}]`;
      if (signal.aborted || !fitsFrame(json, HEADER_BYTES)) {
        await reply.body?.cancel(signal.reason);
        return this.#end(served, KIND.replyAbort);
      }
      this.#outbox.addStreamFrame(textFrame(KIND.replyHead, json));
      if (reply.body === null) return this.#end(served, null);
      const isWhole = await this.#send(served, reply.body);
      this.#end(served, isWhole ? KIND.replyEnd : KIND.replyAbort);
    } catch {
      this.#end(served, KIND.replyAbort);
    }
  }

  /** Sends a body; returns false when the request is cancelled. @throws what the body throws */
  async #send(served: Served, body: ReadableStream<Uint8Array>): Promise<boolean> {
    const { id, unwanted: { signal } } = served;
    const reader = body.getReader();
    const cancel = () => void reader.cancel(signal.reason).catch(() => {});
    signal.addEventListener("abort", cancel);
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (signal.aborted) return false;
        if (done) return true;
        for (let at = 0; at < value.length;) {
          await this.#room(served);
          if (signal.aborted) return false;
          const bytes = Math.min(served.creditBytes, CHANNEL_LIMITS.chunkBytesMax, value.length - at);
          served.creditBytes -= bytes;
          this.#outbox.addStreamFrame(idFrame(KIND.replyChunk, id, value.subarray(at, at + bytes)));
          at += bytes;
        }
      }
    } finally {
      signal.removeEventListener("abort", cancel);
    }
  }

  /** Waits until peer and outbox have room for a piece, or the request is cancelled. */
  async #room(served: Served): Promise<void> {
    const { signal } = served.unwanted;
    for (let room = this.#outbox.streamRoom(); room !== null && !signal.aborted;) {
      await room;
      room = this.#outbox.streamRoom();
    }
    if (served.creditBytes > 0 || signal.aborted) return;
    await new Promise<void>((resolve) => {
      served.wake = resolve;
    });
    served.wake = null;
  }

  #abort(served: Served, reason: string): void {
    served.unwanted.abort(new DOMException(reason, "AbortError"));
    served.wake?.();
  }

  /** Ends a request, and notifies the peer by a frame of this kind; null sends no frame. */
  #end(served: Served, kind: number | null): void {
    if (!this.#served.delete(served.id)) return;
    this.#bodyBytes -= served.bodyBytes;
    if (kind !== null) this.#outbox.addStreamFrame(idFrame(kind, served.id));
  }
}
