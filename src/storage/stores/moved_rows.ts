// Removes what a split leaves behind: rows of workspaces that another store serves now. No process has them in memory or
// writes them. The row of the workspace itself is removed last, so a run that was interrupted is continued by the next one.

import { arrayText, type Session } from "../database.ts";
import { CELL_OF_WORKSPACE } from "../nodes/moved_cells.ts";

/** How many users lose their rows in one step, with up to `limit` rows of each table. */
const STEP_USERS = 100;

/** Tables by the column that names the owner of a row. */
interface OwnedTables {
  readonly userKey: readonly string[];
  readonly realm: readonly string[];
  readonly app: readonly string[];
  readonly workspace: readonly string[];
}

/** Tables in which the rows of a workspace are removed last. */
const LAST = ["realms", "apps", "users"];
/** The audit log is append-only: its rows stay, without the ids of users. */
const AUDIT = "audit";
/** The value stored there in place of the id of a user. */
export const MOVED_USER = "moved";

/** Removes some rows of one workspace that another store serves; returns how many, 0 when nothing is left. */
export async function deleteMovedRows(session: Session, limit: number): Promise<number> {
  const [workspace] = await session.query<{ id: string }>(
    `select w.id from workspaces w join cells c on c.cell = ${CELL_OF_WORKSPACE} join stores s on s.number = c.store
     where s.state = 'open' and s.cluster_id <> (select cluster_id from registry)
     order by w.id limit 1 for update of w skip locked`,
  );
  if (workspace === undefined) return 0;
  const apps = arrayText(
    await valuesOf(session, "select id as value from apps where workspace_id = $1", [workspace.id]),
  );
  const realms = arrayText(
    await valuesOf(session, "select realm as value from realms where app_id = any($1::text::text[])", [apps]),
  );
  const tables = await ownedTables(session);
  const keys = arrayText(
    await valuesOf(
      session,
      `select key as value from users where realm = any($1::text::int[]) limit ${STEP_USERS}`,
      [realms],
    ),
  );
  const ofUsers = await deleteFrom(
    session,
    tables.userKey,
    "user_key = any($1::text::bigint[])",
    keys,
    limit,
  );
  if (ofUsers > 0) return ofUsers;
  const users = await session.query("delete from users where key = any($1::text::bigint[]) returning 1", [
    keys,
  ]);
  if (users.length > 0) return users.length;
  const ofRealms = await deleteOfRealms(session, tables.realm, realms, limit);
  if (ofRealms > 0) return ofRealms;
  const ofApps = await forgetAudited(session, apps, limit) +
    await deleteFrom(session, tables.app, "app_id = any($1::text::text[])", apps, limit);
  if (ofApps > 0) return ofApps;
  const own = arrayText([workspace.id]);
  const ofWorkspace = await deleteFrom(
    session,
    tables.workspace,
    "workspace_id = any($1::text::text[])",
    own,
    limit,
  );
  if (ofWorkspace > 0) return ofWorkspace;
  await session.query("delete from realms where realm = any($1::text::int[])", [realms]);
  await session.query("delete from apps where id = any($1::text::text[])", [apps]);
  await session.query("delete from workspaces where id = $1", [workspace.id]);
  return 1;
}

async function valuesOf(
  session: Session,
  text: string,
  params: readonly string[],
): Promise<(string | number)[]> {
  const rows = await session.query<{ value: string | number }>(text, params);
  return rows.map(({ value }) => value);
}

/** Reads which tables have rows of workspaces, from the schema itself, so that no later table is left out. */
async function ownedTables(session: Session): Promise<OwnedTables> {
  const columns = await session.query<{ name: string; owner: string }>(
    `select c.relname as name, a.attname as owner from pg_class c join pg_attribute a on a.attrelid = c.oid
     where c.relkind = 'r' and c.relnamespace = current_schema()::regnamespace and a.attnum > 0
       and a.attname in ('user_key', 'realm', 'app_id', 'workspace_id') order by c.relname`,
  );
  const of = (owner: string) =>
    columns.filter((row) => row.owner === owner && row.name !== AUDIT && !LAST.includes(row.name))
      .map(({ name }) => name);
  return { userKey: of("user_key"), realm: of("realm"), app: of("app_id"), workspace: of("workspace_id") };
}

/** Removes up to `limit` rows of each table. */
async function deleteFrom(
  session: Session,
  tables: readonly string[],
  owned: string,
  owners: string,
  limit: number,
): Promise<number> {
  let deleted = 0;
  for (const table of tables) {
    const rows = await session.query(
      `delete from ${table} where ctid = any(array(select ctid from ${table} where ${owned} limit $2::int)) returning 1`,
      [owners, limit],
    );
    deleted += rows.length;
  }
  return deleted;
}

/** Rows of people refer to each other, and those of ids and events to people. */
async function deleteOfRealms(
  session: Session,
  tables: readonly string[],
  realms: string,
  limit: number,
): Promise<number> {
  const owned = "realm = any($1::text::int[])";
  const others = tables.filter((table) => table !== "people");
  const deleted = await deleteFrom(session, others, owned, realms, limit);
  if (deleted > 0) return deleted;
  const parted = await session.query(
    `update people set merged_into = null where ctid = any(array(
       select ctid from people where ${owned} and merged_into is not null limit $2::int)) returning 1`,
    [realms, limit],
  );
  return parted.length > 0 ? parted.length : await deleteFrom(session, ["people"], owned, realms, limit);
}

/** Erases the users of apps from the audit log. */
async function forgetAudited(session: Session, apps: string, limit: number): Promise<number> {
  await session.query("select set_config('holdfast.erasing', 'on', true)");
  const rows = await session.query(
    `update audit set user_id = $3, before = null, after = null where ctid = any(array(
       select ctid from audit where app_id = any($1::text::text[]) and user_id <> $3 limit $2::int)) returning 1`,
    [apps, limit, MOVED_USER],
  );
  return rows.length;
}
