// Reads server-sent events by the HTML standard: from the body of an answer, since `EventSource` cannot send a key, and as
// they pass through to another reader.

/** An event. */
export interface ServerEvent {
  readonly name: string;
  readonly data: string;
}

/**
 * The events of a body, each when it arrives.
 *
 * @param signal ends them
 * @param onBytes called on each arrival of bytes, also of a comment
 */
export async function* eventsOf(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
  onBytes: () => void,
): AsyncGenerator<ServerEvent, void> {
  const reader = body.getReader();
  const leave = () => void reader.cancel().catch(() => {});
  signal.addEventListener("abort", leave, { once: true });
  const decoder = new TextDecoder("utf-8", { ignoreBOM: false });
  let text = "";
  let isAfterCr = false;
  let name = "";
  let data: string[] = [];
  try {
    while (true) {
      const { done, value } = await reader.read();
      if (done) return;
      onBytes();
      const piece = decoder.decode(value, { stream: true });
      // A carriage return at the end was a line's end, whether a line feed follows or not.
      text += isAfterCr && piece.startsWith("\n") ? piece.slice(1) : piece;
      if (piece !== "") isAfterCr = piece.endsWith("\r");
      const lines = text.split(/\r\n?|\n/);
      text = lines.pop() ?? "";
      for (const line of lines) {
        if (line === "") {
          if (data.length > 0) yield { name: name === "" ? "message" : name, data: data.join("\n") };
          name = "";
          data = [];
          continue;
        }
        const [, field = "", content = ""] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
        if (field === "event") name = content;
        else if (field === "data") data.push(content);
      }
    }
  } finally {
    signal.removeEventListener("abort", leave);
    leave();
  }
}

const LF = 10;
const CR = 13;
// Each decoder states its option, because the embedded store changes the default in its process.
const WITHOUT_MARK = new TextDecoder("utf-8", { ignoreBOM: false });
const WITH_MARK = new TextDecoder("utf-8", { ignoreBOM: true });

/** Reads the events of a stream while its bytes pass. A line ends with CR LF, LF or CR; an event with an empty one. */
export class PassingEvents {
  #isFirst = true;
  /** Whether the last event ended with a CR as the last byte: an LF may follow that belongs to it. */
  #isAfterCr = false;

  /**
   * The indexes after the ends of events, in order. Bytes after the last one are to be passed again, with those that follow.
   * An LF that came after the CR of its event is an end of its own, after one byte.
   *
   * @param from where bytes begin that were not searched; the three before them may be the first part of an end
   */
  *endsIn(bytes: Uint8Array, from: number): Generator<number, void> {
    if (bytes.byteLength === 0) return;
    const hasRest = this.#isAfterCr && bytes[0] === LF;
    this.#isAfterCr = false;
    if (hasRest) yield 1;
    let place = Math.max(hasRest ? 1 : 0, from - 3);
    let lf = bytes.indexOf(LF, place);
    let cr = bytes.indexOf(CR, place);
    while (lf >= 0 || cr >= 0) {
      const next = afterLine(bytes, lf < 0 || cr >= 0 && cr < lf ? cr : lf);
      place = next;
      if (bytes[next] === LF || bytes[next] === CR) {
        place = afterLine(bytes, next);
        this.#isAfterCr = place === bytes.byteLength && bytes[place - 1] === CR;
        yield place;
      }
      if (lf >= 0 && lf < place) lf = bytes.indexOf(LF, place);
      if (cr >= 0 && cr < place) cr = bytes.indexOf(CR, place);
    }
  }

  /** The data of the next event; "" for a comment. Only the beginning of the stream may have a byte order mark. */
  dataOf(event: Uint8Array): string {
    const text = (this.#isFirst ? WITHOUT_MARK : WITH_MARK).decode(event);
    this.#isFirst = false;
    const lines = text.split(/\r\n|\n|\r/).filter((line) => line === "data" || line.startsWith("data:"));
    return lines.map((line) => line.slice(line[5] === " " ? 6 : 5)).join("\n");
  }
}

/** The index after the end of a line, which begins at an index. */
function afterLine(bytes: Uint8Array, at: number): number {
  return bytes[at] === CR && bytes[at + 1] === LF ? at + 2 : at + 1;
}
