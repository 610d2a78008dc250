// The kinds of fault that a campaign does to the process itself, on either store: killed, stopped and started at any
// moment. A strike begins with clients at work and ends when the service serves again.

import { firstSeq, lastSeq } from "../../src/storage/journal/ranges.ts";
import { termOf } from "./nodes.ts";
import { pause } from "./program.ts";
import { once } from "./wire.ts";
import type { World } from "./world.ts";

/** What a kind of fault needs beside a process. */
export type Need = "nothing" | "embedded" | "server" | "cable" | "nodes" | "channel" | "own server";

/** A kind of fault. */
export interface Fault {
  readonly kind: string;
  /** For people, in a few words. */
  readonly text: string;
  readonly needs: Need;
  /** How often it is drawn beside the others. */
  readonly weight: number;
  /** Whether it is done to one database alone, so that nothing of another one may fail. */
  readonly isOfDatabase?: boolean;
  /** Does it and has the service back; answers how many faults that were, or null when the moment never came. */
  strike(world: World): Promise<number | null>;
}

const NAP_MAX_MS = 4_000;
const DISK_WAIT_MS = 4_000;
const EARLY_KILLS_MAX = 4;

async function kill(world: World): Promise<number> {
  await world.replace(world.anyone);
  return 1;
}

/** Kills all processes at the same moment. */
async function killAll(world: World): Promise<number> {
  const count = world.nodes.length;
  await Promise.all([...world.nodes].map((node) => world.kill(node)));
  for (let started = 0; started < count; started++) await world.start();
  return count;
}

/** The journal that a kill left is replayed by a start that is killed, and by the next one. */
async function killStarts(world: World): Promise<number> {
  const { random } = world;
  const alone = world.nodes.length === 1;
  await world.kill(world.anyone);
  if (alone) await world.stopLoad();
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
  const alone = world.nodes.length === 1;
  const leaver = world.anyone;
  const term = world.stage.isEmbedded ? null : termOf(leaver, world.stage.storeName);
  await world.stop(leaver, world.random.chance(0.5) ? "SIGTERM" : "SIGINT");
  if (alone) await world.stopLoad();
  const more = (answers.get("cut") ?? 0) - cuts;
  if (more > 0) world.faults.push(`A stop cut off ${more} calls`);
  const left = await batchesLeft(world, term);
  if (left !== 0) world.faults.push(`A stop left ${left} batches in the journal`);
  await world.start();
  return 1;
}

/** Batches in the journal: of one node, or all of them on the embedded store. */
async function batchesLeft({ stage }: World, term: number | null): Promise<number> {
  return await stage.withDatabase(async (database) => {
    const [row] = await database.query<{ left: number }>(
      "select count(*) as left from journal where $1::bigint is null or seq between $2::bigint and $3::bigint",
      [term, term === null ? 0 : firstSeq(term), term === null ? 0 : lastSeq(term)],
    );
    return Number(row?.left);
  });
}

/** Stopped for less than the lease and woken: it goes on, or ends its term and starts over. */
async function nap(world: World): Promise<number> {
  const { program } = world.anyone;
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
  await world.replace(world.anyone);
  return isSeen ? 1 : null;
}

/** Killed in the middle of a drain that a reader of tables asked for. */
async function killAtDrain(world: World): Promise<number> {
  const node = world.anyone;
  const { origin } = node;
  const path = "/api/v1/events?limit=1";
  const asked = once(origin, { method: "GET", path, bearer: world.stage.secretKey });
  await pause(world.random.next() * 25);
  await world.kill(node);
  await asked;
  await world.start();
  return 1;
}

/** The kinds of this file. */
export const PROCESS_FAULTS: readonly Fault[] = [
  { kind: "kill", text: "SIGKILL at any moment", needs: "nothing", weight: 3, strike: kill },
  {
    kind: "kill-all",
    text: "SIGKILL of all processes at once",
    needs: "nodes",
    weight: 1,
    strike: killAll,
  },
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
