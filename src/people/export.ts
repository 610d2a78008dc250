// The export document of a person, as pieces of text: everything of all ids of the person at the time it is opened. Each
// piece is made from one page of rows, so memory does not grow with the document. Anonymous events are left out, since no
// row links them to a person.

import type { Realm } from "../../actors/call.ts";
import type { Mode } from "../../actors/port.ts";
import type { Unit } from "../domain/catalog/plan.ts";
import { numberOf, parseAmount } from "../domain/values/amount.ts";
import type { Millis } from "../domain/values/period.ts";
import { PEOPLE_LIMITS } from "../process/limits.ts";
import { type EventRecord, type LogView, showListed } from "../storage/queries/feed.ts";
import {
  type AnalyticsRecord,
  type ConsentRecord,
  type KeyRecord,
  listMergedPeople,
  readCaptured,
  readConsents,
  readKeys,
  readMetered,
  readShares,
  type SharePlace,
  type ShareRecord,
} from "../storage/queries/person_export.ts";
import { type CapRecord, type OverageRecord, readOverage, soldTo } from "../storage/queries/overage.ts";
import type { Database } from "../storage/database.ts";
import { listPersonIds, type PersonRow, readPerson } from "../storage/stores/people_store.ts";
import { unitePeople } from "./link.ts";
import { exportedRuns, showExportedRun } from "./exported_runs.ts";
import { END, newestFirst } from "./newest_first.ts";
import { exportedTopUps, showExportedTopUp } from "./exported_top_ups.ts";
import { idsCoveredBy } from "./people.ts";
import type { PeopleWorld } from "./world.ts";

/** The person and the head of the document. */
interface ExportQuery {
  readonly realm: Realm;
  readonly appId: string;
  readonly mode: Mode;
  readonly distinctId: string;
  readonly exportedAt: Millis;
  readonly logs: LogView;
}

/** The document that the pieces make up. */
export interface ExportDocument {
  readonly format: "json";
  readonly exportedAt: string;
  readonly appId: string;
  readonly mode: Mode;
  readonly distinctId: string;
  readonly person: ReturnType<typeof showPerson> | null;
  readonly events: {
    readonly analytics: readonly ReturnType<typeof showAnalyticsEvent>[];
    readonly metering: readonly ReturnType<typeof showListed>[];
  };
  readonly consentLog: readonly ReturnType<typeof showConsent>[];
  /** Absent for none. */
  readonly runs?: readonly ReturnType<typeof showExportedRun>[];
  readonly keys: readonly ReturnType<typeof showKey>[];
  /** Absent for none. */
  readonly shares?: readonly ReturnType<typeof showShare>[];
  /** Absent for none. */
  readonly topUps?: readonly ReturnType<typeof showExportedTopUp>[];
  readonly overage?: readonly ReturnType<typeof showOverage>[];
  readonly spendCaps?: readonly ReturnType<typeof showCap>[];
}

const { exportPageRows: PAGE_ROWS, exportHeldRows: HELD_ROWS } = PEOPLE_LIMITS;
const BOUNDS = { pageRows: PAGE_ROWS, heldRows: HELD_ROWS };

/** Yields the document, piece by piece. The caller has waited for the drain. */
export async function* exportDocument(
  world: Pick<PeopleWorld, "term" | "database" | "inCell">,
  query: ExportQuery,
): AsyncGenerator<string> {
  const { database } = world;
  const { appId, mode, distinctId, exportedAt } = query;
  await unitePeople(world, query.realm, distinctId);
  const { realm } = query.realm;
  const person = await readPerson(database, realm, distinctId);
  const ids = await idsCoveredBy(database, realm, [distinctId]);
  const people = await listPersonIds(database, realm, ids);
  type Head = Pick<ExportDocument, "format" | "exportedAt" | "appId" | "mode" | "distinctId" | "person">;
  const head: Head = {
    format: "json",
    exportedAt: timeOf(exportedAt),
    appId,
    mode,
    distinctId,
    person: person === null ? null : showPerson(person, ids),
  };
  yield `${JSON.stringify(head).slice(0, -1)},"events":{"analytics":[`;
  yield* listed(analyticsEvents(database, people), showAnalyticsEvent);
  yield `],"metering":[`;
  yield* listed(meteringEvents(database, realm, ids), (record) => showListed(record, query.logs));
  yield `]},"consentLog":[`;
  yield* listed(consentEntries(database, realm, ids), showConsent);
  const keys = await readKeys(database, realm, ids);
  yield `],"keys":${JSON.stringify(keys.map(showKey))}`;
  // Only people with runs have the member.
  let start = `,"runs":[`;
  for await (
    const text of listed(exportedRuns(world, query.realm, ids), (run) => showExportedRun(run, exportedAt))
  ) {
    yield start + text;
    start = "";
  }
  if (start === "") yield "]";
  yield* sharesOf(world, query, ids);
  start = `,"topUps":[`;
  for await (const text of listed(exportedTopUps(database, realm, ids), showExportedTopUp)) {
    yield start + text;
    start = "";
  }
  if (start === "") yield "]";
  yield* overageOf(world, query, ids);
  yield "}";
}

/** The member with the person's shares; nothing without any. Holds that have lapsed are settled first. */
async function* sharesOf(
  { database, term }: Pick<PeopleWorld, "term" | "database">,
  { realm, distinctId }: ExportQuery,
  ids: readonly string[],
): AsyncGenerator<string> {
  const [any] = await readShares(database, realm.realm, ids, FIRST_SHARE, 1);
  if (any === undefined) return;
  await term.directory.runById(distinctId, { realm, name: "settle", input: {} });
  await term.flush();
  yield `,"shares":[`;
  yield* listed(sharePages(database, realm.realm, ids), showShare);
  yield "]";
}

/** The members with what was sold to the person, and its own caps; nothing without any. */
async function* overageOf(
  { database, term }: Pick<PeopleWorld, "term" | "database">,
  { realm, distinctId }: ExportQuery,
  ids: readonly string[],
): AsyncGenerator<string> {
  const { keys, first, caps } = await soldTo(database, realm.realm, ids);
  if (first !== null) {
    await term.directory.runById(distinctId, { realm, name: "settle", input: {} });
    await term.flush();
    yield `,"overage":[`;
    yield* listed(overagePages(database, keys, first, realm.now()), showOverage);
    yield "]";
  }
  if (caps.length > 0) yield `,"spendCaps":${JSON.stringify(caps.map(showCap))}`;
}

/** Hours of a page of overage. */
const OVERAGE_PAGE_MS = 31 * 24 * 3_600_000;

async function* overagePages(
  database: Database,
  keys: readonly number[],
  first: Millis,
  now: Millis,
): AsyncGenerator<OverageRecord[]> {
  for (let from = first; from <= now; from += OVERAGE_PAGE_MS) {
    const page = await readOverage(database, keys, from, from + OVERAGE_PAGE_MS);
    if (page.length > 0) yield page;
  }
}

const FIRST_SHARE: SharePlace = { user_key: 0, account_key: 0, group_id: "", unit: "", start_ms: 0 };

async function* sharePages(
  database: Database,
  realm: number,
  ids: readonly string[],
): AsyncGenerator<ShareRecord[]> {
  for (let after: SharePlace | undefined = FIRST_SHARE; after !== undefined;) {
    const page: ShareRecord[] = await readShares(database, realm, ids, after, PAGE_ROWS);
    if (page.length > 0) yield page;
    after = page.length < PAGE_ROWS ? undefined : page.at(-1);
  }
}

/** Yields pages of rows as the text of one JSON list, without its brackets. */
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

/** Events of people and of those merged into them. */
async function* analyticsEvents(
  database: Database,
  personIds: readonly string[],
): AsyncGenerator<AnalyticsRecord[]> {
  const people = await listMergedPeople(database, personIds);
  yield* newestFirst(
    people,
    (person, before, limit) => readCaptured(database, person, before, limit),
    BOUNDS,
  );
}

/** Metering events of every user behind one of the ids. */
async function* meteringEvents(
  database: Database,
  realm: number,
  ids: readonly string[],
): AsyncGenerator<EventRecord[]> {
  let before = END;
  while (true) {
    const page = await readMetered(database, realm, ids, before, PAGE_ROWS);
    const last = page.at(-1);
    if (last === undefined) return;
    yield page;
    if (page.length < PAGE_ROWS) return;
    before = { at_ms: last.created_at_ms, id: last.id };
  }
}

async function* consentEntries(
  database: Database,
  realm: number,
  ids: readonly string[],
): AsyncGenerator<ConsentRecord[]> {
  yield* newestFirst(
    ["consents"],
    (_, before, limit) => readConsents(database, realm, ids, before, limit),
    BOUNDS,
  );
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

function showShare({ group_id: groupId, unit, start_ms, end_ms, count, cost_cents }: ShareRecord) {
  return {
    groupId,
    unit: unit as Unit,
    period: { start: timeOf(start_ms), end: end_ms === null ? null : timeOf(end_ms) },
    count: numberOf(parseAmount(count)),
    costCents: numberOf(parseAmount(cost_cents)),
  };
}

function showOverage({ group_id: groupId, unit, hour_ms: hour, amount, total }: OverageRecord) {
  return {
    groupId,
    unit: unit as Unit,
    hour: timeOf(hour),
    amount: numberOf(parseAmount(amount)),
    total: numberOf(parseAmount(total)),
  };
}

function showCap({ group_id: groupId, max }: CapRecord) {
  return { groupId, max: numberOf(parseAmount(max)) };
}

function showKey(key: KeyRecord) {
  return {
    id: key.id,
    name: key.name,
    createdAt: timeOf(key.created_at_ms),
    expiresAt: key.expires_at_ms === null ? null : timeOf(key.expires_at_ms),
    lastUsedAt: key.last_used_at_ms === null ? null : timeOf(key.last_used_at_ms),
  };
}

function timeOf(at: Millis): string {
  return new Date(at).toISOString();
}
