// The forms of the ids that the service issues. Ids grow with time, so that new rows go to the end of their index. The
// id of a reservation, a credit balance, a run or a top-up also names its owner, so that a call with such an id alone finds its user
// without a lookup table. src/process/id_source.ts makes the ids, from clock and counter.

/** The prefix of each kind of id. */
export const ID_PREFIX = {
  subscription: "sub_",
  subscriptionEvent: "sbe_",
  event: "evt_",
  reservation: "rsv_",
  run: "run_",
  creditBalance: "crb_",
  ledgerEntry: "cle_",
  merge: "mrg_",
  person: "pid_",
  analyticsEvent: "ane_",
  generation: "gen_",
  consent: "con_",
  job: "job_",
  app: "app_",
  workspace: "ws_",
  key: "key_",
  webhook: "whk_",
  webhookMessage: "whm_",
  audit: "aud_",
  endUserKey: "uky_",
  topUp: "tup_",
} as const;

export type IdKind = keyof typeof ID_PREFIX;

/** The kinds whose ids name the user that they belong to. */
type OwnedKind = "reservation" | "creditBalance" | "endUserKey" | "run" | "topUp";

/** Issues unique ids that grow with time. Tests pass a source with known ids. */
export interface IdSource {
  /** A new id of a kind that names no owner. */
  next(kind: Exclude<IdKind, OwnedKind>): string;
  /** A new id that names the user it belongs to. */
  nextOwned(kind: OwnedKind, owner: UserKey): string;
}

/** The internal number of an end user in one realm. Rows have it in place of the user's own id. */
export type UserKey = number;

const OWNED = /^(?:rsv|crb|uky|run|tup)_([0-9a-z]{1,11})_[0-9a-z]{20}$/;

/** Makes an id of its owner's key and a unique part of 20 characters. */
export function ownedId(kind: OwnedKind, owner: UserKey, unique: string): string {
  return `${ID_PREFIX[kind]}${owner.toString(36)}_${unique}`;
}

/** Returns the user key that an id of a kind names; null for a text that is not such an id. */
export function ownerOf(kind: OwnedKind, id: string): UserKey | null {
  const parts = id.startsWith(ID_PREFIX[kind]) ? OWNED.exec(id) : null;
  if (parts === null) return null;
  const key = parseInt(parts[1] as string, 36);
  return Number.isSafeInteger(key) && key > 0 ? key : null;
}

/** The place of the time within an id, counted from the end. */
const MOMENT_FROM = -20;
const MOMENT_TO = -10;

/** Returns when an id was made, in milliseconds of the process's clock; 0 for a text without a time. */
export function momentOf(id: string): number {
  const moment = parseInt(id.slice(MOMENT_FROM, MOMENT_TO), 32);
  return Number.isNaN(moment) ? 0 : moment;
}
