// Streams apart from their content: their pace, slow readers, and sources that fail. The bounds are shorter here than in
// the program.

import assert from "node:assert/strict";
import { STREAM_LIMITS } from "../../src/process/limits.ts";
import { type StreamEnd, type StreamNext, Streams, type StreamSource } from "../../src/process/streams.ts";
import { EventReader } from "../support/event_stream.ts";

/** A source that answers as a test says, and counts the questions under way. */
class Script implements StreamSource {
  asked = 0;
  underWay = 0;
  mostUnderWay = 0;
  reason: StreamEnd | null = null;
  readonly #answers: (() => StreamNext | Promise<StreamNext>)[];

  constructor(...answers: (() => StreamNext | Promise<StreamNext>)[]) {
    this.#answers = answers;
  }

  async next(): Promise<StreamNext> {
    this.asked += 1;
    this.mostUnderWay = Math.max(this.mostUnderWay, ++this.underWay);
    try {
      return await (this.#answers.shift() ?? never)();
    } finally {
      this.underWay -= 1;
    }
  }

  endsNow(): StreamEnd | null {
    return this.reason;
  }
}

const never = () => new Promise<StreamNext>(() => {});
const state = (text: string) => (): StreamNext => ({ kind: "state", text });
const fails = (): never => {
  throw new Error("no owner");
};

/** Runs with other bounds. */
async function within(
  bounds: Partial<Record<keyof typeof STREAM_LIMITS, number>>,
  work: () => Promise<void>,
) {
  const before = { ...STREAM_LIMITS };
  Object.assign(STREAM_LIMITS, bounds);
  try {
    await work();
  } finally {
    Object.assign(STREAM_LIMITS, before);
  }
}

Deno.test("one question is under way at a time, and none while the reader has not taken the last state", async () => {
  await within({ stateEveryMs: 1 }, async () => {
    const streams = new Streams();
    const source = new Script(state("1"), () => ({ kind: "same" }), state("2"));
    const body = streams.open("n", "0", source);
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.equal(source.asked, 0);
    await using reader = new EventReader(body);
    for (const data of [0, 1, 2]) assert.deepEqual(await reader.next(), { name: "n", data });
    assert.equal(source.mostUnderWay, 1);
    streams.endAll();
    await reader.ends("stopping");
  });
});

Deno.test("a source that fails is asked again, and the stream ends where it stays so", async () => {
  await within({ stateEveryMs: 1, askAgainMs: 1, lookEveryMs: 5, ownerGoneMs: 60_000 }, async () => {
    const streams = new Streams();
    await using reader = new EventReader(
      streams.open("n", "0", new Script(fails, fails, state("1"), fails, fails)),
    );
    assert.deepEqual([await reader.data("n"), await reader.data("n")], [0, 1]);
    Object.assign(STREAM_LIMITS, { ownerGoneMs: 0 });
    await reader.ends("stopping");
    assert.equal(streams.counts.ended.stopping, 1);
  });
});

Deno.test("a reason to end comes before a state that was asked for", async () => {
  await within({ stateEveryMs: 1, lookEveryMs: 60_000 }, async () => {
    const streams = new Streams();
    const source = new Script(() => {
      source.reason = "token_expired";
      return { kind: "state", text: "1" };
    });
    await using reader = new EventReader(streams.open("n", "0", source));
    assert.equal(await reader.data("n"), 0);
    await reader.ends("token_expired");
  });
});

Deno.test("questions of streams that are gone count against the room until they are answered", async () => {
  await within({ stateEveryMs: 1, openMax: 2 }, async () => {
    const streams = new Streams();
    const { promise, resolve } = Promise.withResolvers<StreamNext>();
    for (let stream = 0; stream < 4; stream++) {
      assert.equal(streams.hasRoom, true);
      const source = new Script(() => promise);
      await using reader = new EventReader(streams.open("n", "0", source));
      await reader.next();
      while (source.underWay === 0) await new Promise((turn) => setTimeout(turn, 1));
    }
    assert.deepEqual([streams.counts.open, streams.counts.left, streams.hasRoom], [0, 4, false]);
    resolve({ kind: "same" });
    while (!streams.hasRoom) await new Promise((turn) => setTimeout(turn, 1));
  });
});

Deno.test("a stream that begins when all have ended gets the end at once", async () => {
  const streams = new Streams();
  streams.endAll();
  await using reader = new EventReader(streams.open("n", "0", new Script()));
  assert.equal(await reader.data("n"), 0);
  await reader.ends("stopping");
});
