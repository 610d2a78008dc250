// Loads users for the actors: the live rows of many users in one query, and older rows when a command names them. A load
// sees what was drained before it. That is enough, because an actor with undrained changes stays in memory and is never
// loaded.

import type { BalanceRef, IdempotencyRow, LoadedUser, UserRef, UserStore } from "../../../actors/port.ts";
import type { UserKey } from "../../domain/values/ids.ts";
import type { EndUserKey } from "../../domain/state/end_user_key.ts";
import type { Counter } from "../../domain/state/counter.ts";
import { type CreditBalance, NOTIFIED } from "../../domain/state/credit.ts";
import type { Millis } from "../../domain/values/period.ts";
import { countersOf, type Reservation } from "../../domain/state/reservation.ts";
import type { Run } from "../../domain/state/run.ts";
import type { OverageWindow } from "../../domain/state/overage.ts";
import type { Share, ShareLine } from "../../domain/state/share.ts";
import type { Subscription } from "../../domain/state/subscription.ts";
import type { UserSummary } from "../../domain/state/summary.ts";
import type { TopUpIntent } from "../../domain/state/top_up.ts";
import type { CallerTexts } from "../../domain/state/text_room.ts";
import { type Alias, type OlderRows, PATH_MAX, type User } from "../../domain/state/user.ts";
import { HOLD_LIMITS } from "../../process/limits.ts";
import type { StoredRow } from "../rows/columns.ts";
import { CREDIT_BALANCES } from "../rows/credit_rows.ts";
import { arrayText, type Database } from "../database.ts";
import { END_USER_KEYS } from "../rows/end_user_key_rows.ts";
import { openHoldsOf } from "../rows/open_holds.ts";
import { countHistory, loadMerge, loadWhole } from "./merge_store.ts";
import { countChildren, hasTree, heightBelow, someChildren } from "./tree_store.ts";
import { nextKeys } from "../nodes/node_store.ts";
import { COUNTERS, RESERVATIONS } from "../rows/metering_rows.ts";
import { OVERAGE_WINDOWS } from "../rows/overage_rows.ts";
import { RUNS } from "../rows/run_rows.ts";
import { IDEMPOTENCY } from "../rows/runtime_rows.ts";
import { SHARES } from "../rows/share_rows.ts";
import { SUBSCRIPTIONS } from "../rows/subscription_rows.ts";
import { USER_SUMMARIES } from "../rows/summary_rows.ts";
import { TOP_UPS } from "../rows/top_up_rows.ts";
import { USERS } from "../rows/user_rows.ts";

/** Opens a user store on a SQL database. */
export function openUserStore(database: Database): UserStore {
  return {
    load: (refs, now) => load(database, refs, now),
    loadReservation: (owners, id) => loadReservation(database, owners, id),
    loadTexts: (owners, id, createdAt) => loadTexts(database, owners, id, createdAt),
    loadWhole: (owner) => loadWhole(database, owner),
    countHistory: (owners, limit) => countHistory(database, owners, limit),
    hasTree: (realm) => hasTree(database, realm),
    heightBelow: (owners) => heightBelow(database, owners, PATH_MAX),
    someChildren: (owners, limit) => someChildren(database, owners, limit),
    countChildren: (owners) => countChildren(database, owners),
    loadMerge: (fromKey) => loadMerge(database, fromKey),
    loadRuns: (owners, runId) => loadRuns(database, owners, runId),
    loadTopUp: (owners, id) => loadTopUp(database, owners, id),
    loadBalances: (owner, which) => loadBalances(database, owner, which),
    listDue: async (realm, now, limit) => {
      const rows = await database.query<{ key: number }>(
        `select key from users where realm = $1::int and due_at_ms <= $2::bigint
         order by due_at_ms limit $3::int`,
        [realm, now, limit],
      );
      return rows.map(({ key }) => key);
    },
    nextKeys: () => nextKeys(database),
    loadIdempotency: (keys) => loadIdempotency(database, keys),
  };
}

const HOLD_COLUMNS = RESERVATIONS.columns.filter((name) => name !== "metadata" && name !== "prompt").join(
  ", ",
);

/** SQL of the open holds of the users in $1: the first ones of each user with their texts, up to $2 bytes, the rest bare. */
const OPEN_HOLDS = `select ${HOLD_COLUMNS},
    case when bytes <= $2::bigint then metadata end as metadata, case when bytes <= $2::bigint then prompt end as prompt,
    bytes > $2::bigint and (metadata is not null or prompt is not null) as is_bare
  from (${
  openHoldsOf(`*, sum(coalesce(octet_length(metadata), 0) + coalesce(octet_length(prompt), 0))
    over (rows unbounded preceding) as bytes`)
}) as held order by id`;

/** SQL of the runs of the users in $1 that had not ended at $2, and of others with open holds. */
const LIVE_RUNS = `select * from runs where user_key = any($1::text::bigint[]) and ended_at_ms is null
    and expires_at_ms > $2::bigint
  union all
  select * from runs where user_key = any($1::text::bigint[]) and open_holds > 0
    and not (ended_at_ms is null and expires_at_ms > $2::bigint)`;

/** SQL of the latest end of a window of user c that had ended at $3. Slots of rates count no more then. */
const ENDED_UNTIL = `greatest(
    (select max(window_end_ms) from counters
     where user_key = c.key and window_end_ms <= $3::bigint and kind is distinct from 'rate'),
    (select max(window_end_ms) from shares where user_key = c.key and window_end_ms <= $3::bigint))`;

/** SQL of the creation time of the oldest open hold of each user in $1. */
const OLDEST_HOLDS = openHoldsOf("created_at_ms", "order by user_key, created_at_ms limit 1");

async function load(
  database: Database,
  refs: readonly UserRef[],
  now: Millis,
): Promise<(LoadedUser | null)[]> {
  const asked = await loadUsers(database, refs, now);
  const users = new Map(asked.map(({ user }) => [user.key, user]));
  if (users.size === 0) return refs.map(() => null);
  // A decision first settles what fell due, as of the time it fell due: windows are needed from the earliest such time on.
  const from = Math.min(now, ...[...users.values()].map(({ dueAt }) => dueAt ?? now));
  const keyText = arrayText([...users.keys()]);
  const [
    aliases,
    subscriptions,
    counters,
    reservations,
    balances,
    runs,
    shares,
    endUserKeys,
    overages,
    summaries,
  ] = await Promise.all([
    database.query<{ key: number; id: string; merged_into: number }>(
      "select key, id, merged_into from users where merged_into = any($1::text::bigint[]) order by key",
      [keyText],
    ),
    database.query<StoredRow>(
      "select * from subscriptions where user_key = any($1::text::bigint[]) order by id",
      [keyText],
    ),
    database.query<StoredRow>(
      `select * from counters where user_key = any($1::text::bigint[]) and (window_end_ms is null
       or window_end_ms > least($2::bigint, (select min(created_at_ms) from (${OLDEST_HOLDS}) as oldest)))`,
      [keyText, from],
    ),
    database.query<StoredRow>(OPEN_HOLDS, [keyText, HOLD_LIMITS.loadedBytesMax]),
    database.query<StoredRow>(
      `select * from credit_balances where user_key = any($1::text::bigint[]) and (held > 0
       or revoked_at_ms is null and (expires_at_ms is null or expires_at_ms >= $2::bigint)
       or included is not null and (window_end_ms is null or window_end_ms > $2::bigint or (told & ${NOTIFIED.expired}) = 0))
       order by id`,
      [keyText, from],
    ),
    database.query<StoredRow>(LIVE_RUNS, [keyText, from]),
    database.query<StoredRow>(
      `select * from shares where user_key = any($1::text::bigint[]) and (window_end_ms is null
       or window_end_ms > least($2::bigint, (select min(created_at_ms) from (${OLDEST_HOLDS}) as oldest)))`,
      [keyText, from],
    ),
    database.query<StoredRow>(
      "select * from end_user_keys where user_key = any($1::text::bigint[]) and revoked_at_ms is null order by id",
      [keyText],
    ),
    database.query<StoredRow>(
      `select * from overage_windows where user_key = any($1::text::bigint[]) and (window_end_ms is null
       or due_at_ms is not null
       or window_end_ms > least($2::bigint, (select min(created_at_ms) from (${OLDEST_HOLDS}) as oldest)))`,
      [keyText, from],
    ),
    database.query<StoredRow>("select * from user_summaries where user_key = any($1::text::bigint[])", [
      keyText,
    ]),
  ]);
  const loaded = new Map([...users.values()].map((user) => [user.key, emptyRows(user)]));
  for (const { key, id, merged_into: canonical } of aliases) loaded.get(canonical)?.aliases.push({ key, id });
  for (const stored of subscriptions) {
    const row = SUBSCRIPTIONS.read(stored);
    loaded.get(row.userKey)?.subscriptions.push(row);
  }
  for (const stored of counters) {
    const row = COUNTERS.read(stored);
    loaded.get(row.userKey)?.counters.push(row);
  }
  for (const stored of reservations) {
    const row = RESERVATIONS.read(stored);
    loaded.get(row.userKey)?.reservations.push(stored.is_bare === true ? { ...row, isBare: true } : row);
  }
  for (const stored of balances) {
    const row = CREDIT_BALANCES.read(stored);
    loaded.get(row.userKey)?.balances.push(row);
  }
  for (const stored of runs) {
    const row = RUNS.read(stored);
    loaded.get(row.userKey)?.runs.push(row);
  }
  for (const stored of shares) {
    const row = SHARES.read(stored);
    const rows = loaded.get(row.userKey);
    if (rows !== undefined) (rows.shares ??= []).push(row);
  }
  for (const stored of overages) {
    const row = OVERAGE_WINDOWS.read(stored);
    const rows = loaded.get(row.userKey);
    if (rows !== undefined) (rows.overages ??= []).push(row);
  }
  for (const stored of endUserKeys) {
    const row = END_USER_KEYS.read(stored);
    const rows = loaded.get(row.userKey);
    if (rows !== undefined) (rows.endUserKeys ??= []).push(row);
  }
  for (const stored of summaries) {
    const summary = USER_SUMMARIES.read(stored);
    const rows = loaded.get(summary.userKey);
    if (rows !== undefined) rows.summary = summary;
  }
  for (const row of await loadTopUps(database, [...users.values()])) {
    const rows = loaded.get(row.userKey);
    if (rows !== undefined) (rows.topUps ??= []).push(row);
  }
  for (const { user, endedUntil } of asked) {
    const rows = loaded.get(user.key);
    if (rows !== undefined && endedUntil !== null) rows.endedUntil = endedUntil;
  }
  const byName = new Map(asked.map(({ name, user }) => [name, user.key]));
  return refs.map((ref) => {
    const key = byName.get(nameOf(ref));
    return key === undefined ? null : loaded.get(key) ?? null;
  });
}

/** A user with the id by which it was requested, which may be an alias. */
interface AskedUser {
  readonly name: string;
  readonly user: User;
  /** Null where no window of the user had ended. */
  readonly endedUntil: Millis | null;
}

function nameOf(ref: UserRef): string {
  return "key" in ref ? `${ref.realm}#${ref.key}` : `${ref.realm}/${ref.id}`;
}

async function loadUsers(database: Database, refs: readonly UserRef[], now: Millis): Promise<AskedUser[]> {
  const keyed = refs.filter((ref) => "key" in ref);
  const named = refs.filter((ref) => "id" in ref);
  const realmsOf = (some: readonly UserRef[]) => arrayText(some.map(({ realm }) => realm));
  const byKey = keyed.length === 0
    ? []
    : await database.query<StoredRow & { asked: number; ended_until: Millis | null }>(
      `select c.*, u.key as asked, ${ENDED_UNTIL} as ended_until from unnest($1::text::int[], $2::text::bigint[]) as r(realm, key)
     join users u on u.key = r.key and u.realm = r.realm
     join users c on c.key = coalesce(u.merged_into, u.key)`,
      [realmsOf(keyed), arrayText(keyed.map(({ key }) => key)), now],
    );
  const byId = named.length === 0
    ? []
    : await database.query<StoredRow & { asked: string; ended_until: Millis | null }>(
      `select c.*, r.id as asked, ${ENDED_UNTIL} as ended_until from unnest($1::text::int[], $2::text::text[]) as r(realm, id)
     join users u on u.realm = r.realm and u.id = r.id
     join users c on c.key = coalesce(u.merged_into, u.key)`,
      [realmsOf(named), arrayText(named.map(({ id }) => id)), now],
    );
  return [
    ...byKey.map((record) => {
      const user = USERS.read(record);
      return { name: nameOf({ realm: user.realm, key: record.asked }), user, endedUntil: record.ended_until };
    }),
    ...byId.map((record) => {
      const user = USERS.read(record);
      return { name: nameOf({ realm: user.realm, id: record.asked }), user, endedUntil: record.ended_until };
    }),
  ];
}

interface Rows {
  readonly user: User;
  readonly aliases: Alias[];
  readonly subscriptions: Subscription[];
  readonly counters: Counter[];
  readonly reservations: Reservation[];
  readonly balances: CreditBalance[];
  readonly runs: Run[];
  shares?: Share[];
  overages?: OverageWindow[];
  endUserKeys?: EndUserKey[];
  topUps?: TopUpIntent[];
  summary?: UserSummary;
  endedUntil?: Millis;
}

function emptyRows(user: User): Rows {
  return { user, aliases: [], subscriptions: [], counters: [], reservations: [], balances: [], runs: [] };
}

/** Loads the top-ups under way of those users who have, or had, such a setting. */
async function loadTopUps(database: Database, users: readonly User[]): Promise<TopUpIntent[]> {
  const keys = users.filter(({ topUp }) => topUp !== null).map(({ key }) => key);
  if (keys.length === 0) return [];
  const rows = await database.query<StoredRow>(
    `select * from top_ups where user_key = any($1::text::bigint[]) and status in ('open', 'processing') order by id`,
    [arrayText(keys)],
  );
  return rows.map(TOP_UPS.read);
}

/** Loads a top-up, also a settled one. */
async function loadTopUp(database: Database, owners: readonly UserKey[], id: string): Promise<OlderRows> {
  const [canonical] = owners as [UserKey];
  const rows = await database.query<StoredRow>(
    "select * from top_ups where id = $1 and user_key = any($2::text::bigint[])",
    [id, arrayText(owners)],
  );
  return { ...NO_ROWS, topUps: rows.map((row) => ({ ...TOP_UPS.read(row), userKey: canonical })) };
}

/** Loads a settled reservation with the counters of its lines, its runs, and the shares that it took of. */
async function loadReservation(
  database: Database,
  owners: readonly UserKey[],
  id: string,
): Promise<OlderRows> {
  const [canonical] = owners as [UserKey];
  const [record] = await database.query<StoredRow>(
    "select * from reservations where id = $1 and user_key = any($2::text::bigint[]) and status <> 'held'",
    [id, arrayText(owners)],
  );
  if (record === undefined) return NO_ROWS;
  const reservation = { ...RESERVATIONS.read(record), userKey: canonical };
  const starts = countersOf(reservation).map(({ window }) => window.start);
  const ofWindows = async (table: "counters" | "overage_windows") =>
    starts.length === 0 ? [] : await database.query<StoredRow>(
      `select * from ${table} where user_key = $1::bigint and window_start_ms = any($2::text::bigint[])`,
      [canonical, arrayText(starts)],
    );
  const counters = (await ofWindows("counters")).map(COUNTERS.read);
  const overages = (await ofWindows("overage_windows")).map(OVERAGE_WINDOWS.read);
  const { shares, runId } = reservation;
  const runs = runId === undefined ? NO_ROWS : await loadRuns(database, owners, runId);
  const rows = { ...runs, counters, overages, reservations: [reservation] };
  return shares === undefined ? rows : { ...rows, shares: await loadShares(database, canonical, shares) };
}

const NO_ROWS: OlderRows = { counters: [], reservations: [], balances: [] };

/** Loads a run with the runs around it. */
async function loadRuns(
  database: Database,
  owners: readonly UserKey[],
  runId: string,
): Promise<OlderRows> {
  const [canonical] = owners as [UserKey];
  const keys = arrayText(owners);
  const read = async (ids: readonly string[]) => {
    if (ids.length === 0) return [];
    const rows = await database.query<StoredRow>(
      "select * from runs where id = any($1::text::text[]) and user_key = any($2::text::bigint[])",
      [arrayText(ids), keys],
    );
    return rows.map((row) => ({ ...RUNS.read(row), userKey: canonical }));
  };
  const [run] = await read([runId]);
  return { ...NO_ROWS, runs: run === undefined ? [] : [run, ...await read(run.around)] };
}

/** Loads the shares of a member that a reservation took of. */
async function loadShares(
  database: Database,
  owner: UserKey,
  shares: readonly ShareLine[],
): Promise<Share[]> {
  const rows = await database.query<StoredRow>(
    `select * from shares where user_key = $1::bigint and window_start_ms = any($2::text::bigint[])`,
    [owner, arrayText(shares.map(({ window }) => window.start))],
  );
  return rows.map(SHARES.read);
}

/** SQL of the texts of the reservation $2 of the users in $1, which was made at $3. */
const TEXTS = `select found.* from unnest($1::text::bigint[]) as owner(key) cross join lateral (
    select id, metadata, prompt from open_reservations
    where user_key = owner.key and created_at_ms = $3::bigint offset 0
  ) as found where found.id = $2
  union all
  select id, metadata, prompt from reservations
  where id = $2 and user_key = any($1::text::bigint[]) and status = 'expired'`;

async function loadTexts(
  database: Database,
  owners: readonly UserKey[],
  id: string,
  createdAt: Millis,
): Promise<CallerTexts | null> {
  const [texts = null] = await database.query<CallerTexts>(TEXTS, [arrayText(owners), id, createdAt]);
  return texts;
}

async function loadBalances(database: Database, owner: UserKey, which: BalanceRef): Promise<OlderRows> {
  const [condition, value] = "balanceId" in which ? ["id = $2", which.balanceId] : [
    `${which.isOwn === true ? "own_ref" : "external_ref"} = any($2::text::text[])`,
    arrayText(which.externalRefs),
  ];
  const records = await database.query<StoredRow>(
    `select * from credit_balances where user_key = $1::bigint and ${condition} order by id`,
    [owner, value],
  );
  return { counters: [], reservations: [], balances: records.map(CREDIT_BALANCES.read) };
}

async function loadIdempotency(
  database: Database,
  keys: readonly { realm: number; key: string }[],
): Promise<(IdempotencyRow | null)[]> {
  const records = await database.query<StoredRow>(
    `select i.* from unnest($1::text::int[], $2::text::text[]) as r(realm, key)
     join idempotency i on i.realm = r.realm and i.key = r.key`,
    [arrayText(keys.map(({ realm }) => realm)), arrayText(keys.map(({ key }) => key))],
  );
  // As for nearly all keys: they are new.
  if (records.length === 0) return keys.map(() => null);
  const found = new Map(records.map(IDEMPOTENCY.read).map((row) => [`${row.realm}/${row.key}`, row]));
  return keys.map(({ realm, key }) => found.get(`${realm}/${key}`) ?? null);
}
