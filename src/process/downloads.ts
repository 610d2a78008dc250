// Downloads: documents that are made while they are sent. Each person and each app has a share of those that are open. A
// reader that takes nothing is ended, so that it keeps its share, and a page of rows in memory, no longer than that. Long
// answers that are made already are sent in the same way.

import { DOWNLOAD_LIMITS } from "./limits.ts";
import { brokenBody } from "./log.ts";

/** Counters of downloads; they live as long as the process. */
export class DownloadCounts {
  open = 0;
  /** Downloads above a share. */
  refused = 0;
  /** Ended ones: sent to the end, given up by their reader, ended because their reader took nothing. */
  readonly ended = { whole: 0, left: 0, still: 0, failed: 0 };
}

type DownloadEnd = keyof DownloadCounts["ended"];

/** Whose shares a download takes. */
interface DownloadOwner {
  readonly app: string;
  /** The person, unique among all apps. */
  readonly person: string;
}

const ENCODER = new TextEncoder();

/** All open downloads of a process. */
export class Downloads {
  readonly counts: DownloadCounts;
  readonly #byApp = new Map<string, number>();
  readonly #byPerson = new Map<string, number>();

  constructor(counts: DownloadCounts = new DownloadCounts()) {
    this.counts = counts;
  }

  /** Takes the shares of a download; null where one of them is full. */
  take({ app, person }: DownloadOwner): Download | null {
    const { ofAppMax, ofPersonMax } = DOWNLOAD_LIMITS;
    if ((this.#byApp.get(app) ?? 0) >= ofAppMax || (this.#byPerson.get(person) ?? 0) >= ofPersonMax) {
      this.counts.refused += 1;
      return null;
    }
    const add = (by: number) => {
      addTo(this.#byApp, app, by);
      addTo(this.#byPerson, person, by);
      this.counts.open += by;
    };
    add(1);
    return new Download((end) => {
      add(-1);
      this.counts.ended[end] += 1;
    });
  }
}

function addTo(counts: Map<string, number>, name: string, by: number): void {
  const count = (counts.get(name) ?? 0) + by;
  if (count === 0) counts.delete(name);
  else counts.set(name, count);
}

/** One download, from the taking of its shares to its end. */
export class Download {
  readonly #onEnd: (end: DownloadEnd) => void;
  #isOpen = true;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** @param onEnd called once */
  constructor(onEnd: (end: DownloadEnd) => void) {
    this.#onEnd = onEnd;
  }

  /** Gives the shares back; a later end changes nothing. */
  end(end: DownloadEnd): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    clearTimeout(this.#timer);
    this.#onEnd(end);
  }

  /**
   * Returns a body of pieces. The next piece is made when the reader has taken the one before. Small parts of it
   * are sent one at a time, so that a slow reader is seen to take something.
   */
  stream(pieces: AsyncGenerator<string | Uint8Array>): ReadableStream<Uint8Array> {
    let piece: Uint8Array = new Uint8Array();
    let sent = 0;
    const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
      clearTimeout(this.#timer);
      try {
        while (sent >= piece.length) {
          const { done, value } = await pieces.next();
          if (done === true) {
            this.end("whole");
            return controller.close();
          }
          [piece, sent] = [typeof value === "string" ? ENCODER.encode(value) : value, 0];
        }
      } catch (error) {
        this.end("failed");
        throw error;
      }
      if (!this.#isOpen) return;
      controller.enqueue(piece.subarray(sent, sent += DOWNLOAD_LIMITS.chunkBytes));
      this.#waitForReader(controller, pieces);
    };
    return new ReadableStream({
      start: (controller) => this.#waitForReader(controller, pieces),
      pull,
      cancel: async () => {
        this.end("left");
        await pieces.return(undefined);
      },
    }, { highWaterMark: 0 });
  }

  #waitForReader(
    controller: ReadableStreamDefaultController<Uint8Array>,
    pieces: AsyncGenerator<unknown>,
  ): void {
    this.#timer = setTimeout(() => {
      this.end("still");
      controller.error(brokenBody("An answer was ended: its reader takes nothing"));
      void pieces.return(undefined);
    }, DOWNLOAD_LIMITS.readerGoneMs);
  }
}

/** Whether an answer is too long to be left to the runtime, which keeps all of it until its reader has taken it. */
export function isLong({ length }: string | Uint8Array): boolean {
  return length > DOWNLOAD_LIMITS.longBytes;
}

/**
 * Returns a body that takes no share.
 *
 * @param made its pieces, or all of it, which may be the bytes of many answers
 */
export function inParts(made: AsyncGenerator<string | Uint8Array> | Uint8Array): ReadableStream<Uint8Array> {
  return new Download(() => {}).stream(made instanceof Uint8Array ? only(made) : made);
}

async function* only(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
