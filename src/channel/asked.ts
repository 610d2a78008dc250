// HTTP requests that this side sent to a peer, until the peer reports that each is over. The body of an answer streams:
// the peer may send as much as the reader has room for, so a slow reader delays only its own stream.

import { CHANNEL_LIMITS } from "../process/channel_limits.ts";
import { integerOf } from "./batches.ts";
import { jsonOf } from "./json.ts";
import {
  bytesAfterId,
  creditFrame,
  fitsFrame,
  HEADER_BYTES,
  idFrame,
  idOf,
  jsonLineFrame,
  KIND,
  ProtocolFault,
  textOf,
  valueOf,
} from "./frames.ts";
import type { Outbox } from "./outbox.ts";
import { ChannelFull, ChannelLost, type StreamedReply } from "./shapes.ts";

/** Bytes that a request's head needs in a frame beside its JSON. */
const LINE_BYTES = HEADER_BYTES + 64;

/** A request that was sent and is not answered yet. */
interface Asked {
  readonly bodyBytes: number;
  readonly resolve: (reply: StreamedReply) => void;
  readonly reject: (reason: unknown) => void;
  readonly unlisten: () => void;
  /** Whether the peer may have received it. */
  hasLeft: boolean;
  isAnswered: boolean;
  /** Cancelled or failed: the rest of the answer is dropped. */
  isGivenUp: boolean;
  /** Null before the head, and without a body. */
  controller: ReadableStreamDefaultController<Uint8Array> | null;
  /** Bytes that the peer may still send. */
  roomBytes: number;
}

/** The asking side of a channel's requests. */
export class AskedRequests {
  readonly #outbox: Outbox;
  readonly #asked = new Map<number, Asked>();
  #lastId = 0;
  #bodyBytes = 0;

  constructor(outbox: Outbox) {
    this.#outbox = outbox;
  }

  get size(): number {
    return this.#asked.size;
  }

  /**
   * Sends a request; resolves with the head of the answer.
   *
   * @throws ChannelFull when it was not sent
   */
  ask(head: unknown, body: Uint8Array, signal: AbortSignal): Promise<StreamedReply> {
    signal.throwIfAborted();
    const id = this.#lastId + 1;
    const json = `[${id},${jsonOf(head)}]`;
    if (
      this.#asked.size >= CHANNEL_LIMITS.requestsMax ||
      this.#bodyBytes + body.length > CHANNEL_LIMITS.requestBytesMax ||
      !this.#outbox.hasRoomFor(json.length + body.length) || !fitsFrame(json, body.length + LINE_BYTES)
    ) throw new ChannelFull("The channel has no room for another request");
    this.#lastId = id;
    this.#bodyBytes += body.length;
    const { promise, resolve, reject } = Promise.withResolvers<StreamedReply>();
    const giveUp = () => this.#giveUp(id, signal.reason);
    signal.addEventListener("abort", giveUp);
    const asked: Asked = {
      bodyBytes: body.length,
      resolve,
      reject,
      unlisten: () => signal.removeEventListener("abort", giveUp),
      hasLeft: false,
      isAnswered: false,
      isGivenUp: false,
      controller: null,
      roomBytes: CHANNEL_LIMITS.streamBytesMax,
    };
    this.#asked.set(id, asked);
    this.#outbox.addStreamFrame(jsonLineFrame(KIND.request, json, body), () => {
      asked.hasLeft = true;
    });
    return promise;
  }

  onHead(payload: Uint8Array): void {
    const value = valueOf(textOf(payload));
    if (!Array.isArray(value) || value.length !== 3 || typeof value[2] !== "boolean") {
      throw new ProtocolFault("Malformed head of a reply");
    }
    const [id, head, hasBody] = value;
    const asked = this.#of(integerOf(id));
    if (asked.isAnswered) throw new ProtocolFault("A reply has two heads");
    asked.isAnswered = true;
    if (!asked.isGivenUp) asked.resolve({ head, body: hasBody ? this.#bodyOf(id, asked) : null });
    if (!hasBody) this.#end(id, asked);
  }

  onChunk(payload: Uint8Array): void {
    const asked = this.#of(idOf(payload));
    const bytes = bytesAfterId(payload);
    asked.roomBytes -= bytes.length;
    if (!asked.isAnswered || asked.roomBytes < 0) throw new ProtocolFault("A reply exceeds its credit");
    if (!asked.isGivenUp && bytes.length > 0) asked.controller?.enqueue(bytes.slice());
  }

  onEnd(payload: Uint8Array): void {
    const id = idOf(payload);
    const asked = this.#of(id);
    if (!asked.isAnswered) throw new ProtocolFault("A reply ended before it began");
    this.#end(id, asked);
    if (!asked.isGivenUp) asked.controller?.close();
  }

  onAbort(payload: Uint8Array): void {
    const id = idOf(payload);
    const asked = this.#of(id);
    this.#end(id, asked);
    this.#fail(asked, new ChannelLost("The peer did not finish its answer"));
  }

  onNotTaken(payload: Uint8Array): void {
    const id = idOf(payload);
    const asked = this.#of(id);
    if (asked.isAnswered) throw new ProtocolFault("A reply to a request that was not taken");
    this.#end(id, asked);
    this.#fail(asked, new ChannelFull("The peer is leaving and did not take the request"));
  }

  /** Ends all requests: as lost, or as unsent if the peer cannot have received them. */
  fail(lost: Error, unsent: Error): void {
    for (const [id, asked] of [...this.#asked]) {
      this.#end(id, asked);
      this.#fail(asked, asked.hasLeft ? lost : unsent);
    }
  }

  #of(id: number): Asked {
    const asked = this.#asked.get(id);
    if (asked === undefined) throw new ProtocolFault("A reply to an unknown request");
    return asked;
  }

  #bodyOf(id: number, asked: Asked): ReadableStream<Uint8Array> {
    const windowBytes = CHANNEL_LIMITS.streamBytesMax;
    return new ReadableStream<Uint8Array>({
      start: (controller) => {
        asked.controller = controller;
      },
      pull: (controller) => {
        // Grants the free room that the peer does not have yet, in large pieces.
        const freeBytes = (controller.desiredSize ?? 0) - asked.roomBytes;
        if (freeBytes < CHANNEL_LIMITS.chunkBytesMax || !this.#asked.has(id)) return;
        asked.roomBytes += freeBytes;
        this.#outbox.addStreamFrame(creditFrame(id, freeBytes));
      },
      cancel: (reason) => this.#giveUp(id, reason),
    }, { highWaterMark: windowBytes, size: (chunk) => chunk.length });
  }

  /** Cancels a request at the peer. The request is over when the peer reports it. */
  #giveUp(id: number, reason: unknown): void {
    const asked = this.#asked.get(id);
    if (asked === undefined || asked.isGivenUp) return;
    this.#fail(asked, reason);
    this.#outbox.addStreamFrame(idFrame(KIND.cancel, id));
  }

  #fail(asked: Asked, reason: unknown): void {
    if (asked.isGivenUp) return;
    asked.isGivenUp = true;
    asked.reject(reason);
    try {
      asked.controller?.error(reason);
    } catch {
      // The reader has cancelled it.
    }
  }

  #end(id: number, asked: Asked): void {
    this.#asked.delete(id);
    this.#bodyBytes -= asked.bodyBytes;
    asked.unlisten();
  }
}
