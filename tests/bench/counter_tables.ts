// The tables of the two PostgreSQL baselines: a counter a user and a reservation a request, in a schema of their own
// for each, so that neither works on tables that the other has bloated.
import postgres from "postgres";
import { USERS } from "./load_plan.ts";

/** Creates the tables in the schema of the search path. */
export const COUNTER_TABLES = `
  create table counters (user_id text primary key, quota bigint not null, used bigint not null);
  create table reservations (
    id text primary key, user_id text not null, event text not null, amount bigint not null,
    status text not null default 'held', created_at timestamptz not null default now(),
    expires_at timestamptz not null)`;

/**
 * Found by trying 4, 8, 16 and 32 connections on two cores: spread users gain up to 16 and little beyond, and with 32
 * the hot user loses, because more sessions queue for the same row.
 */
export const POOL = { max: 16, fetch_types: false, onnotice: () => {} };

/** Makes a schema with tables and a counter with a large quota for each user. */
export async function fillCounters(databaseUrl: string, schema: string, ddl: string): Promise<void> {
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} });
  try {
    await sql.unsafe(`create schema ${schema}; set search_path to ${schema}; ${ddl}`);
    await sql.unsafe(`
      insert into counters select 'user-' || n, 1000000000, 0 from generate_series(0, ${USERS - 1}) as n`);
    await sql.unsafe("vacuum analyze counters");
  } finally {
    await sql.end({ timeout: 2 });
  }
}
