// The ids that metering aliases have linked. A merge that answered `analytics: "linked"` makes both ids one person, now or
// when a person of either id is created later. The stored report of the merge records it, so links need no table: they are
// durable with the merge, and are removed with it when its users are erased.

import type { Session } from "../database.ts";

type Reader = Pick<Session, "query">;

/** A part of the report of a merge that links. JSON escapes quotes within texts, so no text can contain it. */
const LINKED = `"analytics":"linked"`;

/** SQL of the condition that a merge links its two users. */
const isLinking = (merge: string) => `position('${LINKED}' in ${merge}.report) > 0`;

/**
 * SQL of two common table expressions, for use after `with recursive`: `linked(key)`, the users that merges have linked
 * with those of the given ids, and `ids(id)`, their ids and the given ids. $1 is the realm.
 *
 * The planner expects many rows from a recursive query and would read whole tables for joins with it. A subquery with a
 * limit, or with `offset 0`, makes it look up row after row by an index.
 *
 * @param named SQL of a query for the given ids, one column
 */
export function linkedIds(named: string): string {
  return `linked(key) as (
      select u.key from (${named}) as named(id) cross join lateral (
        select key from users where realm = $1::int and id = named.id limit 1
      ) as u
      union
      select other.key from linked cross join lateral (
        (select m.to_key as key from merges m where m.from_key = linked.key and ${isLinking("m")} limit 1)
        union all
        select m.from_key from merges m where m.to_key = linked.key and ${isLinking("m")}
      ) as other
    ), ids(id) as (
      select u.id from linked cross join lateral (select id from users where key = linked.key limit 1) as u
      union ${named}
    )`;
}

/** Lists an id and all ids linked with it, the canonical id first. */
export async function listLinkedIds(reader: Reader, realm: number, distinctId: string): Promise<string[]> {
  const rows = await reader.query<{ id: string }>(
    `with recursive ${linkedIds("select $2::text")}
     select ids.id from ids left join lateral (
       select m.id from users u join merges m on m.from_key = u.key and ${isLinking("m")}
       where u.realm = $1::int and u.id = ids.id limit 1
     ) as merged on true order by merged.id is not null, ids.id`,
    [realm, distinctId],
  );
  return rows.map(({ id }) => id);
}

/** Records in the merge of an alias that it links people, if it did not at first. */
export async function recordLink(session: Session, realm: number, alias: string): Promise<void> {
  await session.query(
    `update merges m set report = replace(m.report, '"analytics":"skipped_consent_required"', '${LINKED}')
     from users u where u.realm = $1::int and u.id = $2::text and m.from_key = u.key and not (${
      isLinking("m")
    })`,
    [realm, alias],
  );
}
