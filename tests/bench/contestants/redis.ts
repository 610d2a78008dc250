// Redis with the same durability: a Lua script checks the quota, counts and writes the reservation, and the append-only
// file is synced before an answer. The redis-server is the benchmark's own, on a free port with a folder of its own;
// where none is installed the contestant is skipped.
import {
  baselineApp,
  type Bench,
  type Contestant,
  type Reserve,
  serveBaseline,
  Skipped,
  startBaseline,
  type Verdict,
} from "../contestant.ts";
import { Child, freePort, TEMP } from "../processes.ts";

const QUOTA = 1_000_000_000;

const SCRIPT = `
  local used = tonumber(redis.call('HGET', KEYS[1], 'used') or '0')
  if used + tonumber(ARGV[1]) > tonumber(ARGV[2]) then return {0, used} end
  used = redis.call('HINCRBY', KEYS[1], 'used', ARGV[1])
  redis.call('HSET', KEYS[2], 'userId', ARGV[3], 'event', ARGV[4], 'amount', ARGV[1],
    'status', 'held', 'expiresAt', ARGV[5])
  return {1, used}`;

/** Redis with a Lua script and appendfsync always. */
export const redis: Contestant = {
  name: "redis",
  start: async (bench) => {
    const port = await startRedisServer(bench);
    const permissions = ["--allow-net=127.0.0.1", "--allow-env"];
    return await startBaseline(bench, import.meta.url, permissions, { REDIS_PORT: String(port) });
  },
};

/** Starts a server that syncs before each answer. */
export async function startRedisServer(bench: Bench): Promise<number> {
  const folder = await Deno.makeTempDir({ dir: TEMP, prefix: "holdfast_bench_redis_" });
  bench.cleanup.add(`remove ${folder}`, () => Deno.remove(folder, { recursive: true }));
  const port = freePort();
  const args = ["--port", String(port), "--bind", "127.0.0.1", "--dir", folder, "--save", ""];
  args.push("--appendonly", "yes", "--appendfsync", "always");
  let server: Child;
  try {
    server = Child.start(bench.cleanup, "redis-server", "redis-server", args);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotCapable) {
      throw new Skipped("redis-server is not installed");
    }
    throw error;
  }
  server.drainStdout();
  await waitForPort(port, server);
  return port;
}

async function waitForPort(port: number, server: Child): Promise<void> {
  for (let tries = 0; tries < 100 && !server.ended; tries++) {
    try {
      using _connection = await Deno.connect({ hostname: "127.0.0.1", port });
      return;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
  throw new Error(`redis-server did not start: ${server.tail}`);
}

/** Connects and returns what asks for a reserve. One connection: the client pipelines what waits, and the server syncs once for all that it read at a time. */
export async function evalOf(port: number): Promise<(reserve: Reserve) => Promise<Verdict>> {
  // Imported here so that the benchmark itself runs where neither Redis nor its client is wanted.
  const { createClient } = await import("npm:@redis/client@6.3.1");
  const client = createClient({ url: `redis://127.0.0.1:${port}` });
  await client.connect();
  const sha = await client.scriptLoad(SCRIPT);
  return async (reserve) => {
    const answer = await client.evalSha(sha, {
      keys: [`counter:${reserve.userId}`, `reservation:${reserve.reservationId}`],
      arguments: [String(reserve.count), String(QUOTA), reserve.userId, reserve.event, reserve.expiresAt],
    });
    const [allowed, used] = answer as [number, number];
    return { allowed: allowed === 1, quota: QUOTA, used };
  };
}

if (import.meta.main) {
  await serveBaseline(baselineApp(await evalOf(Number(Deno.env.get("REDIS_PORT")))));
}
