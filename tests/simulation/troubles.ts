// Faults of processes, connections and the server, and the housekeeping in between.

import { sweepAll } from "../../src/operations/sweeps/sweeps.ts";
import { passivateIdle } from "../actors/runtime.ts";
import type { Random } from "../model/random.ts";
import type { Server } from "./database/server.ts";
import type { Faults } from "./faults.ts";
import type { Wire } from "./network.ts";
import type { SimProcess } from "./process.ts";
import { type VirtualTime, WORLD } from "./time.ts";

/** What trouble needs of the world. */
export interface TroubleWorld {
  readonly time: VirtualTime;
  readonly random: Random;
  readonly faults: Faults;
  readonly server: Server;
  readonly wire: Wire;
  readonly processes: readonly SimProcess[];
  /** What comes more or less often than else. */
  readonly troubles: Troubles;
}

const KINDS = {
  crash: 1,
  pause: 1,
  cut: 0.5,
  connections: 0.6,
  unheard: 0.4,
  restart: 0.2,
  passivate: 4,
  sweep: 2,
  stop: 0.3,
  leave: 0.5,
  stuck: 0.2,
};

/** How often, and how many times, a crash looks for a moment. */
const LOOK_MS = 2;
const LOOKS_MAX = 2_000;

/** What goes wrong between nodes, where there are several. */
const CHANNEL_KINDS = {
  lines: 0.6,
  apart: 0.6,
  alone: 0.3,
};

/** How often each kind of trouble comes, beside the others. */
export type Troubles = Partial<Record<keyof typeof KINDS | keyof typeof CHANNEL_KINDS, number>>;

/** No other trouble than these. */
export function only(troubles: Troubles): Troubles {
  const none = Object.fromEntries(Object.keys({ ...KINDS, ...CHANNEL_KINDS }).map((kind) => [kind, 0]));
  return { ...none, ...troubles };
}

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
  const { random, faults, processes, troubles } = world;
  // Mostly an owner of cells: a standby or a front has little to lose.
  const owners = processes.filter(({ serving }) => serving !== null && serving.term.doors.held.length > 0);
  const process = owners.length > 0 && random.chance(0.7) ? random.pick(owners) : random.pick(processes);
  if (!process.isAlive) return;
  const usual: Troubles = processes.length > 1 ? { ...KINDS, ...CHANNEL_KINDS } : KINDS;
  const kind = random.weighted({ ...usual, ...troubles } as Required<Troubles>);
  faults.note(kind);
  if (kind in CHANNEL_KINDS) between(world, process, kind as keyof typeof CHANNEL_KINDS);
  else befall(world, process, kind as keyof typeof KINDS);
}

function befall(world: TroubleWorld, process: SimProcess, kind: keyof typeof KINDS): void {
  const { time, random } = world;
  switch (kind) {
    case "crash":
      process.crash(random.chance(0.2));
      time.after(random.whole(1, 5_000), WORLD, () => process.start());
      return;
    case "pause":
      process.pause(
        random.pick([random.whole(10, 1_000), random.whole(1_000, 8_000), random.whole(8_000, 20_000)]),
        random.chance(0.3),
      );
      return;
    case "cut":
      cutOff(world, process, random.whole(10, 12_000));
      return;
    case "connections":
      process.database?.breakAll(false);
      return;
    case "unheard":
      endUnheard(world, process);
      return;
    case "restart":
      restart(world, random.chance(0.75) ? LOOKS_MAX : 0);
      return;
    case "passivate":
      inProcess(world, process, () => {
        if (process.serving !== null) passivateIdle(process.serving.term.directory);
      });
      return;
    case "sweep":
      inProcess(world, process, () => void sweep(process));
      return;
    case "stuck":
      world.faults.stick(process.owner, random.whole(2_000, 20_000));
      return;
    case "stop":
    case "leave":
      inProcess(world, process, () => process.stop(random.whole(1, 3_000), kind === "leave"));
      return;
  }
}

/** The server crashes, mostly when there are commits that it may lose: so many looks are taken for such a moment. */
function restart(world: TroubleWorld, looks: number): void {
  const { time, random, faults, server } = world;
  if (looks > 0 && server.unwritten === 0) {
    time.after(LOOK_MS, WORLD, () => {
      if (!faults.isQuiet) restart(world, looks - 1);
    });
    return;
  }
  const undone = server.unwritten > 0 && random.chance(0.8) ? random.whole(1, server.unwritten) : 0;
  if (undone > 0) faults.note("commits undone");
  server.crash(random.whole(1, 3_000), undone);
}

/** The server ends a node's sessions silently; now and then the other nodes cannot report it either. */
function endUnheard({ random, faults, wire, processes }: TroubleWorld, process: SimProcess): void {
  const ms = random.whole(1_000, 8_000);
  faults.cut(process.owner, ms);
  process.database?.endUnheard();
  if (random.chance(0.5)) return;
  for (const other of processes) if (other !== process) faults.part(process.name, other.name, ms);
  wire.breakLines(process.owner, random.chance(0.5));
}

/** A node cannot reach the database for a while. */
function cutOff({ faults }: TroubleWorld, process: SimProcess, ms: number): void {
  faults.cut(process.owner, ms);
  process.database?.breakAll(true);
}

/** Trouble between a node and the others, which all reach the database unless the node is alone. */
function between(world: TroubleWorld, process: SimProcess, kind: keyof typeof CHANNEL_KINDS): void {
  const { random, faults, wire, processes } = world;
  const others = processes.filter((other) => other !== process);
  const ms = random.pick([random.whole(10, 2_000), random.whole(2_000, 12_000)]);
  switch (kind) {
    case "lines":
      wire.breakLines(process.owner, random.chance(0.4));
      return;
    case "apart":
      faults.part(process.name, random.pick(others).name, ms);
      return;
    case "alone":
      for (const other of others) faults.part(process.name, other.name, ms);
      cutOff(world, process, ms);
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
