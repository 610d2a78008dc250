// The textbook way: one transaction a request that locks the user's counter row, checks it in the program, updates it
// and inserts the reservation.
import postgres from "postgres";
import {
  baselineApp,
  type Contestant,
  POSTGRES_ENV,
  type Reserve,
  serveBaseline,
  startBaseline,
  type Verdict,
} from "../contestant.ts";
import { COUNTER_TABLES, fillCounters, POOL } from "../counter_tables.ts";

const SCHEMA = "bench_transaction";

/** A transaction a request. */
export const transaction: Contestant = {
  name: "transaction",
  start: async (bench) => {
    await fillCounters(bench.databaseUrl, SCHEMA, COUNTER_TABLES);
    const permissions = ["--allow-net=127.0.0.1,localhost", `--allow-env=${POSTGRES_ENV}`];
    return await startBaseline(bench, import.meta.url, permissions, { DATABASE_URL: bench.databaseUrl });
  },
};

function decideWith(sql: postgres.Sql): (reserve: Reserve) => Promise<Verdict> {
  return (reserve) =>
    sql.begin(async (tx): Promise<Verdict> => {
      const [counter] =
        await tx`select quota, used from counters where user_id = ${reserve.userId} for update`;
      if (counter === undefined) return { allowed: false, quota: 0, used: 0 };
      const quota = Number(counter.quota);
      const used = Number(counter.used) + reserve.count;
      if (used > quota) return { allowed: false, quota, used: Number(counter.used) };
      await tx`update counters set used = ${used} where user_id = ${reserve.userId}`;
      await tx`insert into reservations (id, user_id, event, amount, expires_at)
        values (${reserve.reservationId}, ${reserve.userId}, ${reserve.event}, ${reserve.count}, ${reserve.expiresAt})`;
      return { allowed: true, quota, used };
    });
}

if (import.meta.main) {
  const sql = postgres(Deno.env.get("DATABASE_URL")!, { ...POOL, connection: { search_path: SCHEMA } });
  await serveBaseline(baselineApp(decideWith(sql)));
}
