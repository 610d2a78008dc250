// Finds users by a part of their id, or of the email or name of their person, in any case; or by the exact id of a Stripe
// customer. Ids and emails that begin with the text are found by an index. No index for parts of texts works on both stores,
// so that search reads a bounded number of ids and people.

import { SCOPE_BITS } from "../../domain/state/user.ts";
import type { UserKey } from "../../domain/values/ids.ts";
import { USER_LIST_LIMITS } from "../../process/user_list_limits.ts";
import { arrayText, type Database } from "../database.ts";
import { idsNotHidden, idsOfPeople } from "./people_store.ts";
import { endOfRange } from "../prefix_range.ts";

/** The users that a search found. */
interface FoundUsers {
  readonly keys: readonly UserKey[];
  /** Whether it looked through all ids and people, and found no more users than it returns. */
  readonly isComplete: boolean;
}

/** Finds users by a text, which is not empty. */
export async function findUsers(database: Database, realm: number, text: string): Promise<FoundUsers> {
  const { foundMax, foundPeopleMax } = USER_LIST_LIMITS;
  const [begun, inside, mailed, named, ofCustomer] = await Promise.all([
    idsBeginning(database, realm, text),
    idsWith(database, realm, text),
    peopleMailed(database, realm, text),
    peopleWith(database, realm, text),
    text.startsWith("cus_") ? idsOfCustomer(database, realm, text) : [],
  ]);
  const ofPeople = await idsOfShown(database, realm, [...new Set([...mailed, ...named.ids])]);
  const ids = new Set([...ofCustomer, ...begun, ...inside.ids, ...ofPeople]);
  const keys = await keysOf(database, realm, [...ids].slice(0, foundMax));
  const isComplete = inside.isWhole && named.isWhole && ids.size <= foundMax &&
    mailed.length < foundPeopleMax && named.ids.length < foundPeopleMax;
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

/** The result of a search among a bounded number of ids. */
interface Searched {
  readonly ids: readonly string[];
  /** Whether all ids were searched, and all that matched are here. */
  readonly isWhole: boolean;
}

/** SQL of the rows of `looked` that match the pattern, $2, as JSON up to a number, and of how many were looked through. */
const matching = (row: string, text: string, max: number) =>
  `select count(*)::int as looked, to_json((array_agg(${row}) filter (where ${text} like $2))[1:${max}])::text as found`;

async function idsWith(database: Database, realm: number, text: string): Promise<Searched> {
  const { searchedMax, foundMax } = USER_LIST_LIMITS;
  const [row] = await database.query<{ looked: number; found: string | null }>(
    `${matching("id", "lower(id)", foundMax + 1)} from (
       select id from users where realm = $1::int order by id limit ${searchedMax}
     ) as users`,
    [realm, patternOf(text)],
  );
  const found = JSON.parse(row?.found ?? "[]") as string[];
  const isWhole = (row?.looked ?? 0) < searchedMax && found.length <= foundMax;
  return { ids: found.filter((id) => isInside(text, id)), isWhole };
}

/** Properties of a person by which it is found. */
const NAMES = ["email", "name", "$email", "$name"];

/** SQL of the beginning of a person's email in lower case, as an index has it. */
const EMAIL = `left(lower(substring(properties from '"\\$?email":"([^"\\\\]+)"') collate "C"), 255)`;

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
async function peopleWith(database: Database, realm: number, text: string): Promise<Searched> {
  const { searchedMax, foundPeopleMax } = USER_LIST_LIMITS;
  // The pattern has no letters but those of ASCII, and case is far cheaper in the collation that knows no others.
  const [row] = await database.query<{ looked: number; found: string | null }>(
    `${matching("array[id, properties]", 'lower(properties collate "C")', foundPeopleMax * 4)} from (
       select id collate "C" as id, properties collate "C" as properties from people
       where realm = $1::int and merged_into is null and properties <> '{}' order by id desc limit ${searchedMax}
     ) as people`,
    [realm, patternOf(text)],
  );
  const found = JSON.parse(row?.found ?? "[]") as [id: string, properties: string][];
  const people = found.map(([id, properties]) => ({ id, properties }));
  const ids = await idsOfNamed(database, people, text);
  return { ids, isWhole: (row?.looked ?? 0) < searchedMax };
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
  if (ids.length === 0) return [];
  const shown = await idsNotHidden(database, realm, ids, SCOPE_BITS.analytics);
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
