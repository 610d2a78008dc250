// A rolling restart: each process ends in good order and another comes in its place, one after another, while clients
// call any of those that are there.

import assert from "node:assert/strict";
import type { Fetch } from "../../src/client/transport.ts";
import { type ClusterNode, startNode, startNodes, untilSpread } from "./nodes.ts";
import type { Stage } from "./stage.ts";

const EXIT_MS = 60_000;

/** Processes of one store, which are all replaced again and again. */
export class Rolling {
  readonly nodes: ClusterNode[];
  readonly #stage: Stage;
  readonly #settings: Readonly<Record<string, string>>;
  #turn = 0;

  private constructor(stage: Stage, nodes: ClusterNode[], settings: Readonly<Record<string, string>>) {
    this.#stage = stage;
    this.nodes = nodes;
    this.#settings = settings;
  }

  static async open(
    stage: Stage,
    count: number,
    settings: Readonly<Record<string, string>> = {},
  ): Promise<Rolling> {
    return new Rolling(stage, await startNodes(stage, count, settings), settings);
  }

  /** Where the next call goes: each process in its turn, also a process that is about to end. */
  origin(): string {
    return (this.nodes[this.#turn++ % this.nodes.length] as ClusterNode).origin;
  }

  /** Sends each request to the next process. */
  get fetch(): Fetch {
    return (url, init) => {
      const { pathname, search } = new URL(url);
      return fetch(`${this.origin()}${pathname}${search}`, init);
    };
  }

  /**
   * Replaces every process, the oldest first.
   *
   * @param hasSpare whether the next one joins and has its cells before the old one ends, or comes after it
   */
  async restartAll(hasSpare: boolean): Promise<void> {
    for (const old of [...this.nodes]) {
      if (hasSpare) await this.#join();
      old.program.signal("SIGTERM");
      const { code } = await old.program.exit(EXIT_MS);
      this.nodes.splice(this.nodes.indexOf(old), 1);
      assert.equal(code, 0, old.program.stderr);
      if (!hasSpare) await this.#join();
    }
  }

  async #join(): Promise<void> {
    this.nodes.push(await startNode(this.#stage, this.#settings));
    await untilSpread(this.#stage, this.nodes);
  }
}
