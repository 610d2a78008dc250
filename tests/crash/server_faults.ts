// The kinds of fault that a campaign does between the processes and their server: sessions ended in chosen moments, a
// cable cut on either side of a commit, the server killed, and cells that move while processes come, go and freeze.

import type { Fault } from "./faults.ts";
import { askWhileStopped, assertUnavailable, termOf } from "./nodes.ts";
import { pause, until } from "./program.ts";
import type { Session } from "../../src/storage/database.ts";
import { BACK_MS, type World } from "./world.ts";

const HUNT_MS = 3_000;
const OUTAGE_MAX_MS = 3_000;
const SILENT_MS = [4_000, 11_000] as const;
const LAST_CALLS_MS = 50;
/** Drains are over by then, and no node has been silent for so long that others end its sessions. */
const DRAINED_MS = 6_000;
/** Time in which a process notices what was done to it, so that readiness means something again. */
const NOTICE_MS = 250;

/** Sessions of the processes; those that append hold the locks of cells. */
const OTHERS = "pid <> pg_backend_pid()";
const LOCKING = "pid in (select pid from pg_locks where locktype = 'advisory' and granted)";
/** A commit is at work when the log is being flushed for a statement that is a transaction of its own. */
const IN_COMMIT = "wait_event in ('WALSync', 'WALWrite')";
const DELAYED = "state = 'active' and wait_event is null and query like 'insert into journal%'";
const IN_DRAIN = "xact_start is not null and query ~* '^(copy|delete from journal|merge into)'";

async function terminate(world: World, which: string): Promise<number> {
  const { admin, name } = world.stage.server;
  const ended = await admin.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and ${OTHERS} and ${which}`,
    [name],
  );
  return ended.length;
}

async function endOneWriter(world: World): Promise<number | null> {
  const { admin, name } = world.stage.server;
  const sessions = await admin.query<{ pid: number }>(
    `select pid from pg_stat_activity where datname = $1 and ${LOCKING}`,
    [name],
  );
  if (sessions.length === 0) return null;
  await admin.query("select pg_terminate_backend($1::int)", [world.random.pick(sessions).pid]);
  return await sameIsBack(world);
}

/** Waits until a session is at some point of its work, ends it if asked to, and returns its owner. */
async function hunt(world: World, moment: string, isEnded: boolean): Promise<number | null> {
  const { admin, name } = world.stage.server;
  return await admin.transaction(async (session) => {
    await session.query(`do $$
      declare
        victim integer;
        deadline timestamptz := clock_timestamp() + interval '${HUNT_MS} milliseconds';
      begin
        loop
          perform pg_stat_clear_snapshot();
          select pid into victim from pg_stat_activity where datname = '${name}' and ${OTHERS} and ${moment} limit 1;
          exit when victim is not null or clock_timestamp() > deadline;
        end loop;
        ${isEnded ? "perform pg_terminate_backend(victim);" : ""}
        perform set_config('crash.victim', coalesce(victim::text, ''), true);
      end $$`);
    const [row] = await session.query<{ victim: string }>("select current_setting('crash.victim') as victim");
    return row === undefined || row.victim === "" ? null : Number(row.victim);
  });
}

/** The same process serves again by itself. */
async function sameIsBack(world: World): Promise<number> {
  await pause(NOTICE_MS);
  await world.back();
  return 1;
}

/** Ends a session when the hunt has found one. */
async function endAt(world: World, moment: string): Promise<number | null> {
  if (await hunt(world, moment, true) === null) return null;
  return await sameIsBack(world);
}

function momentOfCommit({ random }: World): string {
  return `(${IN_COMMIT} or ${random.chance(0.5) ? DELAYED : "false"}) and ${
    random.chance(0.7) ? LOCKING : "true"
  }`;
}

async function drainEnds(world: World): Promise<number | null> {
  if (world.random.chance(0.5)) return await endAt(world, IN_DRAIN);
  if (await hunt(world, IN_DRAIN, false) === null) return null;
  await world.replace(world.anyone);
  return 1;
}

async function refuseConnections(world: World): Promise<number> {
  const { admin, name } = world.stage.server;
  await admin.script(`alter database ${name} allow_connections false`);
  await terminate(world, "true");
  await pause(world.random.next() * OUTAGE_MAX_MS);
  await admin.script(`alter database ${name} allow_connections true`);
  return await sameIsBack(world);
}

async function cut(world: World): Promise<number> {
  const ms = world.random.chance(0.5) ? 0 : world.random.next() * OUTAGE_MAX_MS;
  await Promise.all(world.someCables().map((cable) => ms === 0 ? cable.cut() : cable.cutFor(ms)));
  return await sameIsBack(world);
}

/** Nodes that both reach the database do not reach each other. */
async function cutChannel(world: World): Promise<number | null> {
  const { channels, random } = world;
  if (channels.length === 0) return null;
  const cut = random.chance(0.5) ? channels : [random.pick(channels)];
  const ms = random.pick([0, 500, OUTAGE_MAX_MS, 2 * OUTAGE_MAX_MS]) * random.next();
  await Promise.all(cut.map((cable) => ms === 0 ? cable.cut() : cable.cutFor(ms)));
  return await sameIsBack(world);
}

async function swallow(world: World, direction: "query" | "answer"): Promise<number> {
  const ms = world.random.pick([1, 5, 20, 200]) * world.random.next();
  await Promise.all(world.someCables().map((cable) => cable.swallow(direction, ms)));
  return await sameIsBack(world);
}

/** The cable carries no answers for longer than a node may be silent, and breaks nothing until then. */
async function silence(world: World): Promise<number> {
  const ms = world.random.whole(...SILENT_MS);
  await Promise.all(world.someCables().map((cable) => cable.swallow("answer", ms)));
  return await sameIsBack(world);
}

async function crashServer(world: World, signal: "SIGKILL" | "SIGQUIT"): Promise<number> {
  await world.ownServer?.crash(signal);
  await pause(world.random.pick([0, 0, 1_500]) * world.random.next());
  await world.ownServer?.start();
  return await sameIsBack(world);
}

/**
 * The server ends in the moment in which the last batch has left the journal. The drain's commit did not wait for the disk:
 * the batch is in the journal again when the server is back. Null where it was on the disk already.
 */
async function loseTail(world: World): Promise<number | null> {
  // The heartbeats of the other database would take the drain's commit along: one server has one log.
  if (world.stages.length > 1) return null;
  await world.calm();
  // So that there is something to drain, and no process that drains it.
  world.load.start();
  await pause(LAST_CALLS_MS);
  await world.load.stop();
  const isDrained = await crashAfterDrain(world);
  await world.ownServer?.start();
  const { look } = world.stage;
  const isUndone = isDrained &&
    await until("the server answers", BACK_MS, () => batchesIn(look).catch(() => null)) > 0;
  signalAll(world, "SIGCONT");
  await sameIsBack(world);
  await world.blow();
  return isUndone ? 1 : null;
}

/**
 * Ends the server once the journal is empty; the processes are stopped then, so that none replays. Heartbeats wait
 * meanwhile: their commits wait for the disk, and would take the drain's commit along.
 *
 * @returns whether there was a drain to lose
 */
async function crashAfterDrain(world: World): Promise<boolean> {
  let isDrained = false;
  await world.stage.look.transaction(async (session) => {
    await session.query("lock table members in share mode");
    if (await batchesIn(session) === 0) return;
    const isEmpty = async () => await batchesIn(session) === 0 || null;
    isDrained = await until("the journal is empty", DRAINED_MS, isEmpty).catch(() => false);
    if (!isDrained) return;
    signalAll(world, "SIGSTOP");
    // By SIGKILL of the postmaster alone each session would still end in good order, and drop its temporary tables by a commit
    // that waits for the disk.
    await world.ownServer?.crash("SIGQUIT");
  }).catch((error) => {
    // The transaction ends with the server.
    if (!isDrained) throw error;
  });
  return isDrained;
}

async function batchesIn(database: Pick<Session, "query">): Promise<number> {
  const [row] = await database.query<{ batches: number }>("select count(*) as batches from journal");
  return row?.batches ?? 0;
}

function signalAll({ nodes }: World, signal: Deno.Signal): void {
  for (const { program } of nodes) program.signal(signal);
}

/** SIGKILL of the session that commits: the server drops everybody and recovers from its log. */
async function killBackend(world: World): Promise<number | null> {
  const victim = await hunt(world, momentOfCommit(world), false);
  if (victim === null) return null;
  world.ownServer?.killBackend(victim);
  await pause(NOTICE_MS);
  await world.ownServer?.start();
  return await sameIsBack(world);
}

/** A process joins, so that cells move; while they move one is killed, or leaves. */
async function amidMoves(world: World): Promise<number> {
  await world.startMoves();
  if (world.random.chance(0.5)) await world.kill(world.anyone);
  else await world.stop(world.anyone);
  await world.back();
  return 1;
}

/** Stopped until others have its cells: what it says when it wakes must be that it cannot answer. */
async function freeze(world: World): Promise<number> {
  const frozen = world.anyone;
  world.drop(frozen);
  frozen.program.signal("SIGSTOP");
  await world.untilOwned();
  await pause(world.random.whole(0, 800));
  const term = termOf(frozen, world.stage.storeName);
  const asked = await askWhileStopped(world.stage, frozen);
  frozen.program.signal("SIGCONT");
  for (const outcome of await Promise.all(asked)) assertUnavailable(outcome);
  world.add(frozen);
  await world.back();
  if (termOf(frozen, world.stage.storeName) === term) {
    world.faults.push(`ClusterNode ${term} was silent, lost its cells, and went on`);
  }
  return 1;
}

/** Ends the sessions that a condition names; the same process serves again. */
function ending(kind: string, text: string, condition: string): Fault {
  return {
    kind,
    text,
    needs: "server",
    weight: 1,
    isOfDatabase: true,
    strike: async (world) => {
      await terminate(world, condition);
      return await sameIsBack(world);
    },
  };
}

/** The kinds of this file. */
export const SERVER_FAULTS: readonly Fault[] = [
  ending("writer", "pg_terminate_backend of the sessions that append", LOCKING),
  {
    kind: "one-writer",
    text: "pg_terminate_backend of one session that appends, of several processes",
    needs: "nodes",
    weight: 2,
    isOfDatabase: true,
    strike: endOneWriter,
  },
  ending("pool", "pg_terminate_backend of the sessions that read and drain", `not ${LOCKING}`),
  ending("backends", "pg_terminate_backend of every session", "true"),
  {
    kind: "commit",
    text: "pg_terminate_backend while a commit is being written",
    needs: "server",
    weight: 4,
    isOfDatabase: true,
    strike: (world) => endAt(world, momentOfCommit(world)),
  },
  {
    kind: "tables",
    text: "pg_terminate_backend, or SIGKILL of the process, amid a drain's transaction",
    needs: "server",
    weight: 2,
    strike: drainEnds,
  },
  {
    kind: "refuse",
    text: "every session ended, and no new ones for seconds",
    needs: "server",
    weight: 1,
    isOfDatabase: true,
    strike: refuseConnections,
  },
  {
    kind: "cut",
    text: "the cable to the server cut, at once or for seconds",
    needs: "cable",
    weight: 2,
    isOfDatabase: true,
    strike: cut,
  },
  {
    kind: "channel",
    text: "channels between processes cut, at once or for seconds",
    needs: "channel",
    weight: 3,
    strike: cutChannel,
  },
  {
    kind: "queries",
    text: "the cable cut after queries that never arrived",
    needs: "cable",
    weight: 2,
    isOfDatabase: true,
    strike: (world) => swallow(world, "query"),
  },
  {
    kind: "answers",
    text: "the cable cut after commits whose answers never arrived",
    needs: "cable",
    weight: 3,
    isOfDatabase: true,
    strike: (world) => swallow(world, "answer"),
  },
  {
    kind: "silent",
    text: "the cable silent for seconds, longer than a process may answer, then cut",
    needs: "cable",
    weight: 1,
    isOfDatabase: true,
    strike: silence,
  },
  {
    kind: "moves",
    text: "SIGKILL or SIGTERM of one of several processes while cells move to a newcomer",
    needs: "nodes",
    weight: 3,
    strike: amidMoves,
  },
  {
    kind: "freeze",
    text: "SIGSTOP of one of several processes until others have its cells, then SIGCONT",
    needs: "nodes",
    weight: 1,
    strike: freeze,
  },
  {
    kind: "server-kill",
    text: "SIGKILL of the whole server",
    needs: "own server",
    weight: 2,
    strike: (world) => crashServer(world, "SIGKILL"),
  },
  {
    kind: "server-quit",
    text: "immediate shutdown of the server",
    needs: "own server",
    weight: 1,
    strike: (world) => crashServer(world, "SIGQUIT"),
  },
  {
    kind: "tail",
    text: "immediate shutdown of the server that undoes the last drains",
    needs: "own server",
    weight: 2,
    strike: loseTail,
  },
  {
    kind: "backend",
    text: "SIGKILL of a session while its commit is being written",
    needs: "own server",
    weight: 3,
    strike: killBackend,
  },
];
