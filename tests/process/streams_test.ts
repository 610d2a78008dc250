// Streams apart from their content: their pace, slow readers, and sources that fail. The bounds are shorter here than in
// the program.

import assert from "node:assert/strict";
import { STREAM_LIMITS } from "../../src/process/limits.ts";
import {
  type StreamEnd,
  type StreamNext,
  type StreamOwner,
  Streams,
  type StreamSource,
} from "../../src/process/streams.ts";
import { EventReader } from "../support/event_stream.ts";
import { changedLimits } from "../support/limits.ts";

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

const OWNER: StreamOwner = { app: "a", user: "a/u", token: null, variant: "" };

/** Opens streams of some owners, each with what differs from `OWNER`; returns their readers. */
async function openAll(streams: Streams, owners: readonly Partial<StreamOwner>[]) {
  const readers = owners.map((owner) =>
    new EventReader(streams.open("n", "0", new Script(), { ...OWNER, ...owner }))
  );
  for (const reader of readers) assert.equal(await reader.data("n"), 0);
  return readers;
}

/** The places of the streams that ended because newer ones took their place; the others are ended by the test. */
async function replacedOf(streams: Streams, readers: readonly EventReader[]): Promise<number[]> {
  streams.endAll();
  const reasons = await Promise.all(readers.map(async (reader) => (await reader.data("end")).reason));
  return reasons.flatMap((reason, place) => reason === "replaced" ? [place] : []);
}

/** Runs with other bounds. */
async function within(
  bounds: Partial<Record<keyof typeof STREAM_LIMITS, number>>,
  work: () => Promise<void>,
) {
  using _limits = changedLimits(STREAM_LIMITS, bounds);
  await work();
}

Deno.test("one question is under way at a time, and none while the reader has not taken the last state", async () => {
  await within({ stateEveryMs: 1 }, async () => {
    const streams = new Streams();
    const source = new Script(state("1"), () => ({ kind: "same" }), state("2"));
    const body = streams.open("n", "0", source, OWNER);
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
      streams.open("n", "0", new Script(fails, fails, state("1"), fails, fails), OWNER),
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
    await using reader = new EventReader(streams.open("n", "0", source, OWNER));
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
      await using reader = new EventReader(streams.open("n", "0", source, OWNER));
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
  await using reader = new EventReader(streams.open("n", "0", new Script(), OWNER));
  assert.equal(await reader.data("n"), 0);
  await reader.ends("stopping");
});

Deno.test("the oldest streams of a token and of a user give way, and those of others stay", async () => {
  await within({ ofUserMax: 4, ofTokenMax: 2 }, async () => {
    const streams = new Streams();
    const token = { token: "t" };
    const readers = await openAll(streams, [{ user: "a/other" }, token, {}, token, token, {}, {}]);
    // The third of the token ends its first one (1); the fifth of the user ends the one that is oldest by then (2).
    assert.deepEqual(await replacedOf(streams, readers), [1, 2]);
    assert.equal(streams.counts.ended.replaced, 2);
  });
});

Deno.test("a user has few variants, and a new one ends the streams of the oldest", async () => {
  await within({ variantsMax: 2 }, async () => {
    const streams = new Streams();
    const variants = ["a", "b", "a", "b", "c"].map((variant) => ({ variant }));
    const readers = await openAll(streams, variants);
    assert.deepEqual(await replacedOf(streams, readers), [0, 2]);
  });
});

Deno.test("an app has its share, with ended streams that still ask, and others have room", async () => {
  await within({ ofAppMax: 2, ofUserMax: 3, stateEveryMs: 0 }, async () => {
    const streams = new Streams();
    const readers = await openAll(streams, [{ user: "a/1" }, { user: "a/2" }]);
    assert.deepEqual([streams.hasRoomFor("a"), streams.hasRoomFor("b"), streams.hasRoom], [
      false,
      true,
      true,
    ]);
    assert.equal(streams.ofAppMost, 2);
    for (const reader of readers) await reader[Symbol.asyncDispose]();
    assert.equal(streams.hasRoomFor("a"), true);
    for (const _ of [1, 2]) {
      const [reader] = await openAll(streams, [{ user: "a/1" }]);
      await reader?.[Symbol.asyncDispose]();
    }
    assert.deepEqual([streams.hasRoomFor("a"), streams.hasRoomForUser("a/1")], [false, false]);
    assert.equal(streams.hasRoomForUser("a/2"), true);
  });
});

Deno.test("a state that its reader waits for is not followed by a question at once", async () => {
  await within({ stateEveryMs: 1 }, async () => {
    const streams = new Streams();
    const { promise, resolve } = Promise.withResolvers<StreamNext>();
    const source = new Script(() => promise);
    await using reader = new EventReader(streams.open("n", "0", source, OWNER));
    assert.equal(await reader.data("n"), 0);
    const next = reader.data("n");
    while (source.asked === 0) await new Promise((turn) => setTimeout(turn, 1));
    using _limits = changedLimits(STREAM_LIMITS, { stateEveryMs: 60_000 });
    resolve({ kind: "state", text: "1" });
    assert.equal(await next, 1);
    assert.equal(source.asked, 1, "the next question waits for its time");
  });
});
