// A rolling restart: each process ends in good order and another comes in its place, one after another, while clients
// call any of those that are there.

import assert from "node:assert/strict";
import type { Fetch } from "../../src/client/transport.ts";
import { type Member, startMember, startMembers, untilSpread } from "./members.ts";
import type { Stage } from "./stage.ts";

const EXIT_MS = 25_000;

/** Processes of one store, which are all replaced again and again. */
export class Rolling {
  readonly members: Member[];
  readonly #stage: Stage;
  readonly #settings: Readonly<Record<string, string>>;
  #turn = 0;

  private constructor(stage: Stage, members: Member[], settings: Readonly<Record<string, string>>) {
    this.#stage = stage;
    this.members = members;
    this.#settings = settings;
  }

  static async open(
    stage: Stage,
    count: number,
    settings: Readonly<Record<string, string>> = {},
  ): Promise<Rolling> {
    return new Rolling(stage, await startMembers(stage, count, settings), settings);
  }

  /** Where the next call goes: each process in its turn, also a process that is about to end. */
  origin(): string {
    return (this.members[this.#turn++ % this.members.length] as Member).origin;
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
    for (const old of [...this.members]) {
      if (hasSpare) await this.#join();
      old.program.signal("SIGTERM");
      const { code } = await old.program.exit(EXIT_MS);
      this.members.splice(this.members.indexOf(old), 1);
      assert.equal(code, 0, old.program.stderr);
      if (!hasSpare) await this.#join();
    }
  }

  async #join(): Promise<void> {
    this.members.push(await startMember(this.#stage, this.#settings));
    await untilSpread(this.#stage, this.members);
  }
}
