// Faults of processes, connections and the server, and the housekeeping in between.

import { sweepAll } from "../../src/operations/sweeps/sweeps.ts";
import { passivateIdle } from "../actors/runtime.ts";
import type { Random } from "../model/random.ts";
import type { Faults } from "./faults.ts";
import type { Wire } from "./network.ts";
import type { SimPart, SimProcess } from "./process.ts";
import type { Site } from "./sites.ts";
import { type VirtualTime, WORLD } from "./time.ts";

/** What trouble needs of the world. */
export interface TroubleWorld {
  readonly time: VirtualTime;
  readonly random: Random;
  readonly faults: Faults;
  readonly sites: readonly Site[];
  /** The only database that anything befalls; null for all. */
  readonly sick: Site | null;
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

/** What befalls one of several databases as a whole. */
const DATABASE_KINDS = {
  away: 0.4,
  frozen: 0.4,
  unreachable: 0.4,
};

const EVERY_KIND = { ...KINDS, ...CHANNEL_KINDS, ...DATABASE_KINDS };

/** How often each kind of trouble comes, beside the others. */
export type Troubles = Partial<typeof EVERY_KIND>;

/** No other trouble than these. */
export function only(troubles: Troubles): Troubles {
  const none = Object.fromEntries(Object.keys(EVERY_KIND).map((kind) => [kind, 0]));
  return { ...none, ...troubles };
}

/** The trouble of one database: all that no process and no line between two shares. */
export const OF_ONE_DATABASE = only({
  ...{ ...DATABASE_KINDS, cut: 1, connections: 1, restart: 0.3, stuck: 0.3, passivate: 1, sweep: 1 },
});

/** Now and then the database that all trouble is of is away when the processes start. */
export function startWithout({ random, sick }: TroubleWorld): void {
  if (sick !== null && random.chance(0.3)) sick.server.crash(random.whole(1_000, 20_000), 0);
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
  const { random, faults, processes, sites, sick, troubles } = world;
  const process = someProcess(world);
  if (!process.isAlive) return;
  const ofChannels = processes.length > 1 ? CHANNEL_KINDS : {};
  const ofDatabases = sites.length > 1 ? DATABASE_KINDS : {};
  const usual: Troubles = { ...KINDS, ...ofChannels, ...ofDatabases };
  const kind = random.weighted({ ...usual, ...troubles } as Required<Troubles>);
  faults.note(kind);
  const site = sick ?? (sites.length > 1 ? random.pick(sites) : sites[0] as Site);
  const part = process.parts[site.place];
  if (part === undefined) return;
  if (kind in CHANNEL_KINDS) between(world, process, part, kind as keyof typeof CHANNEL_KINDS);
  else if (kind in DATABASE_KINDS) befallDatabase(world, site, kind as keyof typeof DATABASE_KINDS);
  else befall(world, process, part, kind as keyof typeof KINDS);
}

/** Mostly an owner of cells: a standby or a front has little to lose. */
function someProcess({ random, processes }: TroubleWorld): SimProcess {
  const isOwner = ({ serving }: SimPart) => serving !== null && serving.term.doors.held.length > 0;
  const owners = processes.filter(({ parts }) => parts.some(isOwner));
  return owners.length > 0 && random.chance(0.7) ? random.pick(owners) : random.pick(processes);
}

/**
 * A database answers nothing for a moment, so that the calls of that time are in one batch of the journal. Now and then a
 * process dies or hands its cells over right behind it.
 */
export function holdUp(world: TroubleWorld, site: Site): void {
  const { time, random, faults, sick } = world;
  if (sick !== null && sick !== site || random.chance(0.3)) return;
  faults.note("held up");
  const ms = random.whole(20, 200);
  site.server.frozenUntil = Math.max(site.server.frozenUntil, time.now + ms);
  if (sick !== null || random.chance(0.5)) return;
  time.after(ms + random.whole(0, 60), WORLD, () => {
    const process = someProcess(world);
    const part = process.parts[site.place];
    if (faults.isQuiet || !process.isAlive || part === undefined) return;
    const kind = random.pick(["crash", "leave"] as const);
    faults.note(kind);
    befall(world, process, part, kind);
  });
}

/** A database is away, answers nothing, or is reached by no process. */
function befallDatabase(
  { time, random, processes }: TroubleWorld,
  { server, place }: Site,
  kind: keyof typeof DATABASE_KINDS,
): void {
  const ms = random.pick([random.whole(500, 4_000), random.whole(4_000, 20_000)]);
  switch (kind) {
    case "away":
      return server.crash(ms, 0);
    case "frozen":
      server.frozenUntil = Math.max(server.frozenUntil, time.now + ms);
      return;
    case "unreachable":
      for (const { parts } of processes) cutOff(parts[place], ms);
      return;
  }
}

function befall(world: TroubleWorld, process: SimProcess, part: SimPart, kind: keyof typeof KINDS): void {
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
      cutOff(part, random.whole(10, 12_000));
      return;
    case "connections":
      part.database.breakAll(false);
      return;
    case "unheard":
      endUnheard(world, process, part);
      return;
    case "restart":
      restart(world, part.site, random.chance(0.75) ? LOOKS_MAX : 0);
      return;
    case "passivate":
      time.after(0, part.owner, () => {
        if (part.serving !== null) passivateIdle(part.serving.term.directory);
      });
      return;
    case "sweep":
      time.after(0, part.owner, () => void sweep(part));
      return;
    case "stuck":
      part.site.line.faults.stick(part.owner, random.whole(2_000, 20_000));
      return;
    case "stop":
    case "leave":
      time.after(0, process.owner, () => process.stop(random.whole(1, 3_000), kind === "leave"));
      return;
  }
}

/** A server crashes, mostly when there are commits that it may lose: so many looks are taken for such a moment. */
function restart(world: TroubleWorld, site: Site, looks: number): void {
  const { time, random, faults } = world;
  const { server } = site;
  if (looks > 0 && server.unwritten === 0) {
    time.after(LOOK_MS, WORLD, () => {
      if (!faults.isQuiet) restart(world, site, looks - 1);
    });
    return;
  }
  const undone = server.unwritten > 0 && random.chance(0.8) ? random.whole(1, server.unwritten) : 0;
  if (undone > 0) faults.note("commits undone");
  server.crash(random.whole(1, 3_000), undone);
}

/** The server ends a node's sessions silently; now and then the other nodes cannot report it either. */
function endUnheard(
  { random, faults, wire, processes }: TroubleWorld,
  process: SimProcess,
  { owner, database }: SimPart,
): void {
  const ms = random.whole(1_000, 8_000);
  faults.cut(owner, ms);
  database.endUnheard();
  if (random.chance(0.5)) return;
  for (const other of processes) if (other !== process) faults.part(process.name, other.name, ms);
  wire.breakLines(owner, random.chance(0.5));
}

/** A node cannot reach its database for a while. */
function cutOff(part: SimPart | undefined, ms: number): void {
  if (part === undefined) return;
  part.site.line.faults.cut(part.owner, ms);
  part.database.breakAll(true);
}

/** Trouble between a node and the others, which all reach the database unless the node is alone. */
function between(
  world: TroubleWorld,
  process: SimProcess,
  { owner }: SimPart,
  kind: keyof typeof CHANNEL_KINDS,
): void {
  const { random, faults, wire, processes } = world;
  const others = processes.filter((other) => other !== process);
  const ms = random.pick([random.whole(10, 2_000), random.whole(2_000, 12_000)]);
  switch (kind) {
    case "lines":
      wire.breakLines(owner, random.chance(0.4));
      return;
    case "apart":
      faults.part(process.name, random.pick(others).name, ms);
      return;
    case "alone":
      for (const other of others) faults.part(process.name, other.name, ms);
      for (const part of process.parts) cutOff(part, ms);
      return;
  }
}

/** Runs every sweep of a process in one database; whether they came to their end. */
export async function sweep({ serving }: SimPart): Promise<boolean> {
  if (serving === null) return false;
  return await sweepAll(serving).then(() => true, () => false);
}
