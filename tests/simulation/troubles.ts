// Everything that goes wrong with processes, connections and the server, and the housekeeping that comes between.

import { sweepAll } from "../../src/housekeeping/sweeps.ts";
import { passivateIdle } from "../actors/runtime.ts";
import type { Random } from "../model/random.ts";
import type { Server } from "./database/server.ts";
import type { Faults } from "./faults.ts";
import type { SimProcess } from "./process.ts";
import { type VirtualTime, WORLD } from "./time.ts";

/** What trouble needs of the world. */
export interface TroubleWorld {
  readonly time: VirtualTime;
  readonly random: Random;
  readonly faults: Faults;
  readonly server: Server;
  readonly processes: readonly SimProcess[];
}

const KINDS = {
  crash: 1,
  pause: 1,
  cut: 0.5,
  connections: 0.6,
  restart: 0.2,
  passivate: 4,
  sweep: 2,
  stop: 0.3,
};

/** Lets trouble come again and again, until faults are over. */
export function scheduleTrouble(world: TroubleWorld, everyMs: number): void {
  const { time, random, faults } = world;
  time.after(random.next() * 2 * everyMs, WORLD, () => {
    if (faults.isQuiet) return;
    makeTrouble(world);
    scheduleTrouble(world, everyMs);
  });
}

function makeTrouble(world: TroubleWorld): void {
  const { time, random, faults, server, processes } = world;
  // Mostly the writer: a standby has little to lose.
  const writer = processes.find(({ serving }) => serving !== null);
  const process = writer !== undefined && random.chance(0.7) ? writer : random.pick(processes);
  if (!process.isAlive) return;
  const kind = random.weighted(KINDS);
  faults.note(kind);
  switch (kind) {
    case "crash":
      process.crash(random.chance(0.2));
      time.after(random.whole(1, 5_000), WORLD, () => process.start());
      return;
    case "pause":
      process.pause(
        random.pick([random.whole(10, 1_000), random.whole(1_000, 8_000), random.whole(8_000, 20_000)]),
      );
      return;
    case "cut":
      faults.cut(process.owner, random.whole(10, 12_000));
      process.database?.breakAll(true);
      return;
    case "connections":
      process.database?.breakAll(false);
      return;
    case "restart":
      server.crash(random.whole(1, 3_000));
      return;
    case "passivate":
      inProcess(world, process, () => {
        if (process.serving !== null) passivateIdle(process.serving.term.directory);
      });
      return;
    case "sweep":
      inProcess(world, process, () => void sweep(process));
      return;
    case "stop":
      inProcess(world, process, () => process.stop(random.whole(1, 3_000)));
      return;
  }
}

/** Runs every sweep in a process; whether they came to their end. */
export async function sweep({ serving }: SimProcess): Promise<boolean> {
  if (serving === null) return false;
  return await sweepAll(serving).then(() => true, () => false);
}

/** Runs something as an event of a process. */
export function inProcess({ time }: TroubleWorld, process: SimProcess, run: () => void): void {
  time.after(0, process.owner, run);
}
