// Failovers by Patroni, with etcd and HAProxy, on this machine and with the unchanged files of src/operations/failover:
// the primary is killed again and again under load, and every answer is then looked for.
//
//     deno run --lock=tests/deno.lock -A tests/crash/patroni.ts 10       # minutes
//
// Needs Debian's patroni, etcd-server, python3-etcd, haproxy and postgresql, root, the names db1 and db2 in /etc/hosts
// for 127.0.0.2 and 127.0.0.3, and the ports 2379, 2380 and 5000. In every other round Patroni dies with its server.

import { openPostgres } from "../../src/storage/postgres_database.ts";
import { auditServing } from "./audit.ts";
import { Load } from "./load.ts";
import { startNodes } from "./nodes.ts";
import { ownerOf } from "./own_server.ts";
import { pause, until } from "./program.ts";
import { Stage, untilReady } from "./stage.ts";

const FILES = new URL("../../src/operations/failover/", import.meta.url).pathname;
const ETCD = "127.0.0.1:2379";
const NAMES = ["db1", "db2"] as const;
const EVERY_MS = 30_000;
const READY_MS = 120_000;
/** A pause between answers that is reported. */
const GAP_MS = 500;
const PASSWORD = "patroni-test-only";

type Name = typeof NAMES[number];

const folder = await Deno.makeTempDir({ prefix: "holdfast_patroni_" });
const owner = await ownerOf("postgres");
await Deno.chown(folder, owner.uid as number, owner.gid as number);
const running = new Map<string, Deno.ChildProcess>();

function start(name: string, program: string, args: readonly string[], env: Record<string, string> = {}) {
  const line = `exec "$0" "$@" >> '${folder}/${name}.log' 2>&1`;
  const child = new Deno.Command("sh", {
    args: ["-c", line, program, ...args],
    cwd: folder,
    ...owner,
    env: { HOME: folder, ...env },
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn();
  running.set(name, child);
}

async function stop(name: string, signal: Deno.Signal): Promise<void> {
  const child = running.get(name);
  running.delete(name);
  try {
    child?.kill(signal);
  } catch {
    // It ended by itself in between.
  }
  await child?.status;
}

function startPatroni(name: Name): void {
  start(name, "patroni", [`${FILES}patroni.yaml`], {
    PATRONI_NAME: name,
    PATRONI_ETCD3_HOSTS: ETCD,
    PATRONI_RESTAPI_LISTEN: `${name}:8008`,
    PATRONI_RESTAPI_CONNECT_ADDRESS: `${name}:8008`,
    PATRONI_POSTGRESQL_LISTEN: `${name}:5432`,
    PATRONI_POSTGRESQL_CONNECT_ADDRESS: `${name}:5432`,
    PATRONI_POSTGRESQL_DATA_DIR: `${folder}/${name}`,
    PATRONI_POSTGRESQL_PGPASS: `${folder}/${name}.pgpass`,
    PATRONI_POSTGRESQL_BIN_DIR: "/usr/lib/postgresql/15/bin",
    PATRONI_SUPERUSER_PASSWORD: PASSWORD,
    PATRONI_REPLICATION_PASSWORD: PASSWORD,
  });
}

/** The primary, once the other server is its synchronous standby. */
function settled(): Promise<Name> {
  return until("a primary with a synchronous standby", READY_MS, async () => {
    const [primary, other] = await inRole("primary");
    if (primary !== undefined && other === undefined && await hasStandby(primary)) return primary;
    await pause(200);
    return null;
  });
}

/**
 * Whether a failover is possible: the primary's commits wait for the other server, and Patroni has written that down. It
 * promotes no other server.
 */
async function hasStandby(name: Name): Promise<boolean> {
  const database = openPostgres(urlOf(`${name}:5432`), 1);
  try {
    const waiting = await database.query("select from pg_stat_replication where sync_state = 'sync'");
    const answer = await fetch(`http://${name}:8008/cluster`, { signal: AbortSignal.timeout(2_000) });
    const { members } = await answer.json() as { members: { name: string; role: string }[] };
    const roleOf = (member: Name) => members.find((each) => each.name === member)?.role;
    const other = NAMES.find((each) => each !== name) as Name;
    return waiting.length === 1 && roleOf(name) === "leader" && roleOf(other) === "sync_standby";
  } catch {
    return false;
  } finally {
    await database.close();
  }
}

function urlOf(place: string): string {
  return `postgres://postgres:${PASSWORD}@${place}/postgres`;
}

async function inRole(role: string): Promise<Name[]> {
  const states = await Promise.all(NAMES.map(async (name) => {
    try {
      const answer = await fetch(`http://${name}:8008/${role}`, { signal: AbortSignal.timeout(2_000) });
      await answer.body?.cancel();
      return answer.status === 200;
    } catch {
      return false;
    }
  }));
  return NAMES.filter((_, place) => states[place]);
}

/** Kills the primary's PostgreSQL, and its Patroni too if asked. */
async function killPrimary(name: Name, withPatroni: boolean): Promise<void> {
  if (withPatroni) await stop(name, "SIGKILL");
  const [pid = ""] = (await Deno.readTextFile(`${folder}/${name}/postmaster.pid`)).split("\n");
  Deno.kill(Number(pid), "SIGKILL");
}

/** The pauses between answers in a time. */
function gapsOf(load: Load): number[] {
  const times = [...load.record.calls.values()].flatMap(({ answeredAt, fate }) =>
    answeredAt !== null && fate === "acked" ? [answeredAt] : []
  ).sort((a, b) => a - b);
  return times.flatMap((time, place) => {
    const gap = place === 0 ? 0 : time - (times[place - 1] as number);
    return gap > GAP_MS ? [Math.round(gap)] : [];
  });
}

async function run(minutes: number): Promise<number> {
  start("etcd", "etcd", ["--data-dir", `${folder}/etcd`]);
  await pause(2_000);
  startPatroni("db1");
  await until(
    "the first server is primary",
    READY_MS,
    async () => (await inRole("primary")).length > 0 || null,
  );
  startPatroni("db2");
  start("haproxy", "haproxy", ["-f", `${FILES}haproxy.cfg`, "-db"]);
  await settled();
  await using stage = await Stage.open(urlOf("127.0.0.1:5000"));
  // The servers are removed with their folder.
  stage.isKept = true;
  // The server sees them connect from the balancer.
  const nodes = await startNodes(stage, 2, { HOLDFAST_CLUSTER_ADDRESS: "127.0.0.1:0" });
  const origin = nodes[0]?.origin as string;
  await stage.populate(origin);
  const load = new Load(origin, stage.secretKey);
  load.origins = nodes.map((node) => node.origin);
  load.pauseMaxMs = 60;
  load.start();
  const endsAt = performance.now() + minutes * 60_000;
  let kills = 0;
  while (performance.now() < endsAt) {
    const nextAt = performance.now() + EVERY_MS;
    const victim = await settled();
    const isWhole = kills++ % 2 === 1;
    console.log(`kill ${kills}: ${victim}${isWhole ? " and its Patroni" : ""}`);
    await killPrimary(victim, isWhole);
    await until("the other server is primary", READY_MS, async () => {
      const [primary] = await inRole("primary");
      if (primary !== undefined && primary !== victim) return true;
      await pause(200);
      return null;
    });
    if (isWhole) startPatroni(victim);
    await pause(Math.max(0, nextAt - performance.now()));
  }
  await settled();
  for (const node of nodes) await untilReady(node.origin, READY_MS);
  await load.stop();
  const calls = [...load.record.calls.values()];
  const acknowledged = calls.filter(({ fate }) => fate === "acked").length;
  const gaps = gapsOf(load);
  const faults = await auditServing(stage, load, origin);
  console.log(
    `${kills} kills, ${calls.length} calls, ${acknowledged} acknowledged, faults: ${faults.length}`,
  );
  console.log(`pauses between answers over ${GAP_MS} ms: ${gaps.join(", ")}`);
  for (const fault of faults) console.log(fault);
  return faults.length === 0 ? 0 : 1;
}

let status = 1;
try {
  status = await run(Number(Deno.args[0] ?? 2));
} finally {
  await stop("haproxy", "SIGTERM");
  for (const name of NAMES) await stop(name, "SIGTERM");
  await stop("etcd", "SIGTERM");
  if (status === 0) await Deno.remove(folder, { recursive: true });
  else console.log(`Logs: ${folder}`);
}
Deno.exit(status);
