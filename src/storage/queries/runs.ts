// Runs as lists show them. Callers first settle what is due of the user and wait for the drain, so that the counts hold no
// lapsed reservation.

import { ENDED_KEPT_MS, type Run } from "../../domain/state/run.ts";
import type { UserKey } from "../../domain/values/ids.ts";
import type { Millis } from "../../domain/values/period.ts";
import { arrayText, type Database, type Param } from "../database.ts";
import type { StoredRow } from "../rows/columns.ts";
import { RUNS } from "../rows/run_rows.ts";

/** A run with the id of its canonical user. */
export interface ListedRun {
  readonly run: Run;
  readonly userId: string;
}

/** The place of a run in the list: its creation time, then its id. */
interface RunPlace {
  readonly createdAt: Millis;
  readonly id: string;
}

/** Selects a page of the runs of a user. */
interface RunsQuery {
  /** The numbers of the user and its aliases. */
  readonly keys: readonly UserKey[];
  readonly now: Millis;
  readonly status: "active" | "ended" | null;
  /** The last run of the previous page; null for the first page. */
  readonly after: RunPlace | null;
  readonly limit: number;
}

/** SQL of the end of a run. */
const END = "coalesce(r.ended_at_ms, r.expires_at_ms)";
/** SQL of the canonical user's id. */
const USER_ID = `(select c.id from users u join users c on c.key = coalesce(u.merged_into, u.key)
  where u.key = r.user_key) as canonical_id`;

/** Lists a page of runs of a user, newest first. */
export async function listRuns(database: Pick<Database, "query">, query: RunsQuery): Promise<ListedRun[]> {
  const { keys, now, status, after, limit } = query;
  const params: Param[] = [arrayText(keys), now, now - ENDED_KEPT_MS, limit];
  const conditions = [`r.user_key = any($1::text::bigint[])`, `${END} >= $3::bigint`];
  const isActive = "r.ended_at_ms is null and r.expires_at_ms > $2::bigint";
  conditions.push(
    status === "ended" ? `not (${isActive})` : status === "active" ? isActive : "$2::bigint >= 0",
  );
  if (after !== null) {
    const [at, id] = [params.push(after.createdAt), params.push(after.id)];
    conditions.push(`(r.created_at_ms, r.id) < ($${at}::bigint, $${id}::text collate "C")`);
  }
  const rows = await database.query<StoredRow>(
    `select r.*, ${USER_ID} from runs r where ${conditions.join(" and ")}
     order by r.created_at_ms desc, r.id desc limit $4::int`,
    params,
  );
  return rows.map(listed);
}

/** Finds the numbers of every user behind one of the ids, with those of their aliases. */
export async function keysBehind(
  database: Pick<Database, "query">,
  realm: number,
  ids: readonly string[],
): Promise<UserKey[]> {
  const rows = await database.query<{ key: number }>(
    `with canonical as (
       select coalesce(merged_into, key) as key from users where realm = $1::int and id = any($2::text::text[])
     )
     select key from canonical union
     select a.key from canonical c join users a on a.merged_into = c.key order by key`,
    [realm, arrayText(ids)],
  );
  return rows.map(({ key }) => key);
}

/** Reads a run of some users; null for none. */
export async function readRun(
  database: Pick<Database, "query">,
  keys: readonly UserKey[],
  id: string,
): Promise<ListedRun | null> {
  const [row] = await database.query<StoredRow>(
    `select r.*, ${USER_ID} from runs r where r.id = $1 and r.user_key = any($2::text::bigint[])`,
    [id, arrayText(keys)],
  );
  return row === undefined ? null : listed(row);
}

function listed(row: StoredRow): ListedRun {
  return { run: RUNS.read(row), userId: row.canonical_id as string };
}

/** Makes the cursor after a run. */
export function runsCursor({ createdAt, id }: RunPlace): string {
  return Buffer.from(`${createdAt} ${id}`).toString("base64url");
}

/** Decodes a cursor; null if it is invalid. */
export function readRunsCursor(cursor: string): RunPlace | null {
  const found = /^(\d{1,15}) (run_\w{1,200})$/.exec(Buffer.from(cursor, "base64url").toString());
  if (found === null) return null;
  const place = { createdAt: Number(found[1]), id: found[2] as string };
  return runsCursor(place) === cursor ? place : null;
}
