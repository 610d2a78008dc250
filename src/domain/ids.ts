// The forms of the ids that Holdfast gives out. Ids grow with time, so that new rows land at the end of their
// index, and a reservation's id names its owner, so that a settlement finds its user without a lookup table.
// Where ids come from (clock, counter, process) is the composition root's affair: see src/id_source.ts.

/** Every kind of id with its prefix. Section 1 of the decisions, "Ids". */
export const ID_PREFIX = {
  subscription: "sub_",
  subscriptionEvent: "sbe_",
  event: "evt_",
  reservation: "rsv_",
  app: "app_",
  workspace: "ws_",
  key: "key_",
} as const;

export type IdKind = keyof typeof ID_PREFIX;

/** One of the four doors through which nondeterminism enters: unique, ever growing ids. */
export interface IdSource {
  /** A new id of a kind that names no owner. */
  next(kind: Exclude<IdKind, "reservation">): string;
  /** A new reservation id that names the user it belongs to. */
  nextReservation(owner: UserKey): string;
}

/** The internal number of an end user in one realm; it appears in rows in place of the user's own id. */
export type UserKey = number;

const OWNED = /^rsv_([0-9a-z]{1,11})_[0-9a-z]{20}$/;

/** The reservation id made of its owner's key and a unique part of 20 characters. */
export function reservationId(owner: UserKey, unique: string): string {
  return `${ID_PREFIX.reservation}${owner.toString(36)}_${unique}`;
}

/** The user key that a reservation id names, or null where the text is no reservation id. */
export function reservationOwner(id: string): UserKey | null {
  const parts = OWNED.exec(id);
  if (parts === null) return null;
  const key = parseInt(parts[1] as string, 36);
  return Number.isSafeInteger(key) && key > 0 ? key : null;
}
