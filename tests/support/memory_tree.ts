// The tree of users in the tables of a store in memory.

import type { UserKey } from "../../src/domain/values/ids.ts";
import type { User } from "../../src/domain/state/user.ts";

interface Tables {
  users(): readonly User[];
}

/** The users directly below a user. */
export function childrenOf(tables: Tables, owners: readonly UserKey[]): User[] {
  return tables.users().filter(({ parentKey, mergedInto }) =>
    mergedInto === null && parentKey !== null && owners.includes(parentKey)
  );
}

/** The users on the longest way down from a user, without itself. */
export function heightBelow(tables: Tables, owners: readonly UserKey[]): number {
  const heights = childrenOf(tables, owners).map(({ key }) => 1 + heightBelow(tables, keysOf(tables, key)));
  return Math.max(0, ...heights);
}

function keysOf(tables: Tables, key: UserKey): UserKey[] {
  return [key, ...tables.users().filter(({ mergedInto }) => mergedInto === key).map((row) => row.key)];
}
