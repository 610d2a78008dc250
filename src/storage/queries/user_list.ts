// Pages of a list of users: sorted, filtered and searched. A page walks along an index and skips what a filter leaves out, up
// to a bound; where a filter has few users, all of them are read and sorted. Callers wait for the drain first.

import { Buffer } from "node:buffer";
import type { UserKey } from "../../domain/values/ids.ts";
import { NEAR_PERCENT } from "../../domain/state/summary.ts";
import type { Millis } from "../../domain/values/period.ts";
import { USER_LIST_LIMITS } from "../../process/user_list_limits.ts";
import { arrayText, type Database } from "../database.ts";
import {
  byId,
  fewOf,
  ORDERS,
  type Place,
  PLACES,
  type Selection,
  type Sorted,
  type UserSort,
} from "./user_list_orders.ts";
import {
  costLeaders,
  costsOf,
  type Leaders,
  refusalLeaders,
  refusalsOf,
  refusalsSince,
  type Sums,
} from "./user_list_sums.ts";

/** A place in a list: among the users with a value, or among the rest. */
type Cursor = readonly [part: Part, ...Place];
type Part = "head" | "rest";

/** Selects a page of users. */
export interface UserListQuery {
  readonly realm: number;
  /** The realm's clock. */
  readonly now: Millis;
  readonly sort: UserSort;
  readonly order: "asc" | "desc";
  readonly filter: "near" | "hit" | null;
  readonly planId: string | null;
  /** The beginning of their ids, exact by code points; "" for all. */
  readonly startsWith: string;
  /** Only these users, which a search found; null for all. */
  readonly found: readonly UserKey[] | null;
  readonly after: Cursor | null;
  readonly limit: number;
}

/** A user in a list. */
export interface ListedUser extends Sorted {
  /** The canonical id behind an alias; null for no alias. */
  readonly aliasOf: string | null;
  readonly isErasing: boolean;
  readonly groupId: string | null;
}

/** A page of a list. */
interface UserPage {
  readonly users: readonly ListedUser[];
  /** Where the next page continues; null on the last one. */
  readonly next: Cursor | null;
  /** Whether the order is exact for all users. */
  readonly isExact: boolean;
}

/** Lists a page of users. */
export async function listUserPage(database: Database, query: UserListQuery): Promise<UserPage> {
  const few = query.found ??
    (isOfOrder(query) ? null : await fewOf(database, selectionOf(query), hitSince(query)));
  const leaders = few === null ? await leadersOf(database, query) : null;
  const list = new UserList(database, query, leaders);
  const { users, next } = await (few === null ? list.walk() : list.sorted(few));
  const [costs, refusals] = await list.sums(users.map(({ key }) => key), true);
  return {
    users: users.map((user) => withSums(user, costs, refusals)),
    next,
    isExact: leaders?.isComplete ?? true,
  };
}

/** Whether the order of a list has its filters in its index. */
function isOfOrder({ sort, filter, planId, startsWith }: UserListQuery): boolean {
  return (startsWith === "" || sort === "id") && (planId === null || sort === "plan") &&
    (filter === null || sort === (filter === "near" ? "limit" : "refusals"));
}

function selectionOf(query: UserListQuery): Selection {
  return {
    ...query,
    isAscending: query.order === "asc",
    percentMin: query.filter === "near" ? NEAR_PERCENT : 0,
  };
}

function hitSince({ filter, now }: UserListQuery): Millis | null {
  return filter === "hit" ? refusalsSince(now) : null;
}

async function leadersOf(database: Database, { sort, realm, now }: UserListQuery): Promise<Leaders | null> {
  if (sort === "cost") return await costLeaders(database, realm, now);
  return sort === "refusals" ? await refusalLeaders(database, realm, now) : null;
}

const NO_SUMS: Sums = new Map();

/** A list that is being read. */
class UserList {
  readonly #database: Database;
  readonly #query: UserListQuery;
  readonly #selection: Selection;
  readonly #leaders: Leaders | null;

  /** @param leaders those of the order; null for an order that an index has, and where all users are sorted */
  constructor(database: Database, query: UserListQuery, leaders: Leaders | null) {
    this.#database = database;
    this.#query = query;
    this.#selection = selectionOf(query);
    this.#leaders = leaders;
  }

  /** Sorts some users, and returns the page of them. */
  async sorted(keys: readonly UserKey[]): Promise<Omit<UserPage, "isExact">> {
    const { limit, after } = this.#query;
    const users = (await this.#read(keys)).filter((user) => this.#passes(user));
    const order = (a: ListedUser, b: ListedUser) => this.#compare(this.#cursorOf(a), this.#cursorOf(b));
    const rest = users.sort(order)
      .filter((user) => after === null || this.#compare(this.#cursorOf(user), after) > 0);
    const page = rest.slice(0, limit);
    const last = page.at(-1);
    return { users: page, next: rest.length > limit && last !== undefined ? this.#cursorOf(last) : null };
  }

  /** Walks along the order until a page is full, or enough users were looked at. */
  async walk(): Promise<Omit<UserPage, "isExact">> {
    const { limit, after } = this.#query;
    const users: ListedUser[] = [];
    const parts = this.#parts;
    const { firstChunkUsers, chunkUsers } = USER_LIST_LIMITS;
    let looked = 0;
    let chunk: number = firstChunkUsers;
    for (const part of parts.slice(after === null ? 0 : Math.max(parts.indexOf(after[0]), 0))) {
      let place: Place | null = after !== null && after[0] === part ? after.slice(1) as Place : null;
      while (true) {
        const asked = this.#skipsNone(part) ? limit + 1 - users.length : chunk;
        chunk = Math.min(2 * chunk, chunkUsers);
        const keys = await this.#next(part, place, asked);
        for (const user of await this.#read(keys)) {
          const cursor = this.#cursorOf(user);
          if (part === "rest") place = [user.id];
          else if (cursor[0] === "head") place = cursor.slice(1) as Place;
          if (cursor[0] !== part || !this.#passes(user)) continue;
          if (users.length === limit) return { users, next: this.#cursorOf(users.at(-1) as ListedUser) };
          users.push(user);
        }
        looked += keys.length;
        if (keys.length < asked) break;
        if (looked >= USER_LIST_LIMITS.walkedMax) {
          return { users, next: place === null ? null : [part, ...place] };
        }
      }
    }
    return { users, next: null };
  }

  /** The parts of the list in their order. A user without a value has 0, or none, which is last. */
  get #parts(): readonly Part[] {
    const { sort, filter, planId, order } = this.#query;
    const hasNoRest = sort === "id" || (sort === "limit" && filter === "near") ||
      (sort === "plan" && planId !== null) ||
      (sort === "refusals" && filter === "hit" && this.#leaders?.isComplete === true);
    if (hasNoRest) return ["head"];
    return order === "asc" && sort !== "plan" && sort !== "lastSeen" ? ["rest", "head"] : ["head", "rest"];
  }

  #skipsNone(part: Part): boolean {
    return part === "head" && isOfOrder(this.#query);
  }

  #next(part: Part, after: Place | null, limit: number): Promise<readonly UserKey[]> {
    const { sort } = this.#query;
    if (part === "rest") return byId(this.#database, this.#selection, after, limit);
    if (sort !== "cost" && sort !== "refusals") {
      return ORDERS[sort](this.#database, this.#selection, after, limit);
    }
    const places = [...this.#leaders?.sums ?? NO_SUMS].map(([key, sum]) => [sum, key] as const)
      .sort((a, b) => this.#compareValues(a, b))
      .filter((place) => after === null || this.#compareValues(place, after) > 0);
    return Promise.resolve(places.slice(0, limit).map(([, key]) => key));
  }

  /** Reads users in the given order, with the sums that the order or the filter needs. */
  async #read(keys: readonly UserKey[]): Promise<ListedUser[]> {
    if (keys.length === 0) return [];
    const { now } = this.#query;
    const [rows, [costs, refusals]] = await Promise.all([
      this.#database.query<UserRecord>(USERS, [arrayText(keys)]),
      this.sums(keys, false),
    ]);
    return rows.map((row) => withSums(listedOf(row, now), costs, refusals));
  }

  /** Reads the sums of users: all of them, or only those that the order or the filter needs. */
  async sums(keys: readonly UserKey[], isForPage: boolean): Promise<readonly [costs: Sums, refusals: Sums]> {
    const { sort, filter, realm, now } = this.#query;
    const [needsCosts, needsRefusals] = [
      isForPage || sort === "cost",
      isForPage || sort === "refusals" || filter === "hit",
    ];
    const ofLeaders = isForPage ? undefined : this.#leaders?.sums;
    return await Promise.all([
      needsCosts ? ofLeaders ?? costsOf(this.#database, keys, now) : NO_SUMS,
      needsRefusals
        ? (sort === "refusals" ? ofLeaders : undefined) ?? refusalsOf(this.#database, realm, keys, now)
        : NO_SUMS,
    ]);
  }

  #passes(user: ListedUser): boolean {
    const { filter, planId, startsWith } = this.#query;
    return (planId === null || user.planId === planId) && user.id.startsWith(startsWith) &&
      (filter !== "near" || user.percent >= NEAR_PERCENT) && (filter !== "hit" || user.refusals > 0);
  }

  #cursorOf(user: ListedUser): Cursor {
    const place = PLACES[this.#query.sort](user);
    return place === null ? ["rest", user.id] : ["head", ...place];
  }

  #compare([part, ...place]: Cursor, [otherPart, ...other]: Cursor): number {
    if (part !== otherPart) return this.#parts.indexOf(part) - this.#parts.indexOf(otherPart);
    return part === "rest"
      ? compareValues(place[0] ?? "", other[0] ?? "")
      : this.#compareValues(place, other);
  }

  #compareValues(place: Place, other: Place): number {
    for (const [index, value] of place.entries()) {
      const difference = compareValues(value, other[index] ?? 0);
      if (difference !== 0) return this.#selection.isAscending ? difference : -difference;
    }
    return 0;
  }
}

/** Compares numbers, or texts by code points. */
function compareValues(a: number | string, b: number | string): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return Buffer.compare(Buffer.from(String(a)), Buffer.from(String(b)));
}

interface UserRecord {
  readonly key: UserKey;
  readonly id: string;
  readonly alias_of: string | null;
  readonly erasing: boolean;
  readonly plan_id: string | null;
  readonly group_id: string | null;
  readonly percent: number | null;
  readonly until_ms: Millis | null;
  readonly seen_at_ms: Millis | null;
}

/** SQL of the users in $1, in this order. */
const USERS = `select u.key, u.id, c.id as alias_of, u.erasing or coalesce(c.erasing, false) as erasing,
    case when u.held_until_ms is null then u.held_plan_id end as plan_id, s.group_id, s.percent, s.until_ms, s.seen_at_ms
  from unnest($1::text::bigint[]) with ordinality as asked(key, place) join users u on u.key = asked.key
  left join users c on c.key = u.merged_into left join user_summaries s on s.user_key = u.key order by asked.place`;

function listedOf(row: UserRecord, now: Millis): ListedUser {
  const until = row.until_ms ?? 0;
  return {
    key: row.key,
    id: row.id,
    aliasOf: row.alias_of,
    isErasing: row.erasing,
    planId: row.plan_id,
    groupId: row.group_id,
    percent: until > now ? row.percent ?? 0 : 0,
    until,
    seenAt: row.seen_at_ms,
    costCents: 0,
    refusals: 0,
  };
}

function withSums(user: ListedUser, costs: Sums, refusals: Sums): ListedUser {
  return { ...user, costCents: costs.get(user.key) ?? 0, refusals: refusals.get(user.key) ?? 0 };
}

/** Encodes where the next page continues. */
export function cursorText(sort: UserSort, next: Cursor): string {
  return Buffer.from(JSON.stringify([sort, ...next])).toString("base64url");
}

/** Decodes a cursor; undefined if it is invalid, or of another order. */
export function readUserCursor(text: string, sort: UserSort): Cursor | undefined {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(text, "base64url").toString());
  } catch {
    return undefined;
  }
  if (!Array.isArray(value) || value[0] !== sort) return undefined;
  const [, part, ...place] = value;
  const want = part === "rest" ? ["string"] : part === "head" ? PLACE_TYPES[sort] : [];
  const fits = want.length > 0 && place.length === want.length &&
    place.every((each, index) =>
      typeof each === want[index] && isStorable(each, sort === "cost" && index === 0)
    );
  return fits ? [part, ...place] : undefined;
}

/** Whether a value can be a parameter of a statement. A cost is compared here, and may have decimals. */
function isStorable(value: unknown, isCost: boolean): boolean {
  if (typeof value === "string") return value.isWellFormed() && !value.includes("\0");
  return isCost ? Number.isFinite(value) : Number.isSafeInteger(value);
}

const PLACE_TYPES: Readonly<Record<UserSort, readonly string[]>> = {
  id: ["string"],
  limit: ["number", "number", "number"],
  cost: ["number", "number"],
  refusals: ["number", "number"],
  lastSeen: ["number", "number"],
  plan: ["string", "string"],
};
