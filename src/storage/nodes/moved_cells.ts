// Which workspaces of this database another store serves since a split. Their rows wait here to be removed.

import { arrayText, type Session } from "../database.ts";

/** The cell of a workspace w, as everywhere else: the first four bytes of the SHA-256 of its id, modulo 64. */
export const CELL_OF_WORKSPACE =
  `mod(('x' || substr(encode(sha256(convert_to(w.id, 'UTF8')), 'hex'), 1, 8))::bit(32)::bigint, 64)`;

/** Whether another store serves any cell. */
export async function hasMovedCells(session: Pick<Session, "query">): Promise<boolean> {
  const rows = await session.query(
    `select from cells c join stores s on s.number = c.store
     where s.cluster_id <> (select cluster_id from registry) limit 1`,
  );
  return rows.length > 0;
}

/** Which of some users are in cells that another store serves. */
export async function movedUsers(
  session: Pick<Session, "query">,
  keys: readonly number[],
): Promise<Set<number>> {
  const rows = await session.query<{ key: number }>(
    `select u.key from users u join realms r on r.realm = u.realm join apps a on a.id = r.app_id
       join workspaces w on w.id = a.workspace_id join cells c on c.cell = ${CELL_OF_WORKSPACE}
       join stores s on s.number = c.store
     where u.key = any($1::text::bigint[]) and s.cluster_id <> (select cluster_id from registry)`,
    [arrayText(keys)],
  );
  return new Set(rows.map(({ key }) => key));
}
