// The kinds of fault that a campaign does between the process and its server: sessions ended in chosen moments, the
// cable cut on either side of a commit, the server killed, and a standby that takes over from a writer that is dead
// or only seems to be.

import { askWhileStopped, assertStandby, SILENT_TAKEOVER_MS, startStandby, TAKEOVER_MS } from "./standby.ts";
import type { Fault } from "./faults.ts";
import { replace } from "./faults.ts";
import { pause } from "./program.ts";
import { readiness, untilReady } from "./stage.ts";
import type { World } from "./world.ts";

const HUNT_MS = 3_000;
const OUTAGE_MAX_MS = 3_000;
/** Time in which a process notices what was done to it, so that readiness means something again. */
const NOTICE_MS = 250;

/** Sessions of the program; the writer's is the one that holds the lease. */
const OTHERS = "pid <> pg_backend_pid()";
const WRITER = "pid in (select pid from pg_locks where locktype = 'advisory' and granted)";
/** A commit is at work when the log is being flushed for a statement that is a transaction of its own. */
const IN_COMMIT = "wait_event in ('WALSync', 'WALWrite')";
const DELAYED = "state = 'active' and wait_event is null and query like 'insert into journal%'";
const IN_DRAIN =
  "xact_start is not null and query ~* '^(copy|delete from journal|insert into [a-z_]+ \\(.*staged)'";

async function terminate(world: World, which: string): Promise<number> {
  const { admin, name } = world.stage.server;
  const ended = await admin.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and ${OTHERS} and ${which}`,
    [name],
  );
  return ended.length;
}

/** Waits on the server for a session in a moment, and ends it there and then if told so; answers whose it was. */
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
    random.chance(0.7) ? WRITER : "true"
  }`;
}

async function drainEnds(world: World): Promise<number | null> {
  if (world.random.chance(0.5)) return await endAt(world, IN_DRAIN);
  if (await hunt(world, IN_DRAIN, false) === null) return null;
  await replace(world);
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
  if (world.random.chance(0.5)) world.cable?.cut();
  else await world.cable?.cutFor(world.random.next() * OUTAGE_MAX_MS);
  return await sameIsBack(world);
}

async function swallow(world: World, direction: "query" | "answer"): Promise<number> {
  await world.cable?.swallow(direction, world.random.pick([1, 5, 20, 200]) * world.random.next());
  return await sameIsBack(world);
}

async function crashServer(world: World, signal: "SIGKILL" | "SIGQUIT"): Promise<number> {
  await world.cluster?.crash(signal);
  await pause(world.random.pick([0, 0, 1_500]) * world.random.next());
  await world.cluster?.start();
  return await sameIsBack(world);
}

/** SIGKILL of the session that commits: the server drops everybody and recovers from its log. */
async function killBackend(world: World): Promise<number | null> {
  const victim = await hunt(world, momentOfCommit(world), false);
  if (victim === null) return null;
  world.cluster?.killBackend(victim);
  await pause(NOTICE_MS);
  await world.cluster?.start();
  return await sameIsBack(world);
}

async function takeOver(world: World): Promise<number> {
  const standby = await startStandby(world.stage, world.settings);
  world.load.origins = [world.writer.origin, standby.origin];
  await pause(world.random.whole(50, 500));
  world.writer.program.signal("SIGKILL");
  await untilReady(standby.origin, TAKEOVER_MS);
  await world.writer.program.ended;
  world.moveTo(standby);
  return 1;
}

/** Stopped for longer than the lease: what it says when it wakes beside its successor must be that it cannot answer. */
async function freeze(world: World): Promise<number> {
  const frozen = world.writer;
  const standby = await startStandby(world.stage, world.settings);
  await pause(world.random.whole(50, 500));
  frozen.program.signal("SIGSTOP");
  await untilReady(standby.origin, SILENT_TAKEOVER_MS);
  world.moveTo(standby);
  await pause(world.random.whole(0, 800));
  const asked = await askWhileStopped(world.stage, frozen);
  frozen.program.signal("SIGCONT");
  for (const outcome of await Promise.all(asked)) assertStandby(outcome);
  const status = await readiness(frozen.origin);
  if (status !== 503) world.faults.push(`A writer that was stopped and woke is ready with ${status}`);
  await frozen.program.kill();
  return 1;
}

/** Ends the sessions that a condition names; the same process serves again. */
function ending(kind: string, text: string, condition: string): Fault {
  return {
    kind,
    text,
    needs: "server",
    weight: 1,
    strike: async (world) => {
      await terminate(world, condition);
      return await sameIsBack(world);
    },
  };
}

/** The kinds of this file. */
export const SERVER_FAULTS: readonly Fault[] = [
  ending("writer", "pg_terminate_backend of the session that appends", WRITER),
  ending("pool", "pg_terminate_backend of the sessions that read and drain", `not ${WRITER}`),
  ending("backends", "pg_terminate_backend of every session", "true"),
  {
    kind: "commit",
    text: "pg_terminate_backend while a commit is being written",
    needs: "server",
    weight: 4,
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
    strike: refuseConnections,
  },
  {
    kind: "cut",
    text: "the cable to the server cut, at once or for seconds",
    needs: "cable",
    weight: 2,
    strike: cut,
  },
  {
    kind: "queries",
    text: "the cable cut after queries that never arrived",
    needs: "cable",
    weight: 2,
    strike: (world) => swallow(world, "query"),
  },
  {
    kind: "answers",
    text: "the cable cut after commits whose answers never arrived",
    needs: "cable",
    weight: 3,
    strike: (world) => swallow(world, "answer"),
  },
  {
    kind: "takeover",
    text: "SIGKILL of the writer while a standby waits",
    needs: "server",
    weight: 1,
    strike: takeOver,
  },
  {
    kind: "freeze",
    text: "SIGSTOP for longer than the lease, SIGCONT beside the successor",
    needs: "server",
    weight: 1,
    strike: freeze,
  },
  {
    kind: "server-kill",
    text: "SIGKILL of the whole server",
    needs: "cluster",
    weight: 2,
    strike: (world) => crashServer(world, "SIGKILL"),
  },
  {
    kind: "server-quit",
    text: "immediate shutdown of the server",
    needs: "cluster",
    weight: 1,
    strike: (world) => crashServer(world, "SIGQUIT"),
  },
  {
    kind: "backend",
    text: "SIGKILL of a session while its commit is being written",
    needs: "cluster",
    weight: 3,
    strike: killBackend,
  },
];
