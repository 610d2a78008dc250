// The scratch database: made for one run, dropped at its end, with the facts about the server that a reader of the
// numbers needs. Refuses a server that would make the comparison meaningless (no synchronous commit, no fsync).
import postgres from "postgres";
import { type Cleanup } from "./processes.ts";

/** What the server says about itself. */
export interface ServerFacts {
  version: string;
  synchronousCommit: string;
  fsync: string;
}

/** A database that lives as long as the run. */
export interface Scratch {
  url: string;
  facts: ServerFacts;
  /** Writes dirty pages out, so that one contestant does not pay for the one before. */
  checkpoint(): Promise<void>;
}

/** What takes the place of a database where no contestant needs a server. */
export const NO_SCRATCH: Scratch = {
  url: "",
  facts: { version: "embedded", synchronousCommit: "n/a", fsync: "n/a" },
  checkpoint: () => Promise.resolve(),
};

/** Makes `holdfast_bench_<pid>`, with a suffix where a run has several, on the server that `url` points to. */
export async function makeScratch(url: string, cleanup: Cleanup, suffix = ""): Promise<Scratch> {
  const { hostname } = new URL(url);
  if (hostname !== "127.0.0.1" && hostname !== "localhost") {
    throw new Error(`the benchmark stays on this machine; the database is on ${hostname}`);
  }
  const sql = postgres(url, { max: 1, connect_timeout: 5, onnotice: () => {} });
  cleanup.add("close the database connection", () => sql.end({ timeout: 2 }));
  const facts = await readFacts(sql);
  if (facts.synchronousCommit !== "on" || facts.fsync !== "on") {
    throw new Error(`needs synchronous_commit=on and fsync=on: ${JSON.stringify(facts)}`);
  }
  const name = `holdfast_bench_${Deno.pid}${suffix}`;
  // Before it exists: an interruption while it is being made must drop it too, on the same connection, so after it.
  cleanup.add(`drop database ${name}`, async () => {
    await sql.unsafe(`drop database if exists ${name} with (force)`);
  });
  await sql.unsafe(`create database ${name}`);
  const scratchUrl = new URL(url);
  scratchUrl.pathname = `/${name}`;
  return {
    url: scratchUrl.href,
    facts,
    checkpoint: async () => {
      // Only a superuser may; for others the server's own pace has to do.
      await sql.unsafe("checkpoint").catch(() => {});
    },
  };
}

async function readFacts(sql: postgres.Sql): Promise<ServerFacts> {
  const [row] = await sql`
    select current_setting('server_version') as version,
           current_setting('synchronous_commit') as synchronous_commit,
           current_setting('fsync') as fsync`;
  return { version: row?.version, synchronousCommit: row?.synchronous_commit, fsync: row?.fsync };
}
