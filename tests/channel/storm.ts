// A storm: three nodes make random calls and requests while connections are cut and held, and peers are removed and added.
// Everything is derived from a seed, in the simulator's virtual time, so a failure can be repeated exactly.

import assert from "node:assert/strict";
import { ChannelFull, ChannelLost, type StreamedReply } from "../../src/channel/hub.ts";
import { Random } from "../model/random.ts";
import {
  closeAll,
  type ClusterNode,
  inVirtualTime,
  type MemoryLine,
  MemoryNetwork,
  sleep,
  startMember,
} from "./nodes.ts";
import { until } from "../support/until.ts";

const STEPS = 400;
const FILL = 7;

/** Runs one storm. @throws what is wrong */
export function storm(seed: number): Promise<void> {
  return inVirtualTime(() => new Storm(seed).run());
}

class Storm {
  readonly #random: Random;
  readonly #network = new MemoryNetwork();
  /** How often each call or request ran, by its name. */
  readonly #ran = new Map<string, number>();

  constructor(seed: number) {
    this.#random = new Random(seed);
  }

  async run(): Promise<void> {
    const nodes = await Promise.all([1, 2, 3].map((term) =>
      startMember(term, {
        network: this.#network,
        onCall: async (call) => {
          await this.#work(call);
          if (this.#random.whole(0, 9) === 0) throw new Error("Not today");
          return { head: call, body: `of ${call}` };
        },
        onRequest: async (head) => {
          await this.#work(head);
          return { head, body: this.#body() };
        },
      })
    ));
    for (const { hub } of nodes) hub.setPeers(nodes);
    const ends: Promise<void>[] = [];
    for (let step = 0; step < STEPS; step++) {
      const from = this.#oneOf(nodes);
      const { term } = this.#oneOf(nodes);
      const kind = this.#random.whole(0, 9);
      if (kind < 6) ends.push(this.#checked(`${step}`, this.#call(from, term, `${step}`)));
      else if (kind < 9) ends.push(this.#checked(`${step}`, this.#request(from, term, `${step}`)));
      else this.#trouble(from, nodes);
      if (this.#random.whole(0, 2) === 0) await sleep(this.#random.whole(0, 60));
    }
    await Promise.all(ends);
    for (const line of this.#network.lines) line.letGo();
    for (const { hub } of nodes) hub.setPeers(nodes);
    await until(() =>
      nodes.every(({ hub, term }) => nodes.every((to) => to.term === term || hub.isOpen(to.term)))
    );
    await closeAll(...nodes);
  }

  async #call(from: ClusterNode, to: number, name: string): Promise<void> {
    assert.deepEqual(await from.hub.call(to, name), { head: name, body: `of ${name}` });
    assert.equal(this.#ran.get(name), 1);
  }

  async #request(from: ClusterNode, to: number, name: string): Promise<void> {
    const stop = new AbortController();
    if (this.#random.whole(0, 3) === 0) {
      setTimeout(() => stop.abort(new RangeError("Enough")), this.#random.whole(0, 100));
    }
    const body = new Uint8Array(this.#random.whole(0, 9_000));
    const reply: StreamedReply = await from.hub.request(to, name, body, stop.signal);
    assert.equal(reply.head, name);
    for await (const chunk of reply.body ?? []) {
      assert.ok(chunk.every((byte) => byte === FILL));
      await sleep(this.#random.whole(0, 10));
    }
  }

  /** Checks that a call reported as not run did not run, and that none ran twice. */
  async #checked(name: string, work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      if (error instanceof ChannelFull) assert.equal(this.#ran.get(name), undefined, `${name} ran`);
      else if (!(error instanceof ChannelLost || error instanceof RangeError)) throw error;
    }
    assert.ok((this.#ran.get(name) ?? 0) <= 1, `${name} ran twice`);
  }

  async #work(name: unknown): Promise<void> {
    this.#ran.set(name as string, (this.#ran.get(name as string) ?? 0) + 1);
    await sleep(this.#random.whole(0, 50));
  }

  #body(): ReadableStream<Uint8Array> {
    let pieces = this.#random.whole(0, 40);
    return new ReadableStream({
      pull: async (controller) => {
        await sleep(this.#random.whole(0, 5));
        if (pieces-- <= 0) controller.close();
        else controller.enqueue(new Uint8Array(this.#random.whole(1, 60_000)).fill(FILL));
      },
    });
  }

  #trouble(from: ClusterNode, nodes: readonly ClusterNode[]): void {
    const line: MemoryLine = this.#oneOf(this.#network.lines.slice(-12));
    const kind = this.#random.whole(0, 9);
    if (kind < 4) {
      line.close();
    } else if (kind < 8) {
      line.hold();
      setTimeout(() => line.letGo(), this.#random.whole(0, 4_000));
    } else {
      from.hub.setPeers([]);
      setTimeout(() => from.hub.setPeers(nodes), this.#random.whole(0, 200));
    }
  }

  #oneOf<T>(list: readonly T[]): T {
    return list[this.#random.whole(0, list.length - 1)] as T;
  }
}
