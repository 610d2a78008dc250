// The members of an account by what they used of one limit group. Callers settle what is due of members and wait for the
// drain first.

import { Buffer } from "node:buffer";
import type { ShareRef } from "../../domain/state/share.ts";
import { type Amount, parseAmount } from "../../domain/values/amount.ts";
import type { UserKey } from "../../domain/values/ids.ts";
import type { Millis } from "../../domain/values/period.ts";
import { arrayText, type Database } from "../database.ts";

/** Shares of one group and window, under every number of the account. */
export interface MembersOf {
  readonly keys: readonly UserKey[];
  readonly shares: readonly ShareRef[];
}

/** The place of a member in the list. */
interface MemberPlace {
  /** A decimal, or "Infinity" before all members. */
  readonly count: string;
  readonly userId: string;
}

export const FIRST_MEMBER: MemberPlace = { count: "Infinity", userId: "" };

/** A member as the list has it. */
export interface MemberRow {
  readonly userId: string;
  readonly count: Amount;
  readonly costCents: Amount;
  /** Its own limit for groups of this id; null for none. */
  readonly limit: Amount | null;
}

interface StoredMember {
  readonly user_id: string;
  readonly count: string;
  readonly cost: string;
  readonly own_limit: string | null;
}

const COUNTED = "(count > 0 or cost_cents > 0)";

/** SQL of shares in the group $1 with the unit $2 from $3 on, of an account with a number and the time of its last reset. */
const ofAccount = (key: string, since: string) =>
  `account_key = ${key} and group_id = $1 and unit = $2 and window_start_ms = $3::bigint and since_ms = ${since}`;

/** Lists members after a place, most first, then by id, and the cursor of the next page. */
export async function listMembers(
  database: Pick<Database, "query">,
  of: MembersOf,
  after: MemberPlace,
  limit: number,
): Promise<{ readonly members: readonly MemberRow[]; readonly cursor: string | null }> {
  const found = await withMembers(database, of);
  const [first] = found;
  if (first === undefined) return { members: [], cursor: null };
  const { groupId, unit, window } = first;
  const rows = await database.query<StoredMember>(
    pageOf(found.length === 1 ? ONE_ACCOUNT : SEVERAL_ACCOUNTS),
    [
      groupId,
      unit,
      window.start,
      arrayText(found.map(({ accountKey }) => accountKey)),
      arrayText(found.map(({ since }) => since)),
      arrayText(of.keys),
      after.count,
      after.userId,
      limit + 1,
    ],
  );
  const members = rows.slice(0, limit).map((row) => ({
    userId: row.user_id,
    count: parseAmount(row.count),
    costCents: parseAmount(row.cost),
    limit: row.own_limit === null ? null : parseAmount(row.own_limit),
  }));
  const last = rows.length > limit ? rows[limit - 1] : undefined;
  return {
    members,
    cursor: last === undefined ? null : cursorOf({ count: last.count, userId: last.user_id }),
  };
}

/** The numbers of the account under which members have shares: nearly always one. */
async function withMembers(
  database: Pick<Database, "query">,
  { shares }: MembersOf,
): Promise<readonly ShareRef[]> {
  const [first] = shares;
  if (first === undefined || shares.length === 1) return shares;
  const rows = await database.query<{ key: number }>(
    `select r.key from unnest($4::text::bigint[], $5::text::bigint[]) as r(key, since)
     where exists (select from shares where ${ofAccount("r.key", "r.since")} and ${COUNTED})`,
    [
      first.groupId,
      first.unit,
      first.window.start,
      arrayText(shares.map(({ accountKey }) => accountKey)),
      arrayText(shares.map(({ since }) => since)),
    ],
  );
  const found = new Set(rows.map(({ key }) => key));
  return shares.filter(({ accountKey }) => found.has(accountKey));
}

/** One number is read in the order of its index. */
const ONE_ACCOUNT = `(
  select user_key, user_id, count, cost_cents from shares
  where ${ofAccount("($4::text::bigint[])[1]", "($5::text::bigint[])[1]")} and ${COUNTED}
) as s`;

const SEVERAL_ACCOUNTS = `(
  select user_key, user_id, sum(count) as count, sum(cost_cents) as cost_cents
  from unnest($4::text::bigint[], $5::text::bigint[]) as r(key, since)
  join shares on ${ofAccount("r.key", "r.since")} and ${COUNTED} group by user_key, user_id
) as s`;

/** SQL of a page. The account itself is no member, though a merge may have brought shares of its own. */
function pageOf(source: string): string {
  const rows = (where: string) =>
    `(select user_key, user_id, count, cost_cents from ${source}
      where user_key <> all($6::text::bigint[]) and ${where} order by count desc, user_id limit $9::int)`;
  return `select p.user_id, trim_scale(p.count)::text as count, trim_scale(p.cost_cents)::text as cost,
      u.member_limits::jsonb ->> $1 as own_limit
    from (
      ${rows("count = $7::text::numeric and user_id > $8")} union all ${rows("count < $7::text::numeric")}
    ) as p left join users u on u.key = p.user_key
    order by p.count desc, p.user_id limit $9::int`;
}

/** Lists members with something due, earliest first, up to a limit. */
export async function listDueMembers(
  database: Pick<Database, "query">,
  realm: number,
  { shares }: MembersOf,
  now: Millis,
  limit: number,
): Promise<UserKey[]> {
  const [first] = shares;
  if (first === undefined) return [];
  const rows = await database.query<{ key: number }>(
    `select key from users u where realm = $1::int and due_at_ms <= $2::bigint and exists (
       select from shares where user_key = u.key and account_key = any($3::text::bigint[]) and group_id = $4
         and unit = $5 and window_start_ms = $6::bigint
     ) order by due_at_ms limit $7::int`,
    [
      realm,
      now,
      arrayText(shares.map(({ accountKey }) => accountKey)),
      first.groupId,
      first.unit,
      first.window.start,
      limit,
    ],
  );
  return rows.map(({ key }) => key);
}

/** Decodes a cursor; undefined if it is invalid. */
export function readMembersCursor(cursor: string): MemberPlace | undefined {
  const text = Buffer.from(cursor, "base64url").toString();
  const [, count, userId] = /^(\d+(?:\.\d+)?) ([^\0]+)$/u.exec(text) ?? [];
  if (count === undefined || userId === undefined) return undefined;
  const place = { count, userId };
  return cursorOf(place) === cursor ? place : undefined;
}

function cursorOf({ count, userId }: MemberPlace): string {
  return Buffer.from(`${count} ${userId}`).toString("base64url");
}
