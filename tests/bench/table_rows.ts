// Tables as years of service leave them: what the service wrote of one user is repeated for all of them, with a few
// users who have far more than the others. Indexes but primary keys are made last, as a restore would.
import type postgres from "postgres";
import { type Client, sleep } from "./service.ts";

/** How large the tables are. */
export interface Size {
  readonly users: number;
  readonly events: number;
}

const DAY_MS = 86_400_000;
const PLAN_ID = "plan_bench";
const PACK_ID = "cpk_bench";
const TEMPLATE = "template";
/** Prompts are kept for 30 days, and a twentieth of the logs is older. */
const KEPT_DAYS = 30;
/** Users that are due, and rows past their time; the same in every size, so that steps of sweeps can be compared. */
const DUE_ROWS = 2_000;
const OLD_ROWS = 4_000;
/** Types of events; a user has one in a thousand of the last one. */
export const EVENT_TYPES = { common: "image.render", rare: "video.render" } as const;

const group = (id: string, event: string) => ({
  id,
  label: id,
  unit: "count",
  quota: 1e9,
  matches: [{ event }],
});

/** The catalog of the app that is filled. */
export const CATALOG = {
  settings: { promptLogging: true, promptLogRetentionDays: KEPT_DAYS },
  plans: [{
    id: PLAN_ID,
    name: "Bench",
    rank: 0,
    period: { type: "monthly", anchor: "calendar" },
    limits: [group("lg_images", "image.*"), group("lg_video", "video.*")],
  }],
  packs: [{
    id: PACK_ID,
    name: "Bench",
    kind: "generic",
    unit: "count",
    matches: [{ event: "music.*" }],
    items: [],
  }],
};

/** The users that are measured, by what they have; a tenth of all events each but for the light one. */
export const NAMES = {
  light: "user-77",
  heavy: "user-1",
  /** Half of its events are still filed under its alias. */
  merged: "user-2",
  hidden: "user-3",
  erased: "user-4",
} as const;

const HEAVY_USERS = 4;
/** One user in so many has an open hold. */
const HOLD_EVERY = 20;
/** Keys of filled users start here; those below are the service's own. */
const FIRST_KEY = 1_000;

/** The number of the alias with history that has yet to move. */
export function aliasKey({ users }: Size): number {
  return FIRST_KEY + users + 1;
}

/** Lets the service write one user with a row of everything. */
export async function writeTemplate(client: Client): Promise<void> {
  const prompt = "Draw a lighthouse on a cliff above a stormy sea, in the manner of an old engraving. "
    .repeat(3);
  await client.call("POST", "v1/subscriptions", { userId: TEMPLATE, planId: PLAN_ID });
  await client.call("POST", "v1/credits/grant", { userId: TEMPLATE, packId: PACK_ID, quantity: 100 });
  const reserve = () =>
    client.call("POST", "v1/reserve", { userId: TEMPLATE, event: EVENT_TYPES.common, count: 1, prompt });
  await client.call("POST", "v1/commit", {
    reservationId: (await reserve()).reservationId,
    response: "done",
  }, { "idempotency-key": "template" });
  await client.call("POST", "v1/track", { userId: TEMPLATE, event: EVENT_TYPES.rare });
  await reserve();
  // A read of the feed waits for the drain.
  await client.call("GET", "v1/events?limit=1");
  await sleep(100);
}

/** Fills the tables, while no service runs on them. */
export async function fill(
  sql: postgres.Sql,
  size: Size,
  now: number,
  progress: (text: string) => void,
): Promise<void> {
  await sql.unsafe("set synchronous_commit = off");
  await sql.unsafe("set maintenance_work_mem = '512MB'");
  const indexes = await dropIndexes(sql);
  for (const copy of copiesOf(size, now)) {
    progress(`filling ${copy.table}`);
    await repeat(sql, copy);
  }
  progress("making indexes");
  for (const definition of indexes) await sql.unsafe(definition);
  await sql.unsafe("insert into history_moves values ($1, $2)", [aliasKey(size), now]);
  progress("vacuum analyze");
  await sql.unsafe("vacuum analyze");
  await sql.unsafe("checkpoint").catch(() => {});
}

/** Takes away every index that is no constraint's; answers how they are made again. */
async function dropIndexes(sql: postgres.Sql): Promise<string[]> {
  const rows = await sql.unsafe(
    `select indexname as name, indexdef as definition from pg_indexes
     where schemaname = 'public' and indexname not in (select conname from pg_constraint)`,
  );
  for (const { name } of rows) await sql.unsafe(`drop index ${name}`);
  return rows.map(({ definition }) => definition);
}

/** Rows like those that the service writes. */
interface Copy {
  readonly table: string;
  /** Which row is repeated. */
  readonly where: string;
  readonly from: number;
  readonly to: number;
  /** Columns that differ from row to row, as SQL of the number `n`; `t` is the repeated row. */
  readonly columns: Readonly<Record<string, string>>;
}

async function repeat(sql: postgres.Sql, { table, where, from, to, columns }: Copy): Promise<void> {
  const names = (await sql.unsafe(
    `select column_name as name from information_schema.columns where table_schema = 'public' and table_name = $1
     order by ordinal_position`,
    [table],
  )).map(({ name }) => name as string);
  const values = names.map((name) => columns[name] ?? `t.${name}`);
  const rows = await sql.unsafe(
    `insert into ${table} (${names.join(", ")}) select ${values.join(", ")}
     from (select * from ${table} where ${where} limit 1) t
     cross join generate_series(${from}::bigint, ${to}::bigint) n`,
  );
  if (to >= from && rows.count !== to - from + 1) {
    throw new Error(`${table}: the service wrote no row to repeat where ${where}`);
  }
}

const UNIQUE_LENGTH = 20;

/** A text that ends in a digit, and the number with leading zeros: the digit and they are the unique part of an id. */
function unique(mark: string, number: string): string {
  return `'${mark}' || lpad((${number})::text, ${UNIQUE_LENGTH - 1}, '0')`;
}

/** The number in base 36, as ids of reservations and balances name their owner. */
function base36(number: string): string {
  const digit = (power: number) =>
    `substr('0123456789abcdefghijklmnopqrstuvwxyz', (((${number}) / ${36 ** power}) % 36)::int + 1, 1)`;
  return `ltrim(${[5, 4, 3, 2, 1, 0].map(digit).join(" || ")}, '0')`;
}

/** The owner of a row by its number: the heavy users have a tenth of a table each; half of one is its alias's. */
function ownerOf(size: Size, row = "n"): string {
  return `case when ${row} % 10 = 2 and (${row} / 10) % 2 = 0 then ${aliasKey(size)}
    when ${row} % 10 between 1 and ${HEAVY_USERS} then ${FIRST_KEY} + ${row} % 10
    else ${FIRST_KEY} + 1 + ${HEAVY_USERS} + (${row} * 7919) % ${size.users - HEAVY_USERS} end`;
}

function copiesOf(size: Size, now: number): Copy[] {
  const { users, events } = size;
  // The last users that have a hold, or a subscription that ends, are due.
  const isDue = (user: string) => `${user} > ${users - DUE_ROWS * HOLD_EVERY}`;
  const lapsed = `${now - 60_000}`;
  const expiry = (user: string) => `case when ${isDue(user)} then ${lapsed} else ${now + DAY_MS} end`;
  const holds = `n % ${HOLD_EVERY} = 0`;
  const ends = `n % ${HOLD_EVERY} = 7 and ${isDue("n")}`;
  const template = "user_key = (select key from users where id = 'template')";
  const owner = ownerOf(size);
  const own = `${FIRST_KEY} + n`;
  const all = (table: string, columns: Copy["columns"], where = template): Copy => ({
    table,
    where,
    from: 1,
    to: users,
    columns: { user_key: own, ...columns },
  });
  const many = (table: string, to: number, where: string, columns: Copy["columns"]): Copy => ({
    table,
    where,
    from: 1,
    to,
    columns: { user_key: owner, ...columns },
  });
  // Events of the last 90 days, evenly spread.
  const age = `(90.0 * ${DAY_MS} * (${events} - n) / ${events})::bigint`;
  const at = `${now} - 1000 - ${age}`;
  const settled = Math.floor(events / 5);
  const ledger = Math.floor(events / 5);
  const logs = Math.floor(events / 20);
  const typed = `case when n % 1000 in (1, 2, 3, 777) then '${EVENT_TYPES.rare}' else t.type end`;
  return [
    all("users", {
      key: own,
      id: "'user-' || n",
      held_subscription_id: unique("sub_0", own),
      due_at_ms: `case when ${holds} then ${expiry("n")} when ${ends} then ${lapsed} end`,
      opted_out: "case when n = 3 then 2 else 0 end",
    }, "id = 'template'"),
    {
      ...all("users", { key: own, id: "'alias'", merged_into: `${FIRST_KEY + 2}` }, "id = 'template'"),
      from: users + 1,
      to: users + 1,
    },
    all("subscriptions", { id: unique("sub_0", own), ends_at_ms: `case when ${ends} then ${lapsed} end` }),
    all("subscription_events", { id: unique("sbe_0", own) }),
    all("counters", {}, `${template} and group_id = 'lg_images'`),
    all("counters", { group_id: "'lg_video'" }, `${template} and group_id = 'lg_images'`),
    all("counters", {
      window_start_ms: `t.window_start_ms - 31 * ${DAY_MS}::bigint`,
      window_end_ms: "t.window_start_ms",
    }, `${template} and group_id = 'lg_images'`),
    all("credit_balances", { id: `'crb_' || ${base36(own)} || '_' || ${unique("0", "n")}` }),
    many("events", events, `${template} and type = '${EVENT_TYPES.common}'`, {
      id: unique("evt_0", "n"),
      type: typed,
      created_at_ms: at,
    }),
    many("reservations", settled, `${template} and status = 'committed'`, {
      id: `'rsv_' || ${base36(owner)} || '_' || ${unique("0", "n")}`,
    }),
    {
      ...all("reservations", {
        user_key: `${FIRST_KEY} + n * ${HOLD_EVERY}`,
        id: `'rsv_' || ${base36(`${FIRST_KEY} + n * ${HOLD_EVERY}`)} || '_' || ${unique("1", "n")}`,
        expires_at_ms: expiry(`n * ${HOLD_EVERY}`),
      }, `${template} and status = 'held'`),
      to: Math.floor(users / HOLD_EVERY),
    },
    many("credit_ledger", ledger, `${template} and reason = 'grant'`, {
      id: unique("cle_0", "n"),
      at_ms: `${now} - 1000 - (${ledger} - n)`,
    }),
    many("event_logs", logs, template, {
      event_id: unique("evt_0", "n * 20 - 1"),
      user_key: ownerOf(size, "(n * 20 - 1)"),
      at_ms: `${now} - case when n <= ${OLD_ROWS} then ${KEPT_DAYS + 1} else ${
        KEPT_DAYS - 1
      } end * ${DAY_MS}::bigint`,
    }),
    many("idempotency", Math.floor(events / 10), template, {
      key: "'key-' || n",
      at_ms: `${now} - case when n <= ${OLD_ROWS} then 25 else 1 end * 3600000::bigint`,
    }),
  ];
}
