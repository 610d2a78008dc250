// Reads a stream of server-sent events, one event at a time.

import assert from "node:assert/strict";
import type { Hono } from "hono";

/** An event as it came; a comment has no name. */
interface StreamEvent {
  readonly name: string | null;
  // deno-lint-ignore no-explicit-any -- tests look at whatever came
  readonly data: any;
}

/** Whether an answer is a stream of events. */
export function isStream(headers: Headers): boolean {
  return headers.get("content-type") === "text/event-stream";
}

/** The text of an answer; of a stream its first event, since it does not end. */
export async function textOf(response: Response): Promise<string> {
  if (!isStream(response.headers) || response.body === null) {
    return await response.text();
  }
  let text = "";
  // Leaving the loop cancels the stream.
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    text += piece;
    if (text.includes("\n\n")) break;
  }
  return text;
}

/** The reader of one stream. */
export class EventReader implements AsyncDisposable {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #decoder = new TextDecoder();
  #text = "";

  constructor(body: ReadableStream<Uint8Array>) {
    this.#reader = body.getReader();
  }

  /** Opens a stream of an app in this process, which must answer with one. */
  static async open(
    http: Pick<Hono, "fetch">,
    path: string,
    key: string,
    headers: Record<string, string> = {},
  ): Promise<EventReader> {
    const response = await http.fetch(
      new Request(`http://service.test/api/v1${path}`, {
        headers: { authorization: `Bearer ${key}`, ...headers },
      }),
    );
    if (!isStream(response.headers)) {
      assert.fail(`${path} answered ${response.status} ${await response.text()}`);
    }
    return new EventReader(response.body as ReadableStream<Uint8Array>);
  }

  /** The next event or comment; null after the last one. */
  async next(): Promise<StreamEvent | null> {
    while (true) {
      const end = this.#text.indexOf("\n\n");
      if (end >= 0) {
        const lines = this.#text.slice(0, end).split("\n");
        this.#text = this.#text.slice(end + 2);
        const member = (name: string) => lines.find((line) => line.startsWith(name))?.slice(name.length);
        const data = member("data: ");
        return { name: member("event: ") ?? null, data: data === undefined ? null : JSON.parse(data) };
      }
      const { done, value } = await this.#reader.read();
      if (done) return null;
      this.#text += this.#decoder.decode(value, { stream: true });
    }
  }

  /** The data of the next event, which must have a name. */
  // deno-lint-ignore no-explicit-any -- tests look at whatever came
  async data(name = "usage"): Promise<any> {
    let event = await this.next();
    while (event !== null && event.name === null) event = await this.next();
    assert.equal(event?.name, name, JSON.stringify(event));
    return event?.data;
  }

  /** Reads states until one is as wanted; answers it. */
  // deno-lint-ignore no-explicit-any -- tests look at whatever came
  async until(isWanted: (usage: any) => boolean): Promise<any> {
    while (true) {
      const usage = await this.data();
      if (isWanted(usage)) return usage;
    }
  }

  /** Checks that the stream reports why it ends, and ends. */
  async ends(reason: string): Promise<void> {
    assert.deepEqual(await this.data("end"), { reason });
    assert.equal(await this.next(), null);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#reader.cancel().catch(() => {});
  }
}
