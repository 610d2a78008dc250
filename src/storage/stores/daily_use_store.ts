// Sums of events by day, and the removal of users from them. A step takes the events after a realm's mark in the order of
// time and id, adds them to the sums and moves the mark, in one transaction: each event is counted exactly once. Events
// reach the table in that order: a realm has one owner at a time, the clock passes from owner to owner without going back,
// and the journal keeps the order of turns.

import type { UserKey } from "../../domain/values/ids.ts";
import type { Millis } from "../../domain/values/period.ts";
import { arrayText, type Session } from "../database.ts";

type Reader = Pick<Session, "query">;

/** The last event that a realm's sums contain, by time and id. */
interface DailyUseMark {
  readonly at: Millis;
  readonly eventId: string;
}

/** Locks a realm's sums until the end of the transaction; returns the mark. */
async function lockDailyUse(session: Reader, realm: number): Promise<DailyUseMark> {
  await session.query(
    "insert into daily_use_marks (realm, at_ms, event_id) values ($1::int, -1, '') on conflict (realm) do nothing",
    [realm],
  );
  const [mark] = await session.query<DailyUseMark>(
    `select at_ms as at, event_id as "eventId" from daily_use_marks where realm = $1::int for update`,
    [realm],
  );
  return mark as DailyUseMark;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const SUMMED = ["events", "blocked", "quantity", "cost_cents", "cost_credits"];
const SUMMED_OF_PARTS = [...SUMMED, "unpriced"];

/** SQL of some columns in the forms that the statements need. Older processes do not count all that is taken off. */
function sqlOf(summed: readonly string[]) {
  return {
    columns: summed.join(", "),
    add: summed.map((column) => `${column} = kept.${column} + excluded.${column}`).join(", "),
    totals: summed.map((column) => `sum(${column}) as ${column}`).join(", "),
    take: summed.map((column) => `${column} = greatest(d.${column} - sums.${column}, 0)`).join(", "),
  };
}

const ALL = sqlOf(SUMMED);
const PARTS = sqlOf(SUMMED_OF_PARTS);

const IS_USE = "filter (where match_status <> 'blocked')";
/** SQL of the sums of events. Blocked calls are counted separately. */
const SUMS = `count(*) ${IS_USE} as events,
      count(*) filter (where match_status = 'blocked') as blocked,
      coalesce(sum(quantity) ${IS_USE}, 0) as quantity,
      coalesce(sum(cost_cents) ${IS_USE}, 0) as cost_cents,
      coalesce(sum(cost_credits) ${IS_USE}, 0) as cost_credits`;

/** SQL of sums by user, plan, model and hour as those of all users: by each of these, and of all. */
const asParts = (rows: string) =>
  `select day, 'known', '', ${PARTS.totals} from ${rows} group by day
    union all select day, 'plan', plan_id, ${PARTS.totals} from ${rows} group by day, plan_id
    union all select day, 'model', model, ${PARTS.totals} from ${rows} group by day, model
    union all select day, 'hour', hour::text, ${PARTS.totals} from ${rows} group by day, hour`;

/** SQL of a day's users as a row of parts. */
const usersIn = (rows: string) =>
  SUMMED_OF_PARTS.map((column) => column === "events" ? `count(distinct ${rows}.user_key)` : "0").join(", ");

/** Leaves out released holds, which used nothing. Events of older versions have no plan and no model. */
const ADD_UP = `
  with taken as materialized (
    select id, user_key, type, quantity, cost_cents, cost_credits, match_status, created_at_ms, plan_id, model,
      is_unpriced, (created_at_ms / ${DAY_MS})::int as day, (created_at_ms / ${HOUR_MS} % 24)::smallint as hour from events
    where realm = $1::int and (created_at_ms, id) > ($2::bigint, $3::text) and created_at_ms < $4::bigint
    order by created_at_ms, id limit $5::int
  ), sums as materialized (
    select day, user_key, type, ${SUMS} from taken where match_status <> 'released' group by 1, 2, 3
  ), parts as materialized (
    select day, user_key, plan_id, model, hour, ${SUMS},
      count(*) filter (where is_unpriced and match_status <> 'blocked') as unpriced
    from taken where match_status <> 'released' and plan_id is not null and model is not null group by 1, 2, 3, 4, 5
  ), new_users as (
    select distinct day, user_key from sums s where not exists (
      select from daily_use_of_users o where o.user_key = s.user_key and o.day = s.day)
  ), of_users as (
    insert into daily_use_of_users as kept (realm, user_key, day, type, ${ALL.columns})
    select $1::int, user_key, day, type, ${ALL.columns} from sums order by user_key, day, type
    on conflict (user_key, day, type) do update set ${ALL.add}
  ), of_types as (
    insert into daily_use as kept (realm, day, type, ${ALL.columns})
    select $1::int, day, type, ${ALL.totals} from sums group by day, type
    union all select $1::int, day, '', ${ALL.totals} from sums group by day
    on conflict (realm, day, type) do update set ${ALL.add}
  ), parts_of_users as (
    insert into daily_use_parts_of_users as kept (realm, user_key, day, plan_id, model, hour, ${PARTS.columns})
    select $1::int, user_key, day, plan_id, model, hour, ${PARTS.columns} from parts
    order by user_key, day, plan_id, model, hour
    on conflict (user_key, day, plan_id, model, hour) do update set ${PARTS.add}
  ), of_parts as (
    insert into daily_use_parts as kept (realm, day, kind, part, ${PARTS.columns})
    select $1::int, each.* from (${asParts("parts")}) each
    union all select $1::int, day, 'users', '', ${usersIn("new_users")} from new_users group by day
    on conflict (realm, day, kind, part) do update set ${PARTS.add}
  ), last as (
    select created_at_ms, id from taken order by created_at_ms desc, id desc limit 1
  ), moved as (
    update daily_use_marks set at_ms = last.created_at_ms, event_id = last.id from last where realm = $1::int
  )
  select count(*) as events from taken`;

/**
 * Adds the next events of a realm to its sums.
 *
 * @param before events at this moment or later are left out: an event that is being decided may precede them
 * @returns the number of events; fewer than the limit when none are left
 */
export async function addUpDailyUse(
  session: Session,
  realm: number,
  before: Millis,
  limit: number,
): Promise<number> {
  const { at, eventId } = await lockDailyUse(session, realm);
  const [row] = await session.query<{ events: number }>(ADD_UP, [realm, at, eventId, before, limit]);
  return row?.events ?? 0;
}

/** Whether a realm has events after its mark and before a moment. */
export async function hasUnadded(reader: Reader, realm: number, before: Millis): Promise<boolean> {
  const rows = await reader.query(
    `select from (select 1) one left join daily_use_marks m on m.realm = $1::int
     where exists (select from events e where e.realm = $1::int
       and (e.created_at_ms, e.id) > (coalesce(m.at_ms, -1), coalesce(m.event_id, '')) and e.created_at_ms < $2::bigint)`,
    [realm, before],
  );
  return rows.length > 0;
}

/** Lists the realms, of these, that have events after their marks. */
export async function listUnadded(reader: Reader, realms: readonly number[]): Promise<number[]> {
  const rows = await reader.query<{ realm: number }>(
    `select named.realm from unnest($1::text::int[]) as named(realm)
     left join daily_use_marks m on m.realm = named.realm
     where exists (select 1 from events e where e.realm = named.realm
       and (e.created_at_ms, e.id) > (coalesce(m.at_ms, -1), coalesce(m.event_id, '')))`,
    [arrayText(realms)],
  );
  return rows.map(({ realm }) => realm);
}

/**
 * Removes users from a realm's sums. An event type may name a person, so types that only they used are removed. The sums
 * stay locked until the end of the transaction, after which no event of these users is left to add.
 */
export async function removeDailyUse(
  session: Session,
  realm: number,
  keys: readonly UserKey[],
): Promise<void> {
  await lockDailyUse(session, realm);
  const text = arrayText(keys);
  await session.query(
    `with gone as (
       select day, type, ${ALL.columns} from daily_use_of_users where user_key = any($2::text::bigint[])
     ), sums as (
       select day, type, ${ALL.totals} from gone group by day, type
       union all select day, '', ${ALL.totals} from gone group by day
     )
     update daily_use d set ${ALL.take} from sums
     where d.realm = $1::int and d.day = sums.day and d.type = sums.type`,
    [realm, text],
  );
  await session.query(
    `delete from daily_use d using daily_use_of_users gone
     where gone.user_key = any($2::text::bigint[]) and d.realm = $1::int and d.day = gone.day
       and d.type in (gone.type, '') and d.events = 0 and d.blocked = 0`,
    [realm, text],
  );
  await session.query("delete from daily_use_of_users where user_key = any($1::text::bigint[])", [text]);
  await removeParts(session, realm, text);
}

async function removeParts(session: Session, realm: number, keys: string): Promise<void> {
  await session.query(
    `with gone as (
       select user_key, day, plan_id, model, hour, ${PARTS.columns} from daily_use_parts_of_users
       where user_key = any($2::text::bigint[])
     ), sums (day, kind, part, ${PARTS.columns}) as (
       ${asParts("gone")}
       union all select day, 'users', '', ${usersIn("gone")} from gone group by day
     )
     update daily_use_parts d set ${PARTS.take} from sums
     where d.realm = $1::int and d.day = sums.day and d.kind = sums.kind and d.part = sums.part`,
    [realm, keys],
  );
  await session.query(
    `delete from daily_use_parts d using daily_use_parts_of_users gone
     where gone.user_key = any($2::text::bigint[]) and d.realm = $1::int and d.day = gone.day
       and d.events = 0 and d.blocked = 0
       and (d.kind, d.part) in (('known', ''), ('users', ''), ('plan', gone.plan_id), ('model', gone.model), ('hour', gone.hour::text))`,
    [realm, keys],
  );
  await session.query("delete from daily_use_parts_of_users where user_key = any($1::text::bigint[])", [
    keys,
  ]);
}
