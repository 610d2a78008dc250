// Frames: the units that travel on a connection. A frame is the length of its payload (4 bytes, big-endian), its kind
// (1 byte) and the payload. The header alone decides whether a frame is allowed, before any payload is kept.

import { CHANNEL_LIMITS } from "../process/channel_limits.ts";
import type { Connection } from "./network.ts";
import type { ChannelStats } from "./shapes.ts";

/** The kinds of frames. */
export const KIND = {
  hello: 1,
  challenge: 2,
  dialerProof: 3,
  listenerProof: 4,
  calls: 5,
  answers: 6,
  notes: 7,
  ping: 8,
  leaving: 9,
  request: 10,
  replyHead: 11,
  replyChunk: 12,
  replyEnd: 13,
  replyAbort: 14,
  cancel: 15,
  credit: 16,
  notTaken: 17,
} as const;

/** The maximum payload of each kind, in bytes; a kind without an entry is not allowed. */
type FrameBounds = Readonly<Record<number, number>>;

const ID_BYTES = 8;
const { frameBytesMax, helloBytesMax, chunkBytesMax } = CHANNEL_LIMITS;

/** Bounds before both sides have proved their identity. */
export const HELLO_BOUNDS: FrameBounds = {
  [KIND.hello]: helloBytesMax,
  [KIND.challenge]: helloBytesMax,
  [KIND.dialerProof]: helloBytesMax,
  [KIND.listenerProof]: helloBytesMax,
};

/** Bounds on an open channel. */
export const CHANNEL_BOUNDS: FrameBounds = {
  [KIND.calls]: frameBytesMax,
  [KIND.answers]: frameBytesMax,
  [KIND.notes]: frameBytesMax,
  [KIND.ping]: 0,
  [KIND.leaving]: 0,
  [KIND.request]: frameBytesMax,
  [KIND.replyHead]: frameBytesMax,
  [KIND.replyChunk]: ID_BYTES + chunkBytesMax,
  [KIND.replyEnd]: ID_BYTES,
  [KIND.replyAbort]: ID_BYTES,
  [KIND.cancel]: ID_BYTES,
  [KIND.credit]: ID_BYTES + 4,
  [KIND.notTaken]: ID_BYTES,
};

/** The peer violated the protocol: its connection is closed, and nothing else happens. */
export class ProtocolFault extends Error {}

/** A frame that arrived; its payload is valid until the next frame is read. */
export interface Frame {
  readonly kind: number;
  readonly payload: Uint8Array;
}

export const HEADER_BYTES = 5;
/** Reserves space for a header in front of a text, so that one call encodes both. */
const HEADER_TEXT = "\0".repeat(HEADER_BYTES);
const encoder = new TextEncoder();
// A byte order mark is kept as text, and bytes that are not UTF-8 are a fault.
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Makes a frame of a text. */
export function textFrame(kind: number, text: string): Uint8Array<ArrayBuffer> {
  const frame = encoder.encode(HEADER_TEXT + text);
  writeHeader(frame, kind);
  return frame;
}

/** Makes a frame of a line of JSON followed by bytes. */
export function jsonLineFrame(kind: number, json: string, bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const head = encoder.encode(`${HEADER_TEXT}${json}\n`);
  const frame = new Uint8Array(head.length + bytes.length);
  frame.set(head);
  frame.set(bytes, head.length);
  writeHeader(frame, kind);
  return frame;
}

/** Makes a frame that concerns one request: its id, followed by bytes. */
export function idFrame(kind: number, id: number, bytes?: Uint8Array): Uint8Array<ArrayBuffer> {
  const frame = new Uint8Array(HEADER_BYTES + ID_BYTES + (bytes?.length ?? 0));
  viewOf(frame).setBigUint64(HEADER_BYTES, BigInt(id));
  if (bytes !== undefined) frame.set(bytes, HEADER_BYTES + ID_BYTES);
  writeHeader(frame, kind);
  return frame;
}

/** Makes a frame that allows the sender of a reply more bytes. */
export function creditFrame(id: number, bytes: number): Uint8Array<ArrayBuffer> {
  const amount = new Uint8Array(4);
  viewOf(amount).setUint32(0, bytes);
  return idFrame(KIND.credit, id, amount);
}

/** The id of the request that a frame concerns. */
export function idOf(payload: Uint8Array): number {
  if (payload.length < ID_BYTES) throw new ProtocolFault("A frame is too short");
  return Number(viewOf(payload).getBigUint64(0));
}

/** The bytes after the id; valid as long as the payload. */
export function bytesAfterId(payload: Uint8Array): Uint8Array {
  return payload.subarray(ID_BYTES);
}

/** The bytes that a credit frame allows. */
export function creditOf(payload: Uint8Array): number {
  if (payload.length !== ID_BYTES + 4) throw new ProtocolFault("Invalid length of a credit");
  return viewOf(payload).getUint32(ID_BYTES);
}

/** Decodes a payload as text. @throws ProtocolFault if it is not UTF-8 */
export function textOf(payload: Uint8Array): string {
  try {
    return decoder.decode(payload);
  } catch {
    throw new ProtocolFault("A payload is not UTF-8");
  }
}

/** Parses a JSON text. @throws ProtocolFault if it is not JSON */
export function valueOf(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw new ProtocolFault("A payload is not JSON");
  }
}

/** Splits a payload into its first line, parsed as JSON, and the bytes after it; valid as long as the payload. */
export function jsonLineOf(payload: Uint8Array): { value: unknown; bytes: Uint8Array } {
  const end = payload.indexOf(0x0a);
  if (end < 0) throw new ProtocolFault("A payload without a line of JSON");
  return { value: valueOf(textOf(payload.subarray(0, end))), bytes: payload.subarray(end + 1) };
}

/** Whether a JSON text fits into a frame beside other bytes. */
export function fitsFrame(text: string, moreBytes = 0): boolean {
  const room = frameBytesMax - moreBytes;
  // A UTF-16 unit is at most three bytes of UTF-8; only a text that may be too long is encoded to be counted.
  return text.length * 3 <= room || text.length <= room && encoder.encode(text).length <= room;
}

function writeHeader(frame: Uint8Array, kind: number): void {
  const length = frame.length - HEADER_BYTES;
  frame[0] = length >>> 24;
  frame[1] = length >>> 16;
  frame[2] = length >>> 8;
  frame[3] = length;
  frame[4] = kind;
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

const NO_BYTES = new Uint8Array(0);

/** Cuts the bytes of a connection into frames. */
export class FrameReader {
  readonly #connection: Connection;
  readonly #stats: ChannelStats;
  /** Bytes that arrived and were not returned yet: a part of the last read, or of `#kept`. */
  #bytes: Uint8Array = NO_BYTES;
  /** Buffer for a frame that arrives in pieces. */
  #kept: Uint8Array = NO_BYTES;
  /** Whether `#bytes` is a part of `#kept`. */
  #isKept = false;
  /** The number of reads that returned bytes. */
  reads = 0;

  constructor(connection: Connection, stats: ChannelStats) {
    this.#connection = connection;
    this.#stats = stats;
  }

  /**
   * Reads the next frame; null when the other side ended between two frames.
   *
   * @throws ProtocolFault for a frame that is not allowed; the error of the connection when it broke
   */
  async next(bounds: FrameBounds): Promise<Frame | null> {
    for (;;) {
      const needed = this.#neededBytes(bounds);
      if (this.#bytes.length >= needed) return this.#take(needed);
      if (this.#bytes.length > 0) this.#keep();
      else if (this.#kept.length > CHANNEL_LIMITS.keptBytesMax) this.#kept = NO_BYTES;
      const bytes = await this.#connection.read();
      if (bytes === null) {
        if (this.#bytes.length > 0) throw new ProtocolFault("The connection ended within a frame");
        return null;
      }
      this.reads++;
      this.#stats.bytesReceived += bytes.length;
      if (this.#bytes.length === 0) {
        this.#bytes = bytes;
        this.#isKept = false;
      } else {
        this.#append(bytes);
      }
    }
  }

  /** The size of the next frame with its header, or of a header while that is incomplete. */
  #neededBytes(bounds: FrameBounds): number {
    const bytes = this.#bytes;
    if (bytes.length < HEADER_BYTES) return HEADER_BYTES;
    const bound = bounds[bytes[4] as number];
    if (bound === undefined) throw new ProtocolFault(`A frame of kind ${bytes[4]} is not allowed here`);
    const length = viewOf(bytes).getUint32(0);
    if (length > bound) throw new ProtocolFault(`A frame of kind ${bytes[4]} has ${length} bytes`);
    return HEADER_BYTES + length;
  }

  #take(length: number): Frame {
    const bytes = this.#bytes;
    this.#bytes = bytes.subarray(length);
    this.#stats.framesReceived++;
    return { kind: bytes[4] as number, payload: bytes.subarray(HEADER_BYTES, length) };
  }

  /** Copies an incomplete frame out of the read buffer, which the next read overwrites. */
  #keep(): void {
    const piece = this.#bytes;
    const at = piece.byteOffset;
    if (this.#isKept && at === 0) return;
    if (this.#isKept && this.#kept.length <= CHANNEL_LIMITS.keptBytesMax) {
      this.#kept.copyWithin(0, at, at + piece.length);
    } else {
      if (this.#isKept || this.#kept.length < piece.length) {
        this.#kept = new Uint8Array(roomFor(piece.length));
      }
      this.#kept.set(piece);
    }
    this.#bytes = this.#kept.subarray(0, piece.length);
    this.#isKept = true;
  }

  #append(bytes: Uint8Array): void {
    const has = this.#bytes.length;
    const length = has + bytes.length;
    // The buffer grows with the bytes that have arrived, never with the length in a header.
    if (this.#kept.length < length) {
      const larger = new Uint8Array(roomFor(length));
      larger.set(this.#bytes);
      this.#kept = larger;
    }
    this.#kept.set(bytes, has);
    this.#bytes = this.#kept.subarray(0, length);
  }
}

/** Twice what is needed, so that a frame of many pieces is copied a few times only. */
function roomFor(length: number): number {
  return Math.max(1_024, length * 2);
}
