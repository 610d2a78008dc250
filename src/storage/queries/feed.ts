// The feed of metering events. Callers wait for the drain first, so that it contains every acknowledged event.

import { numberOf, parseAmount } from "../../domain/values/amount.ts";
import { chargedAmounts, matchedGroupIds, type MatchStatus } from "../../domain/state/event.ts";
import type { UserKey } from "../../domain/values/ids.ts";
import type { Millis } from "../../domain/values/period.ts";
import { SCOPE_BITS } from "../../domain/state/user.ts";
import { newestOf, readOfUser } from "./user_keys.ts";
import { arrayText, type Database, type Param } from "../database.ts";
import { decodeCredits, decodeLevels, decodeLines, type StoredLevel } from "../rows/charge_text.ts";

/** The prompt logs that a reader may see: none while logging is off, and none past their retention. */
export interface LogView {
  readonly isOn: boolean;
  /** Whether the reader may see no text of a log. */
  readonly hidesTexts?: boolean;
  readonly keptFrom: Millis;
}

/** Selects the events of a page. */
interface FeedQuery {
  readonly realm: number;
  readonly logs: LogView;
  readonly userId: string | null;
  readonly eventType: string | null;
  /** Absent or null for events of any status; "matched" has no index. */
  readonly status?: MatchStatus | null;
  /** Absent or null for events of any call. */
  readonly runId?: string | null;
  /** Only events at and after this moment. */
  readonly from?: Millis | null;
  /** Only events before this moment. */
  readonly to?: Millis | null;
  readonly limit: number;
  readonly offset: number;
}

/** An event as stored. */
export interface EventRecord {
  id: string;
  end_user_id: string;
  type: string;
  quantity: string;
  cost_cents: string;
  cost_credits: string | null;
  match_status: MatchStatus;
  created_at_ms: number;
  metadata: string | null;
  reservation_id: string | null;
  reason: string | null;
  error_code: string | null;
  lines: string;
  uncovered: string;
  credits: string;
  levels: string | null;
  run_id: string | null;
  log_at_ms: number | null;
  prompt: string | null;
  response: string | null;
}

/** SQL of events of the table, or of some of its rows, with the id of their canonical user and their texts. */
export function selectFrom(rows: string, texts = "l.prompt, l.response"): string {
  return `select e.*, c.id as end_user_id, l.at_ms as log_at_ms, ${texts} from ${rows} e
    join users u on u.key = e.user_key join users c on c.key = coalesce(u.merged_into, u.key)
    left join event_logs l on l.event_id = e.id`;
}

/** SQL that hides users who opted out of personalization or have a pending erasure. */
const IS_SHOWN = `c.opted_out & ${SCOPE_BITS.ai_personalization} = 0 and not c.erasing`;
export const SHOWN = `${IS_SHOWN} and not u.erasing`;

const NEWEST_FIRST = "order by e.created_at_ms desc, e.id desc";

/** Characters of a prompt in a list. */
const PREVIEW_LENGTH = 200;

/** SQL of the previews of prompts in a list: a page of whole texts would be large. */
export const PREVIEWS = `left(l.prompt, ${PREVIEW_LENGTH}) as prompt, null as response`;

/** Lists a page of events, newest first; of equal times the later written first. */
export async function listEvents(database: Database, query: FeedQuery) {
  const { realm, logs, userId, runId = null } = query;
  if (userId === null) return (await pageOfRealm(database, query)).map((record) => showListed(record, logs));
  const key = await shownKey(database, realm, userId);
  if (key === null) return [];
  const records = await readOfUser(
    database,
    key,
    (owners) => runId === null ? pageOfUser(database, query, owners) : pageOfRealm(database, query, owners),
  );
  return records.map((record) => showListed(record, logs));
}

/** Finds the number of an id's user; null if the feed does not show the user. */
export async function shownKey(database: Database, realm: number, userId: string): Promise<UserKey | null> {
  const [row] = await database.query<{ key: number }>(
    `select c.key from users u join users c on c.key = coalesce(u.merged_into, u.key)
     where u.realm = $1::int and u.id = $2 and ${IS_SHOWN}`,
    [realm, userId],
  );
  return row?.key ?? null;
}

function pageOfRealm(
  database: Database,
  query: FeedQuery,
  owners: string | null = null,
): Promise<EventRecord[]> {
  const { realm, eventType, runId = null, limit, offset } = query;
  const params: Param[] = [limit, offset, realm];
  const ofType = within(query, params) +
    (eventType === null ? "" : ` and e.type = $${params.push(eventType)}`) +
    (runId === null ? "" : ` and e.run_id = $${params.push(runId)}`) +
    (owners === null ? "" : ` and e.user_key = any($${params.push(owners)}::text::bigint[])`);
  // Checked row by row: for a join the planner would expect few rows to be left, and join whole tables.
  const isShown = `(select ${SHOWN} from users u join users c on c.key = coalesce(u.merged_into, u.key)
     where u.key = e.user_key)`;
  return readPage(
    database,
    `select e.id from events e where e.realm = $3::int${ofType} and ${isShown}`,
    params,
  );
}

/** The condition of status and times of a page; the times are the column that its indexes end with. */
function within({ status = null, from = null, to = null }: FeedQuery, params: Param[]): string {
  return (status === null
    ? ""
    : ` and match_status <> 'matched' and match_status = $${params.push(status)}`) +
    (from === null ? "" : ` and created_at_ms >= $${params.push(from)}::bigint`) +
    (to === null ? "" : ` and created_at_ms < $${params.push(to)}::bigint`);
}

function pageOfUser(database: Database, query: FeedQuery, owners: string): Promise<EventRecord[]> {
  const { eventType, limit, offset } = query;
  const params: Param[] = [limit, offset, owners];
  const ids = newestOf({
    table: "events",
    time: "created_at_ms",
    columns: "id, created_at_ms",
    owners: `select u.key from users u join users c on c.key = coalesce(u.merged_into, u.key)
      where u.key = any($3::text::bigint[]) and ${SHOWN}`,
    where: (eventType === null ? "true" : `type = $${params.push(eventType)}`) + within(query, params),
    limit: "$1::int + $2::int",
  });
  return readPage(database, `select e.id from (${ids}) e`, params);
}

/**
 * Reads the page of these ids; the limit is $1, the offset $2. A deep offset skips only ids, which for one user are in an
 * index. The ids become an array, so that no join runs before the page is known.
 */
function readPage(database: Database, ids: string, params: readonly Param[]): Promise<EventRecord[]> {
  const page = `${ids} ${NEWEST_FIRST} limit $1::int offset $2::int`;
  return database.query<EventRecord>(
    `${selectFrom(`(select * from events where id = any(array(${page})))`, PREVIEWS)} ${NEWEST_FIRST}`,
    params,
  );
}

/** Reads an event with its details; null if the realm shows no event with this id. */
export async function getEvent(database: Database, realm: number, id: string, logs: LogView) {
  const [record] = await database.query<EventRecord>(
    `${selectFrom("events")} where e.id = $1 and e.realm = $2::int and ${SHOWN}`,
    [id, realm],
  );
  if (record === undefined) return null;
  const isLogged = hasLog(record, logs);
  const uncovered = JSON.parse(record.uncovered) as [string, string][];
  const charges = { lines: decodeLines(record.lines), credits: decodeCredits(record.credits) };
  const levels = record.levels === null ? [] : await namedLevels(database, decodeLevels(record.levels));
  const lines = [charges, ...levels].flatMap((level) => level.lines);
  const above = levels.flatMap(({ userId, ...charge }) =>
    chargedAmounts(charge).map((amount) => ({ ...amount, userId }))
  );
  return {
    ...showListed(record, logs),
    metadata: record.metadata === null ? null : JSON.parse(record.metadata),
    matchedGroupIds: matchedGroupIds({ matchStatus: record.match_status, lines }),
    amounts: [...chargedAmounts(charges), ...above].map((each) => ({
      ...each,
      amount: numberOf(each.amount),
    })),
    prompt: isLogged && logs.hidesTexts !== true ? record.prompt : null,
    response: isLogged && logs.hidesTexts !== true ? record.response : null,
    errorCode: logs.isOn ? record.error_code : null,
    reservationId: record.reservation_id,
    reason: record.reason,
    uncovered: Object.fromEntries(uncovered.map(([unit, amount]) => [unit, numberOf(parseAmount(amount))])),
  };
}

/** Adds the ids of the users above; leaves out users that were erased. */
async function namedLevels(database: Database, levels: readonly StoredLevel[]) {
  const rows = await database.query<{ key: number; id: string }>(
    `select u.key, c.id from users u join users c on c.key = coalesce(u.merged_into, u.key)
     where u.key = any($1::text::bigint[])`,
    [arrayText(levels.map(({ userKey }) => userKey))],
  );
  const ids = new Map(rows.map(({ key, id }) => [key, id]));
  return levels.flatMap((level) => {
    const userId = ids.get(level.userKey);
    return userId === undefined ? [] : [{ ...level, userId }];
  });
}

function isKept(at: Millis, { isOn, keptFrom }: LogView): boolean {
  return isOn && at > keptFrom;
}

function hasLog(record: EventRecord, logs: LogView): boolean {
  return record.log_at_ms !== null && isKept(record.log_at_ms, logs);
}

/** Makes the list's form of an event. */
export function showListed(record: EventRecord, logs: LogView) {
  const isLogged = hasLog(record, logs);
  return {
    id: record.id,
    endUserId: record.end_user_id,
    eventType: record.type,
    quantity: numberOf(parseAmount(record.quantity)),
    costCents: numberOf(parseAmount(record.cost_cents)),
    ...record.cost_credits === null ? {} : { costCredits: numberOf(parseAmount(record.cost_credits)) },
    matchStatus: record.match_status,
    createdAt: new Date(record.created_at_ms).toISOString(),
    hasLog: isLogged,
    promptPreview: isLogged && logs.hidesTexts !== true ? cutTo(record.prompt, PREVIEW_LENGTH) : null,
    ...record.run_id === null ? {} : { runId: record.run_id },
  };
}

/** Cuts a text to a number of code points. */
function cutTo(text: string | null, length: number): string | null {
  return text === null || text.length <= length
    ? text
    : [...text.slice(0, length * 2)].slice(0, length).join("");
}
