// The kinds of fault that a campaign does to the process itself, on either store: killed, stopped and started at any
// moment. A strike begins with clients at work and ends when the service serves again.

import { pause } from "./program.ts";
import { once } from "./wire.ts";
import type { World } from "./world.ts";

/** What a kind of fault needs beside a process. */
export type Need = "nothing" | "embedded" | "server" | "cable" | "cluster";

/** A kind of fault. */
export interface Fault {
  readonly kind: string;
  /** For people, in a few words. */
  readonly text: string;
  readonly needs: Need;
  /** How often it is drawn beside the others. */
  readonly weight: number;
  /** Does it and has the service back; answers how many faults that were, or null when the moment never came. */
  strike(world: World): Promise<number | null>;
}

const NAP_MAX_MS = 4_000;
const DISK_WAIT_MS = 4_000;
const EARLY_KILLS_MAX = 4;

/** Kills the writer and starts the next one. */
export async function replace(world: World): Promise<void> {
  await world.writer.program.kill();
  await world.start();
}

async function kill(world: World): Promise<number> {
  await replace(world);
  return 1;
}

/** The journal that a kill left is replayed by a start that is killed, and by the next one. */
async function killStarts(world: World): Promise<number> {
  const { random } = world;
  await world.writer.program.kill();
  await world.load.stop();
  const early = random.whole(1, EARLY_KILLS_MAX);
  for (let count = 0; count < early; count++) {
    const program = world.startOne();
    await pause(random.next() * world.startMs * 1.1);
    await program.kill();
  }
  await world.start();
  return 1 + early;
}

async function stop(world: World): Promise<number> {
  const { answers } = world.load.record;
  const cuts = answers.get("cut") ?? 0;
  await world.stop(world.random.chance(0.5) ? "SIGTERM" : "SIGINT");
  await world.load.stop();
  const more = (answers.get("cut") ?? 0) - cuts;
  if (more > 0) world.faults.push(`A stop cut off ${more} calls`);
  const database = await world.stage.openDatabase();
  const [journal] = await database.query<{ left: number }>("select count(*) as left from journal");
  await database.close();
  if (Number(journal?.left) !== 0) world.faults.push(`A stop left ${journal?.left} batches in the journal`);
  await world.start();
  return 1;
}

/** Stopped for less than the lease and woken: it goes on, or ends its term and starts over. */
async function nap(world: World): Promise<number> {
  const { program } = world.writer;
  program.signal("SIGSTOP");
  await pause(world.random.next() * NAP_MAX_MS);
  program.signal("SIGCONT");
  await pause(200);
  await world.back();
  return 1;
}

/** Killed just when something is written into the store's files: a drain, a checkpoint, the log. */
async function killAtDisk(world: World): Promise<number | null> {
  const { random, stage } = world;
  // The log is written all the time; in "base" a checkpoint or an eviction is at work.
  const folder = `${stage.folder}/pg/${random.chance(0.8) ? "base" : "pg_wal"}`;
  using watcher = Deno.watchFs(folder);
  const timer = setTimeout(() => watcher.close(), DISK_WAIT_MS);
  let isSeen = false;
  for await (const _ of watcher) {
    isSeen = true;
    break;
  }
  clearTimeout(timer);
  if (isSeen) await pause(random.next() * random.pick([0, 3, 30]));
  await replace(world);
  return isSeen ? 1 : null;
}

/** Killed in the middle of a drain that a reader of tables asked for. */
async function killAtDrain(world: World): Promise<number> {
  const { origin, program } = world.writer;
  const path = "/api/v1/events?limit=1";
  const asked = once(origin, { method: "GET", path, bearer: world.stage.secretKey });
  await pause(world.random.next() * 25);
  await program.kill();
  await asked;
  await world.start();
  return 1;
}

/** The kinds of this file. */
export const PROCESS_FAULTS: readonly Fault[] = [
  { kind: "kill", text: "SIGKILL at any moment", needs: "nothing", weight: 3, strike: kill },
  {
    kind: "replay",
    text: "SIGKILL, and again during the starts that replay the journal",
    needs: "nothing",
    weight: 3,
    strike: killStarts,
  },
  { kind: "stop", text: "SIGTERM or SIGINT under load", needs: "nothing", weight: 1, strike: stop },
  {
    kind: "nap",
    text: "SIGSTOP for less than the lease, then SIGCONT",
    needs: "nothing",
    weight: 1,
    strike: nap,
  },
  {
    kind: "drain",
    text: "SIGKILL in a drain that a reader asked for",
    needs: "nothing",
    weight: 2,
    strike: killAtDrain,
  },
  {
    kind: "disk",
    text: "SIGKILL while the embedded store writes its files",
    needs: "embedded",
    weight: 2,
    strike: killAtDisk,
  },
];

/** Kills a first start at random moments, on a store where nothing is made yet; answers how often. */
export async function killFirstStarts(world: World): Promise<number> {
  const kills = world.random.whole(1, EARLY_KILLS_MAX);
  const firstMs = world.stage.isEmbedded ? 5_000 : 1_500;
  for (let count = 0; count < kills; count++) {
    const program = world.startOne();
    await pause(world.random.next() * firstMs);
    await program.kill();
  }
  return kills;
}
