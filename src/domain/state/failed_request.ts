// Failed requests: what is recorded of an answer with a 4xx or 5xx status to a caller with an API key. Requests of one key that
// are alike in method, route, status and code, within one UTC hour, are one row with a count; those above a limit within one
// UTC day. All keys of an app's users count as one key: each of them may fail, and their rows would push out those of the app's
// server. No decision depends on it.

import type { Millis } from "../values/period.ts";

/** The key of a failed request. */
export interface RequestKey {
  /** Empty for an unknown key, like the mode. */
  readonly appId: string;
  readonly mode: "live" | "test" | "";
  /** Of an unknown key its first characters; `users` for every key of a user. */
  readonly keyId: string;
  readonly keyPrefix: string;
}

/** A request that failed. */
export interface FailedRequest {
  readonly key: RequestKey;
  /** Any word: callers make methods up. */
  readonly method: string;
  /** The path with the names of its parameters. */
  readonly route: string;
  readonly status: number;
  readonly code: string;
  readonly requestId: string;
  /** Real time. */
  readonly at: Millis;
  /** The same moment by the clock of the app, with which times of erasures are compared. */
  readonly realmAt: Millis;
  /** As the caller wrote it, without the query. */
  readonly path: string;
  readonly message: string;
  readonly userId: string | null;
  readonly body: string | null;
  /** The number of alike calls of a batch; absent for one request. */
  readonly count?: number;
}

/** Failed requests of one key that are alike; what is not counted is that of the newest one. */
export interface FailedRequestRow extends Omit<FailedRequest, "key" | "requestId" | "at">, RequestKey {
  /** Start of the UTC hour; of the UTC day for a 429, since a limit refuses for hours, and its rows would hide all others. */
  readonly hour: Millis;
  readonly count: number;
  readonly firstAt: Millis;
  readonly lastAt: Millis;
  /** The newest first. */
  readonly requestIds: readonly string[];
}

/** Request ids that a row keeps. */
export const REQUEST_IDS_MAX = 20;
/** Characters of a body that are kept. */
const BODY_MAX = 500;
/** Characters of a path and of a message that are kept. */
const TEXT_MAX = 300;
/** UTF-16 code units of the id of a user that are kept; a valid one has at most as many. */
const USER_ID_MAX = 400;
/** Characters of a method that are kept; the longest that is registered has 17. */
const METHOD_MAX = 20;
/** Characters by which an unknown key is named. */
const UNKNOWN_PREFIX_LENGTH = 12;

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const TOO_MANY = 429;

/** Names the key of any user of an app. */
export function keyOfUsers(appId: string, mode: "live" | "test"): RequestKey {
  return { appId, mode, keyId: "users", keyPrefix: `uk_${mode}_` };
}

/** Names a key that belongs to no app. */
export function unknownKey(presented: string): RequestKey {
  const keyPrefix = wellFormed(presented.slice(0, UNKNOWN_PREFIX_LENGTH));
  return { appId: "", mode: "", keyId: keyPrefix, keyPrefix };
}

/** Makes the row of one failed request. Of a request with an unknown key it has nothing that the caller sent but its prefix. */
export function failedRowOf({ key, requestId, at, count = 1, ...failed }: FailedRequest): FailedRequestRow {
  const isUnknown = key.appId === "";
  return {
    ...failed,
    ...key,
    method: failed.method.slice(0, METHOD_MAX),
    path: isUnknown ? failed.route : wellFormed(failed.path.slice(0, TEXT_MAX)),
    message: wellFormed(failed.message.slice(0, TEXT_MAX)),
    userId: isUnknown || failed.userId === null ? null : wellFormed(failed.userId.slice(0, USER_ID_MAX)),
    body: isUnknown ? null : failed.body,
    hour: at - at % (failed.status === TOO_MANY ? DAY_MS : HOUR_MS),
    count,
    firstAt: at,
    lastAt: at,
    requestIds: [requestId],
  };
}

/** Adds up two rows of alike requests. */
export function addUpFailed(row: FailedRequestRow, other: FailedRequestRow): FailedRequestRow {
  const [newer, older] = other.lastAt >= row.lastAt ? [other, row] : [row, other];
  return {
    ...newer,
    count: row.count + other.count,
    firstAt: Math.min(row.firstAt, other.firstAt),
    requestIds: [...newer.requestIds, ...older.requestIds].slice(0, REQUEST_IDS_MAX),
  };
}

/** Makes a text that is equal for rows of alike requests of one app. */
export function failedKindOf({ mode, keyId, method, route, status, code, hour }: FailedRequestRow): string {
  return JSON.stringify([mode, keyId, method, route, status, code, hour]);
}

/** Members that may have what people wrote, or what a caller knows of them. */
const HIDDEN: ReadonlySet<string> = new Set([
  "prompt",
  "response",
  "messages",
  "input",
  "instructions",
  "system",
  "tools",
  "vars",
  "properties",
  "propertiesOnce",
  "notes",
  "metadata",
]);

/**
 * Returns the first 500 characters of a body as JSON, with "[hidden]" for the members that may have personal text. It reads no
 * further than that, however long the body is.
 */
export function shownBody(members: object): string {
  return wellFormed(jsonUpTo(members, BODY_MAX).slice(0, BODY_MAX));
}

/** Writes a JSON value until it has so many characters. */
function jsonUpTo(value: unknown, room: number): string {
  if (typeof value === "string") return JSON.stringify(value.slice(0, room));
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  let text = Array.isArray(value) ? "[" : "{";
  const add = (name: string, member: unknown) => {
    if (text.length > 1) text += ",";
    text += name + jsonUpTo(member, Math.max(room - text.length, 0));
  };
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length && text.length < room; index++) add("", value[index]);
    return `${text}]`;
  }
  for (const name in value) {
    if (text.length >= room) break;
    const member = HIDDEN.has(name) ? "[hidden]" : (value as Record<string, unknown>)[name];
    add(`${JSON.stringify(name.slice(0, room))}:`, member);
  }
  return `${text}}`;
}

/** Replaces halves of characters, such as the last one of a text that was cut. */
function wellFormed(text: string): string {
  return text.toWellFormed().replaceAll("\0", "\uFFFD");
}
