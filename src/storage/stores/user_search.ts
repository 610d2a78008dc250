// Finds users by a text: inside their ids and the email and name of their person, without regard to case, or by the exact id
// of a customer of Stripe. No index serves a search inside of texts on both stores, so it looks through a bounded number of
// ids and people. Ids and emails that begin with the text are found by an index, however many there are.

import { SCOPE_BITS } from "../../domain/state/user.ts";
import type { UserKey } from "../../domain/values/ids.ts";
import { USER_LIST_LIMITS } from "../../process/user_list_limits.ts";
import { arrayText, type Database } from "../database.ts";
import { idsOfPeople, readPersonState } from "./people_store.ts";
import { endOfRange } from "../prefix_range.ts";

/** The users that a search found. */
export interface FoundUsers {
  readonly keys: readonly UserKey[];
  /** Whether it looked through all ids and people, and found no more users than it returns. */
  readonly isComplete: boolean;
}

/** Finds users by a text, which is not empty. */
export async function findUsers(database: Database, realm: number, text: string): Promise<FoundUsers> {
  const { foundMax, searchedMax, foundPeopleMax } = USER_LIST_LIMITS;
  const [begun, inside, mailed, people, ofCustomer, isLooked] = await Promise.all([
    idsBeginning(database, realm, text),
    idsWith(database, realm, text),
    peopleMailed(database, realm, text),
    peopleWith(database, realm, text),
    text.startsWith("cus_") ? idsOfCustomer(database, realm, text) : [],
    isBelow(database, realm, searchedMax),
  ]);
  const ofPeople = await idsOfShown(database, realm, [...new Set([...mailed, ...people])]);
  const ids = new Set([...ofCustomer, ...begun, ...inside, ...ofPeople]);
  const keys = await keysOf(database, realm, [...ids].slice(0, foundMax));
  const isComplete = isLooked && ids.size <= foundMax && inside.length <= foundMax &&
    mailed.length < foundPeopleMax && people.length < foundPeopleMax;
  return { keys, isComplete };
}

/** Ids that are the text, or begin with it, exact by code points. */
async function idsBeginning(database: Database, realm: number, text: string): Promise<string[]> {
  const end = endOfRange(text);
  const rows = await database.query<{ id: string }>(
    `select id from users where realm = $1::int and id >= $2 ${end === null ? "" : "and id < $3"}
     order by id limit ${USER_LIST_LIMITS.foundMax}`,
    end === null ? [realm, text] : [realm, text, end],
  );
  return rows.map(({ id }) => id);
}

/**
 * Makes a pattern of LIKE that every text with these characters inside matches, in any case: an ASCII letter matches lower
 * case, and any other character that case or JSON may write otherwise matches all.
 */
function patternOf(text: string): string {
  const parts = [...text.toLowerCase()].map((character) =>
    /[a-z0-9@. :/=+-]/.test(character) ? character : character === "_" ? "\\_" : "%"
  );
  return `%${parts.join("")}%`;
}

function isInside(text: string, value: unknown): boolean {
  return typeof value === "string" && value.toLowerCase().includes(text.toLowerCase());
}

async function idsWith(database: Database, realm: number, text: string): Promise<string[]> {
  const { searchedMax, foundMax } = USER_LIST_LIMITS;
  const rows = await database.query<{ id: string }>(
    `select id from (select id from users where realm = $1::int order by id limit ${searchedMax}) as looked
     where lower(id) like $2 limit ${foundMax + 1}`,
    [realm, patternOf(text)],
  );
  return rows.map(({ id }) => id).filter((id) => isInside(text, id));
}

/** Properties of a person by which it is found. */
const NAMES = ["email", "name", "$email", "$name"];

/** SQL of the email of a person in lower case, as an index has it. */
const EMAIL = `lower(substring(properties from '"\\$?email":"([^"\\\\]+)"') collate "C")`;

interface NamedPerson {
  readonly id: string;
  readonly properties: string;
}

/** Lists an id of each person with an email that begins with the text. */
async function peopleMailed(database: Database, realm: number, text: string): Promise<string[]> {
  const begin = text.toLowerCase();
  const end = endOfRange(begin);
  const rows = await database.query<NamedPerson>(
    `select id, properties from people where realm = $1::int and merged_into is null and ${EMAIL} >= $2
       ${end === null ? "" : `and ${EMAIL} < $3`} order by ${EMAIL} limit ${USER_LIST_LIMITS.foundPeopleMax}`,
    end === null ? [realm, begin] : [realm, begin, end],
  );
  return await idsOfNamed(database, rows, text);
}

/** Lists an id of each person with the text in its email or name. */
async function peopleWith(database: Database, realm: number, text: string): Promise<string[]> {
  const { searchedMax, foundPeopleMax } = USER_LIST_LIMITS;
  // The pattern has no letters but those of ASCII, and case is far cheaper in the collation that knows no others.
  const rows = await database.query<NamedPerson>(
    `select id, properties from (
       select id, properties from people where realm = $1::int and merged_into is null and properties <> '{}'
       order by id desc limit ${searchedMax}
     ) as looked where lower(properties collate "C") like $2 limit ${foundPeopleMax * 4}`,
    [realm, patternOf(text)],
  );
  return await idsOfNamed(database, rows, text);
}

/** Lists an id of each of these people that has the text in its email or name. */
async function idsOfNamed(
  database: Database,
  rows: readonly NamedPerson[],
  text: string,
): Promise<string[]> {
  const isNamed = ({ properties }: NamedPerson) => {
    const values = JSON.parse(properties) as Record<string, unknown>;
    return NAMES.some((name) => Object.hasOwn(values, name) && isInside(text, values[name]));
  };
  const people = rows.filter(isNamed).slice(0, USER_LIST_LIMITS.foundPeopleMax).map(({ id }) => id);
  const ids = await database.query<{ id: string }>(
    `select (select distinct_id from person_ids where person_id = asked.id limit 1) as id
     from unnest($1::text::text[]) as asked(id)`,
    [arrayText(people)],
  );
  return ids.flatMap(({ id }) => id ?? []);
}

/** Lists all ids of the people of these ids, without people who opted out of analytics or wait for their deletion. */
async function idsOfShown(database: Database, realm: number, ids: readonly string[]): Promise<string[]> {
  const shown: string[] = [];
  for (const id of ids) {
    const { optedOut, isErasing } = await readPersonState(database, realm, id);
    if ((optedOut & SCOPE_BITS.analytics) === 0 && !isErasing) shown.push(id);
  }
  return shown.length === 0 ? shown : await idsOfPeople(database, realm, shown);
}

/** The ids of users who buy as a customer of Stripe: by messages, by top-ups, and by what they set for top-ups. */
async function idsOfCustomer(database: Database, realm: number, customerId: string): Promise<string[]> {
  const rows = await database.query<{ id: string }>(
    `select c.id from stripe_customers s join users u on u.realm = s.realm and u.id = s.user_id
     join users c on c.key = coalesce(u.merged_into, u.key) where s.realm = $1::int and s.customer_id = $2
     union
     select c.id from top_ups t join users u on u.key = t.user_key
     join users c on c.key = coalesce(u.merged_into, u.key) where t.realm = $1::int and t.customer_id = $2
     union
     select id from users where realm = $1::int and top_up is not null
       and substring(top_up from '"customerId":"([^"]*)"') = $2
     limit ${USER_LIST_LIMITS.foundMax}`,
    [realm, customerId],
  );
  return rows.map(({ id }) => id);
}

async function keysOf(database: Database, realm: number, ids: readonly string[]): Promise<UserKey[]> {
  const rows = await database.query<{ key: UserKey }>(
    `select u.key from unnest($2::text::text[]) as asked(id) join users u on u.realm = $1::int and u.id = asked.id`,
    [realm, arrayText(ids)],
  );
  return rows.map(({ key }) => key);
}

/** Whether a realm has at most so many ids, and so many people. */
async function isBelow(database: Database, realm: number, max: number): Promise<boolean> {
  const rows = await database.query(
    `(select 1 from users where realm = $1::int order by id offset $2::int limit 1)
     union all
     (select 1 from people where realm = $1::int and merged_into is null and properties <> '{}'
      order by id offset $2::int limit 1)`,
    [realm, max],
  );
  return rows.length === 0;
}
