// Nodes, seen from beside the product: a sealed door stays shut, a drain begins when it is asked for, and no process keeps
// its cells although it cannot put the registry in force.

import { Doors } from "../../../actors/doors.ts";
import { Writer } from "../../../src/storage/journal/writer.ts";
import type { Message } from "../database/server.ts";
import { replace } from "../planted/plant.ts";
import type { VirtualTime } from "../time.ts";

/** Heartbeats without proof after which a process must have given its cells up. */
const UNPROVED_MAX = 10;

/** Looks at nodes while it is installed. */
export class NodeWatch {
  readonly #time: VirtualTime;
  /** Receives what is wrong. */
  report: (message: string) => void = () => {};
  /** Drains that were asked for at this moment, and have not begun. */
  #asked: number[] = [];

  constructor(time: VirtualTime) {
    this.#time = time;
  }

  /** A process sends a message to the database. */
  sees({ kind }: Message): void {
    const { now } = this.#time;
    if (kind === "begin") this.#asked = this.#asked.filter((at) => at !== now);
    if (!this.#asked.some((at) => at < now)) return;
    this.#asked = [];
    this.report("a drain did not begin when it was asked for");
  }

  /** Looks on until the returned function is called. */
  install(): () => void {
    const undo = [this.#watchDoors(), this.#watchDrains(), this.#watchProofs()];
    return () => {
      for (const each of undo) each();
    };
  }

  #watchDoors(): () => void {
    const report = (message: string) => this.report(message);
    const sealed = new WeakSet<Doors>();
    const seals = replace(Doors.prototype, "seal", (seal) =>
      function (this: Doors) {
        sealed.add(this);
        seal.call(this);
      });
    const opens = replace(Doors.prototype, "open", (open) =>
      function (this: Doors, cells) {
        open.call(this, cells);
        const opened = [...cells].some((cell) => this.isOpen(cell));
        if (sealed.has(this) && opened) report("a sealed door was opened");
      });
    return () => {
      opens();
      seals();
    };
  }

  #watchDrains(): () => void {
    const time = this.#time;
    const asked = (at: number) => this.#asked.push(at);
    return replace(Writer.prototype, "drain", (drain) =>
      function (this: Writer, ...batches) {
        asked(time.now);
        return drain.apply(this, batches);
      });
  }

  #watchProofs(): () => void {
    const report = (message: string) => this.report(message);
    const unproved = new WeakMap<Writer, number>();
    const ended = new WeakSet<Writer>();
    const beats = replace(Writer.prototype, "beat", (beat) =>
      async function (this: Writer, state) {
        const answer = await beat.call(this, state);
        const prove = () => {
          unproved.set(this, 0);
          answer.prove();
        };
        return { ...answer, prove };
      });
    const looks = replace(Writer.prototype, "lookAtLife", (look) =>
      function (this: Writer) {
        look.call(this);
        const times = (unproved.get(this) ?? 0) + 1;
        unproved.set(this, times);
        if (times === 1) void this.lost.then(() => ended.add(this));
        if (times === UNPROVED_MAX && !ended.has(this)) {
          report("a process keeps its cells without putting the registry in force");
        }
      });
    return () => {
      looks();
      beats();
    };
  }
}
