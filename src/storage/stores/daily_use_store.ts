// Sums of events by day, and the removal of users from them. A step takes the events after a realm's mark in the order of
// time and id, adds them to the sums and moves the mark, in one transaction: each event is counted exactly once. Events
// reach the table in that order: a realm has one owner at a time, the clock passes from owner to owner without going back,
// and the journal keeps the order of turns.

import type { UserKey } from "../../domain/values/ids.ts";
import type { Millis } from "../../domain/values/period.ts";
import { arrayText, type Session } from "../database.ts";

type Reader = Pick<Session, "query">;

/** The last event that a realm's sums contain, by time and id. */
export interface DailyUseMark {
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

const DAY_MS = 86_400_000;

const SUMMED = ["events", "blocked", "quantity", "cost_cents", "cost_credits"];
const COLUMNS = SUMMED.join(", ");
const ADD = SUMMED
  .map((column) => `${column} = kept.${column} + excluded.${column}`).join(", ");
const TOTALS = "sum(events), sum(blocked), sum(quantity), sum(cost_cents), sum(cost_credits)";
const TOTALS_NAMED = `sum(events) as events, sum(blocked) as blocked, sum(quantity) as quantity,
  sum(cost_cents) as cost_cents, sum(cost_credits) as cost_credits`;
const TAKE = SUMMED
  .map((column) => `${column} = d.${column} - sums.${column}`).join(", ");

/** Leaves out released holds, which used nothing, and counts blocked calls separately. */
const ADD_UP = `
  with taken as materialized (
    select id, user_key, type, quantity, cost_cents, cost_credits, match_status, created_at_ms from events
    where realm = $1::int and (created_at_ms, id) > ($2::bigint, $3::text) and created_at_ms < $4::bigint
    order by created_at_ms, id limit $5::int
  ), sums as materialized (
    select (created_at_ms / ${DAY_MS})::int as day, user_key, type,
      count(*) filter (where match_status <> 'blocked') as events,
      count(*) filter (where match_status = 'blocked') as blocked,
      coalesce(sum(quantity) filter (where match_status <> 'blocked'), 0) as quantity,
      coalesce(sum(cost_cents) filter (where match_status <> 'blocked'), 0) as cost_cents,
      coalesce(sum(cost_credits) filter (where match_status <> 'blocked'), 0) as cost_credits
    from taken where match_status <> 'released' group by 1, 2, 3
  ), of_users as (
    insert into daily_use_of_users as kept (realm, user_key, day, type, ${COLUMNS})
    select $1::int, user_key, day, type, ${COLUMNS} from sums order by user_key, day, type
    on conflict (user_key, day, type) do update set ${ADD}
  ), of_types as (
    insert into daily_use as kept (realm, day, type, ${COLUMNS})
    select $1::int, day, type, ${TOTALS} from sums group by day, type
    union all select $1::int, day, '', ${TOTALS} from sums group by day
    on conflict (realm, day, type) do update set ${ADD}
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
       select day, type, ${COLUMNS} from daily_use_of_users where user_key = any($2::text::bigint[])
     ), sums as (
       select day, type, ${TOTALS_NAMED} from gone group by day, type
       union all select day, '', ${TOTALS_NAMED} from gone group by day
     )
     update daily_use d set ${TAKE} from sums
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
}
