// What a fold of recorded events reads: users with events in a span, their plans and credits, and the events in the order of
// their times.

import type { KnownUser, RecordedEvent } from "../../domain/fold.ts";
import type { CreditBalance } from "../../domain/state/credit.ts";
import type { MatchStatus } from "../../domain/state/event.ts";
import { workOfOlder } from "../../domain/state/work.ts";
import { parseAmount } from "../../domain/values/amount.ts";
import type { UserKey } from "../../domain/values/ids.ts";
import type { Millis } from "../../domain/values/period.ts";
import type { StoredRow } from "../rows/columns.ts";
import { CREDIT_BALANCES } from "../rows/credit_rows.ts";
import { SUBSCRIPTION_EVENTS, SUBSCRIPTIONS } from "../rows/subscription_rows.ts";
import { USERS } from "../rows/user_rows.ts";
import { decodeWork } from "../rows/work_text.ts";
import { arrayText, type Database } from "../database.ts";

/** The events of a realm in a span of time. */
export interface Span {
  readonly realm: number;
  readonly from: Millis;
  /** Exclusive. */
  readonly to: Millis;
}

/** A user with the number of its events in a span. */
export interface CountedUser {
  readonly key: UserKey;
  readonly id: string;
  readonly events: number;
}

/** The numbers under which events of a user may be stored: rows of an alias move after its merge. */
const OWN_KEYS = `select u.key union all select a.key from users a where a.merged_into = u.key`;

/** SQL of the number of events of a user. */
const EVENTS_OF_USER = `(select count(*) from events e where e.user_key in (${OWN_KEYS})
  and e.created_at_ms >= $2::bigint and e.created_at_ms < $3::bigint)`;

/** Lists a page of users in the order of their ids, also those without events. */
export async function countUsers(
  database: Database,
  { realm, from, to }: Span,
  after: string,
  limit: number,
): Promise<CountedUser[]> {
  return await database.query<CountedUser>(
    `select u.key, u.id, ${EVENTS_OF_USER} as events from users u
     where u.realm = $1::int and u.id > $4 and u.merged_into is null and not u.erasing
     order by u.id limit $5::int`,
    [realm, from, to, after, limit],
  );
}

/** Maps each user below another one to that user. */
export async function readParents(database: Database, realm: number): Promise<Map<UserKey, UserKey>> {
  const rows = await database.query<{ key: UserKey; parent: UserKey }>(
    `select u.key, coalesce(p.merged_into, p.key) as parent from users u join users p on p.key = u.parent_key
     where u.realm = $1::int and u.parent_key is not null and u.merged_into is null and not u.erasing`,
    [realm],
  );
  return new Map(rows.map(({ key, parent }) => [key, parent]));
}

/** Reads users with their plans and credits, the credits as of the beginning of a span. */
export async function readKnownUsers(
  database: Database,
  keys: readonly UserKey[],
  { from, to }: Span,
): Promise<KnownUser[]> {
  const owners = arrayText(keys);
  const users = await database.query<StoredRow>(
    "select * from users where key = any($1::text::bigint[]) order by id",
    [owners],
  );
  const subscriptions = await database.query<StoredRow>(
    "select * from subscriptions where user_key = any($1::text::bigint[]) order by id",
    [owners],
  );
  const history = await database.query<StoredRow>(
    `select s.* from users u join subscription_events s on s.user_key in (${OWN_KEYS})
     where u.key = any($1::text::bigint[]) order by s.at_ms, s.id`,
    [owners],
  );
  const balances = await database.query<StoredRow>(
    `select b.*, case when b.granted_at_ms >= $2::bigint then b.initial else coalesce(
       (select sum(delta) from credit_ledger l where l.balance_id = b.id and l.at_ms < $2::bigint), 0) end as left_then
     from credit_balances b
     where b.user_key = any($1::text::bigint[]) and b.included is null and b.granted_at_ms < $3::bigint
       and (b.revoked_at_ms is null or b.revoked_at_ms > $2::bigint)
     order by b.id`,
    [owners, from, to],
  );
  const ofSubscription = Map.groupBy(history.map(SUBSCRIPTION_EVENTS.read), (row) => row.subscriptionId);
  const rowsOf = Map.groupBy(subscriptions.map(SUBSCRIPTIONS.read), ({ userKey }) => userKey);
  const balancesOf = Map.groupBy(balances.map(readBalance), ({ userKey }) => userKey);
  return users.map((stored) => {
    const user = USERS.read(stored);
    const rows = rowsOf.get(user.key) ?? [];
    return {
      user,
      subscriptions: rows,
      history: rows.flatMap(({ id }) => ofSubscription.get(id) ?? []),
      balances: balancesOf.get(user.key) ?? [],
    };
  });
}

function readBalance(stored: StoredRow): CreditBalance {
  return { ...CREDIT_BALANCES.read(stored), remaining: parseAmount(stored["left_then"] as string) };
}

interface EventRow {
  readonly id: string;
  readonly user_key: UserKey;
  readonly type: string;
  readonly metadata: string | null;
  readonly created_at_ms: Millis;
  readonly quantity: string;
  readonly cost_cents: string;
  readonly work: string | null;
  readonly match_status: MatchStatus;
}

/** A place in the order of events. */
export interface EventPlace {
  readonly at: Millis;
  readonly id: string;
}

/** A page of events with the place after which the next page begins; null at the end. */
export interface EventPage {
  readonly events: readonly RecordedEvent[];
  readonly next: EventPlace | null;
}

const PAGE = `select e.*, owner.canonical as user_key
  from (select u.key as canonical, k.key from users u cross join lateral (${OWN_KEYS}) k
    where u.key = any($1::text::bigint[])) owner
  cross join lateral (
    select id, type, metadata, created_at_ms, quantity, cost_cents, work, match_status from events
    where user_key = owner.key and created_at_ms < $3::bigint
      and (created_at_ms > $2::bigint or (created_at_ms = $2::bigint and id > $4))
    order by created_at_ms, id limit $5::int) e
  order by e.created_at_ms, e.id limit $5::int`;

/** Reads a page of the events of some users, oldest first. */
export async function readRecorded(
  database: Database,
  keys: readonly UserKey[],
  { from, to }: Span,
  after: EventPlace | null,
  limit: number,
): Promise<EventPage> {
  const rows = await database.query<EventRow>(
    PAGE,
    [arrayText(keys), after?.at ?? from, to, after?.id ?? "", limit],
  );
  const last = rows.at(-1);
  return {
    events: rows.map(recordedOf),
    next: last === undefined || rows.length < limit ? null : { at: last.created_at_ms, id: last.id },
  };
}

function recordedOf(row: EventRow): RecordedEvent {
  const work = row.work === null
    ? workOfOlder(parseAmount(row.quantity), parseAmount(row.cost_cents))
    : decodeWork(row.work);
  const { user_key: userKey, type, metadata, created_at_ms: createdAt } = row;
  return { userKey, type, metadata, createdAt, work, isReleased: row.match_status === "released" };
}
