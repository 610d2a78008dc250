// Reads one HTTP/1.1 answer at a time from a connection, by content-length and in bytes. It owns just what the load
// generator needs: status, where the body lies, and finding short ASCII texts in it without decoding anything. A
// server that sends chunks or closes early is an error here, not a case.

const CR = 13;
const LF = 10;
const ZERO = 48;
const LENGTH_NAME = bytes("content-length:");

/** The bytes of an ASCII text. */
export function bytes(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}

/** Where `wanted` starts in `source` between `from` and `to`, or -1. */
export function find(source: Uint8Array, wanted: Uint8Array, from: number, to: number): number {
  const first = wanted[0]!;
  const last = to - wanted.length;
  for (let at = from; at <= last; at++) {
    if (source[at] !== first) continue;
    let same = 1;
    while (same < wanted.length && source[at + same] === wanted[same]) same++;
    if (same === wanted.length) return at;
  }
  return -1;
}

/** The answer that lies in the buffer of a reader, valid until its next read. */
export class AnswerReader {
  /** Bytes of the answer; the body is `buffer[bodyStart .. bodyEnd)`. */
  buffer: Uint8Array<ArrayBuffer> = new Uint8Array(16 * 1024);
  status = 0;
  bodyStart = 0;
  bodyEnd = 0;
  readonly #connection: Deno.TcpConn;

  constructor(connection: Deno.TcpConn) {
    this.#connection = connection;
  }

  /** Reads one whole answer. */
  async read(): Promise<void> {
    let filled = 0;
    this.bodyEnd = 0;
    this.bodyStart = 0;
    while (this.bodyEnd === 0 || filled < this.bodyEnd) {
      if (filled === this.buffer.length) this.#grow();
      const got = await this.#connection.read(filled === 0 ? this.buffer : this.buffer.subarray(filled));
      if (got === null) throw new Error("the server closed a kept-alive connection");
      filled += got;
      if (this.bodyEnd === 0) this.#readHead(filled);
    }
    if (filled !== this.bodyEnd) throw new Error("the server sent more than one answer to one request");
  }

  /** The body as text; for failures only. */
  bodyText(): string {
    return new TextDecoder().decode(this.buffer.subarray(this.bodyStart, this.bodyEnd));
  }

  #grow(): void {
    if (this.buffer.length >= 1024 * 1024) throw new Error("an answer is larger than 1 MiB");
    const larger = new Uint8Array(this.buffer.length * 2);
    larger.set(this.buffer);
    this.buffer = larger;
  }

  #readHead(filled: number): void {
    const buffer = this.buffer;
    let length = -1;
    for (let i = 0; i < filled; i++) {
      if (buffer[i] !== LF) continue;
      if (buffer[i + 1] === CR && i + 2 < filled) {
        if (length < 0) throw new Error("an answer came without content-length");
        this.status = (buffer[9]! - ZERO) * 100 + (buffer[10]! - ZERO) * 10 + (buffer[11]! - ZERO);
        this.bodyStart = i + 3;
        this.bodyEnd = this.bodyStart + length;
        return;
      }
      if (length < 0) length = this.#lengthAt(i + 1, filled);
    }
  }

  /** The value of a content-length line that starts here, or -1 when it is another line. */
  #lengthAt(start: number, filled: number): number {
    const buffer = this.buffer;
    for (let i = 0; i < LENGTH_NAME.length; i++) {
      // Setting bit 5 makes letters lower case and does not change "-" and ":".
      if ((buffer[start + i]! | 32) !== LENGTH_NAME[i]) return -1;
    }
    let value = 0;
    for (let i = start + LENGTH_NAME.length; i < filled; i++) {
      const digit = buffer[i]! - ZERO;
      if (digit >= 0 && digit <= 9) value = value * 10 + digit;
      else if (buffer[i] === CR) return value;
    }
    return -1;
  }
}
