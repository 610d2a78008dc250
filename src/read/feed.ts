// The feed of metering events: queries to wire-ready values, no rules. Callers wait for the drain first, so that
// every acknowledged event is there. Specification, "Events feed"; section 5 of the decisions.

import { numberOf, parseAmount } from "domain/amount.ts";
import { matchedGroupIds, type MatchStatus } from "domain/event.ts";
import { ofUser } from "src/read/user_keys.ts";
import type { Database, Param } from "storage/database.ts";
import { decodeLines } from "storage/metering_rows.ts";

/** What a page of the feed shows. */
export interface FeedQuery {
  readonly realm: number;
  readonly userId: string | null;
  readonly eventType: string | null;
  readonly limit: number;
  readonly offset: number;
}

interface EventRecord {
  id: string;
  end_user_id: string;
  type: string;
  quantity: string;
  cost_cents: string;
  match_status: MatchStatus;
  created_at_ms: number;
  metadata: string | null;
  reservation_id: string | null;
  reason: string | null;
  error_code: string | null;
  lines: string;
  uncovered: string;
}

/** Events with the id of their canonical user. */
const SELECT = `select e.*, coalesce(c.id, u.id) as end_user_id from events e
  join users u on u.key = e.user_key left join users c on c.key = u.merged_into`;

async function canonicalKey(database: Database, realm: number, userId: string): Promise<number | null> {
  const [row] = await database.query<{ key: number }>(
    "select coalesce(merged_into, key) as key from users where realm = $1::int and id = $2",
    [realm, userId],
  );
  return row?.key ?? null;
}

/** A page of events, newest first; of equal times the later written first. */
export async function listEvents(database: Database, query: FeedQuery) {
  const { realm, userId, eventType, limit, offset } = query;
  const params: Param[] = [limit, offset];
  let where: string;
  if (userId === null) {
    where = `e.realm = $${params.push(realm)}::int`;
  } else {
    const key = await canonicalKey(database, realm, userId);
    if (key === null) return [];
    const user = await ofUser(database, key);
    where = `e.user_key ${user.sql(params.push(user.param))}`;
  }
  if (eventType !== null) {
    where += ` and e.type = $${params.push(eventType)}`;
  }
  const records = await database.query<EventRecord>(
    `${SELECT} where ${where} order by e.created_at_ms desc, e.id desc limit $1::int offset $2::int`,
    params,
  );
  return records.map(showListed);
}

/** One event with its details, or null when the realm has none with this id. */
export async function getEvent(database: Database, realm: number, id: string, logsErrors: boolean) {
  const [record] = await database.query<EventRecord>(
    `${SELECT} where e.id = $1 and e.realm = $2::int`,
    [id, realm],
  );
  if (record === undefined) return null;
  const uncovered = JSON.parse(record.uncovered) as [string, string][];
  const groups = matchedGroupIds({ matchStatus: record.match_status, lines: decodeLines(record.lines) });
  return {
    ...showListed(record),
    metadata: record.metadata === null ? null : JSON.parse(record.metadata),
    matchedGroupIds: groups,
    prompt: null,
    response: null,
    errorCode: logsErrors ? record.error_code : null,
    reservationId: record.reservation_id,
    reason: record.reason,
    uncovered: Object.fromEntries(uncovered.map(([unit, amount]) => [unit, numberOf(parseAmount(amount))])),
  };
}

function showListed(record: EventRecord) {
  return {
    id: record.id,
    endUserId: record.end_user_id,
    eventType: record.type,
    quantity: numberOf(parseAmount(record.quantity)),
    costCents: numberOf(parseAmount(record.cost_cents)),
    matchStatus: record.match_status,
    createdAt: new Date(record.created_at_ms).toISOString(),
    hasLog: false,
    promptPreview: null,
  };
}
