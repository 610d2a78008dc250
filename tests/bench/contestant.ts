// What every contestant has in common: how the benchmark sees it (Contestant, Running), how a baseline serves as a
// process of its own, and the request and answer that all baselines share. A baseline does the same logical work as
// Holdfast's reserve: check the quota, count, write a reservation, answer in the same envelope.
import { Hono } from "hono";
import { Child, type Cleanup } from "./processes.ts";

/** What a contestant is given to start with. */
export interface Bench {
  databaseUrl: string;
  /** Users beside those that every run has. */
  needs: Needs;
  cleanup: Cleanup;
  progress(text: string): void;
}

/** Which users a run needs beside those that every run has: such as no contestant has in memory, members of an account. */
export interface Needs {
  readonly cold: boolean;
  readonly members: boolean;
}

/** A contestant that answers. */
export interface Running {
  port: number;
  authorization: string;
  /** Its process, for what it uses of the machine. */
  pid: number;
  /** Where the drain's backlog can be read, for a contestant that has one. */
  metricsUrl?: string;
}

/** One row or more of the table. */
export interface Contestant {
  name: string;
  /** Whether it is the whole service: it then also settles, reads, spends credits and loads cold users. */
  isService?: boolean;
  /** Starts it, or throws Skipped with the reason. */
  start(bench: Bench): Promise<Running>;
}

/** Thrown by a contestant that can't run here, which is no failure of the benchmark. */
export class Skipped extends Error {
  override name = "Skipped";
}

/** What postgres.js asks the environment for. */
export const POSTGRES_ENV = "DATABASE_URL,PG*,USER,USERNAME,LOGNAME";

/** Starts a contestant's own file as a Deno child and waits for the port that it prints. */
export async function startBaseline(
  bench: Bench,
  file: string,
  permissions: string[],
  env: Record<string, string> = {},
): Promise<Running> {
  const path = new URL(file).pathname;
  const args = ["run", "--lock=tests/deno.lock", "--quiet", "--no-prompt", ...permissions, path];
  const child = Child.start(bench.cleanup, path.slice(path.lastIndexOf("/") + 1), "deno", args, env);
  const { port } = JSON.parse(await child.firstLine(60_000));
  return { port, pid: child.pid, authorization: "Bearer hf_live_secret_0123456789abcdefghijklmnop" };
}

/** What a baseline says about one reserve. */
export interface Verdict {
  allowed: boolean;
  quota: number;
  used: number;
}

/** A reservation that is about to be written. */
export interface Reserve {
  userId: string;
  event: string;
  count: number;
  reservationId: string;
  expiresAt: string;
}

const TTL_MS = 600_000;
let sequence = 0;

/** Ids that grow with time, so that the baselines' indexes have the same locality as Holdfast's. */
function newReservationId(nowMs: number): string {
  sequence = (sequence + 1) % 0x100000000;
  return `rsv_${nowMs.toString(36)}${sequence.toString(36).padStart(7, "0")}`;
}

/** The app of a baseline: parses, decides with the given storage, answers. */
export function baselineApp(decide: (reserve: Reserve) => Verdict | Promise<Verdict>): Hono {
  const app = new Hono();
  app.post("/api/v1/reserve", async (c) => {
    const body = await c.req.json();
    if (typeof body.userId !== "string" || typeof body.event !== "string" || !Number.isInteger(body.count)) {
      return c.json({ ok: false, error: { code: "invalid_request" } }, 400);
    }
    const nowMs = Date.now();
    const reserve: Reserve = {
      userId: body.userId,
      event: body.event,
      count: body.count,
      reservationId: newReservationId(nowMs),
      expiresAt: new Date(nowMs + TTL_MS).toISOString(),
    };
    const { allowed, quota, used } = await decide(reserve);
    const groups = [{ groupId: "lg_bench_images", unit: "count", quota, current: used }];
    if (!allowed) return c.json({ ok: true, data: { allowed, reasons: ["limit_reached"], groups } });
    const { reservationId, expiresAt } = reserve;
    return c.json({ ok: true, data: { allowed, reservationId, expiresAt, groups } });
  });
  return app;
}

/** Serves a baseline on a free port, prints the port, and ends when its parent is gone. */
export async function serveBaseline(app: Hono): Promise<void> {
  Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    onListen: ({ port }) => console.log(JSON.stringify({ port })),
  }, app.fetch);
  // The parent holds the other end of stdin and never writes: its end means that the parent ended, however it did.
  await Deno.stdin.readable.pipeTo(new WritableStream());
  Deno.exit(0);
}
