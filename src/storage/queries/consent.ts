// What an id has opted out of, from the tables. An opt-out is drained before its call is answered, so a read sees every
// acknowledged one. Section 9 of the decisions.

import type { Session } from "../database.ts";

/** Consent of the user behind an id. */
export interface Consent {
  /** The sum of the scopes opted out of; 0 for an unknown id. */
  readonly optedOut: number;
  /** Whether an erasure is pending. */
  readonly isErasing: boolean;
}

/** The consent of an id, alias resolved. */
export async function readConsent(
  reader: Pick<Session, "query">,
  realm: number,
  distinctId: string,
): Promise<Consent> {
  const [row] = await reader.query<{ opted_out: number; erasing: boolean }>(
    `select c.opted_out, u.erasing or c.erasing as erasing
     from users u join users c on c.key = coalesce(u.merged_into, u.key)
     where u.realm = $1::int and u.id = $2`,
    [realm, distinctId],
  );
  return { optedOut: row?.opted_out ?? 0, isErasing: row?.erasing ?? false };
}
