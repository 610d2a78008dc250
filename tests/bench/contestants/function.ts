// One round trip: a PL/pgSQL function checks the quota, counts and inserts the reservation, called once a request.
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

const SCHEMA = "bench_function";

const FUNCTION = `
  create function reserve(
    p_id text, p_user text, p_event text, p_amount bigint, p_expires timestamptz,
    out allowed boolean, out quota bigint, out used bigint
  ) language plpgsql as $$
  begin
    update counters as c set used = c.used + p_amount
      where c.user_id = p_user and c.used + p_amount <= c.quota
      returning c.quota, c.used into quota, used;
    allowed := found;
    if allowed then
      insert into reservations (id, user_id, event, amount, expires_at)
        values (p_id, p_user, p_event, p_amount, p_expires);
    else
      select c.quota, c.used into quota, used from counters as c where c.user_id = p_user;
    end if;
  end $$`;

/** One PL/pgSQL function a request. */
export const plpgsql: Contestant = {
  name: "function",
  start: async (bench) => {
    await fillCounters(bench.databaseUrl, SCHEMA, `${COUNTER_TABLES}; ${FUNCTION}`);
    const permissions = ["--allow-net=127.0.0.1,localhost", `--allow-env=${POSTGRES_ENV}`];
    return await startBaseline(bench, import.meta.url, permissions, { DATABASE_URL: bench.databaseUrl });
  },
};

function decideWith(sql: postgres.Sql): (reserve: Reserve) => Promise<Verdict> {
  return async ({ reservationId, userId, event, count, expiresAt }) => {
    const [row] = await sql`
      select allowed, quota, used from reserve(${reservationId}, ${userId}, ${event}, ${count}, ${expiresAt})`;
    return { allowed: row?.allowed === true, quota: Number(row?.quota ?? 0), used: Number(row?.used ?? 0) };
  };
}

if (import.meta.main) {
  const sql = postgres(Deno.env.get("DATABASE_URL")!, { ...POOL, connection: { search_path: SCHEMA } });
  await serveBaseline(baselineApp(decideWith(sql)));
}
