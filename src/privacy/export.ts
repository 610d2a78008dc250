// The export document of a person, as text in pieces: what there is of all ids of the person when it is opened.
// However much that is, a piece is made of one page of rows. Specification, "Person export document".

import type { Mode } from "../../actors/port.ts";
import type { Millis } from "../domain/plans/period.ts";
import { END, newestFirst, type Place } from "./newest_first.ts";
import { PEOPLE_LIMITS } from "./limits.ts";
import { idsOfPeople, type PersonRow, readPerson } from "./person_rows.ts";
import { type EventRecord, type LogView, PREVIEWS, selectFrom, showListed } from "../read/feed.ts";
import { newestOf, queryInOrder } from "../read/user_keys.ts";
import { arrayText, type Database } from "../storage/database.ts";

/** Whose document, and what it says of itself. */
export interface ExportQuery {
  readonly realm: number;
  readonly appId: string;
  readonly mode: Mode;
  readonly distinctId: string;
  readonly exportedAt: Millis;
  readonly logs: LogView;
}

const { exportPageRows: PAGE_ROWS, exportHeldRows: HELD_ROWS } = PEOPLE_LIMITS;
const BOUNDS = { pageRows: PAGE_ROWS, heldRows: HELD_ROWS };

/** The document, piece by piece. Callers have waited for the drain. */
export async function* exportDocument(database: Database, query: ExportQuery): AsyncGenerator<string> {
  const { realm, appId, mode, distinctId, exportedAt } = query;
  const person = await readPerson(database, realm, distinctId);
  const ids = await idsOfPeople(database, realm, [distinctId]);
  const head = JSON.stringify({
    format: "json",
    exportedAt: timeOf(exportedAt),
    appId,
    mode,
    distinctId,
    person: person === null ? null : showPerson(person, ids),
  });
  yield `${head.slice(0, -1)},"events":{"analytics":[`;
  if (person !== null) yield* listed(analyticsEvents(database, person.id), showAnalyticsEvent);
  yield `],"metering":[`;
  yield* listed(meteringEvents(database, realm, ids), (record) => showListed(record, query.logs));
  yield `]},"consentLog":[`;
  yield* listed(consentEntries(database, realm, ids), showConsent);
  yield "]}";
}

/** Pages of rows as the text of one JSON list, without its brackets. */
async function* listed<Row>(
  pages: AsyncIterable<readonly Row[]>,
  show: (row: Row) => unknown,
): AsyncGenerator<string> {
  let comma = "";
  for await (const page of pages) {
    yield comma + page.map((row) => JSON.stringify(show(row))).join(",");
    comma = ",";
  }
}

interface AnalyticsRecord extends Place {
  readonly event: string;
  readonly properties: string;
}

/** Events of a person and of everybody who was merged into it. */
async function* analyticsEvents(database: Database, personId: string): AsyncGenerator<AnalyticsRecord[]> {
  const people = await database.query<{ id: string }>(
    "select id from people where id = $1 or merged_into = $1",
    [personId],
  );
  const read = (source: string, { at_ms, id }: Place, limit: number) =>
    queryInOrder<AnalyticsRecord>(
      database,
      `select id, at_ms, event, properties from analytics_events
       where person_id = $1 and (at_ms, id) < ($2::bigint, $3) order by at_ms desc, id desc limit $4::int`,
      [source, at_ms, id, limit],
    );
  yield* newestFirst(people.map(({ id }) => id), read, BOUNDS);
}

/**
 * Metering events of every user that one of the ids stands for. Whose they are is found again for each page and in the
 * same statement: rows of merged users may be on their way from one to the other.
 */
async function* meteringEvents(
  database: Database,
  realm: number,
  ids: readonly string[],
): AsyncGenerator<EventRecord[]> {
  const rows = newestOf({
    table: "events",
    time: "created_at_ms",
    columns: "*",
    owners: "select key from owners",
    after: "$3::bigint, $4::text",
    limit: `${PAGE_ROWS}`,
  });
  const text = `with canonical as (
      select coalesce(merged_into, key) as key from users where realm = $1::int and id = any($2::text::text[])
    ), owners as (
      select key from canonical union
      select a.key from canonical join users a on a.merged_into = canonical.key
      join history_moves h on h.user_key = a.key
    ), page as (
      ${rows} order by created_at_ms desc, id desc limit ${PAGE_ROWS}
    ) ${selectFrom("page", PREVIEWS)} order by e.created_at_ms desc, e.id desc`;
  let { at_ms, id } = END;
  while (true) {
    const page = await queryInOrder<EventRecord>(database, text, [realm, arrayText(ids), at_ms, id]);
    const last = page.at(-1);
    if (last === undefined) return;
    yield page;
    if (page.length < PAGE_ROWS) return;
    ({ created_at_ms: at_ms, id } = last);
  }
}

interface ConsentRecord extends Place {
  readonly action: "opt_out" | "opt_in";
  readonly scope: string;
}

async function* consentEntries(
  database: Database,
  realm: number,
  ids: readonly string[],
): AsyncGenerator<ConsentRecord[]> {
  const read = (_: string, before: Place, limit: number) =>
    database.query<ConsentRecord>(
      `select id, at_ms, action, scope from consents
       where realm = $1::int and distinct_id = any($2::text::text[]) and (at_ms, id) < ($3::bigint, $4::text)
       order by at_ms desc, id desc limit $5::int`,
      [realm, arrayText(ids), before.at_ms, before.id, limit],
    );
  yield* newestFirst(["consents"], read, BOUNDS);
}

function showPerson(person: PersonRow, distinctIds: readonly string[]) {
  return {
    personId: person.id,
    distinctIds,
    properties: JSON.parse(person.properties),
    identifiedAt: person.identified_at_ms === null ? null : timeOf(person.identified_at_ms),
    createdAt: timeOf(person.created_at_ms),
  };
}

function showAnalyticsEvent({ id, event, properties, at_ms }: AnalyticsRecord) {
  return { id, event, properties: JSON.parse(properties), timestamp: timeOf(at_ms) };
}

function showConsent({ id, action, scope, at_ms }: ConsentRecord) {
  return { id, action, scope, consentGiven: action === "opt_in", createdAt: timeOf(at_ms) };
}

function timeOf(at: Millis): string {
  return new Date(at).toISOString();
}
