// The scopes that an id opted out of, from the tables. An opt-out is drained before its call is answered, so a read sees
// every acknowledged one.

import type { Session } from "../database.ts";

/** The consent of an id's user. */
interface Consent {
  /** The scopes opted out of, as a sum of SCOPE_BITS; 0 for an unknown id. */
  readonly optedOut: number;
  /** Whether an erasure is pending. */
  readonly isErasing: boolean;
}

/** Reads the consent of an id's canonical user. */
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
