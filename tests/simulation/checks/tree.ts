// The tree: no user is above itself, and no path has more than eight users, after every durable turn. An alias means
// its canonical user.

import type { Checker } from "../watch.ts";

const PATH_MAX = 8;

/** Follows the parent of every user. */
export function treeChecker(): Checker {
  const parents = new Map<number, number | null>();
  const canonical = new Map<number, number>();
  const parentOf = (key: number) => {
    const parent = parents.get(key) ?? null;
    return parent === null ? null : canonical.get(parent) ?? parent;
  };
  return {
    name: "tree",
    onTurn({ changes }) {
      let isChanged = false;
      for (const { table, row } of changes) {
        if (table !== "users") continue;
        isChanged ||= row.mergedInto !== null || (parents.get(row.key) ?? null) !== row.parentKey;
        parents.set(row.key, row.parentKey);
        if (row.mergedInto !== null) canonical.set(row.key, row.mergedInto);
      }
      if (!isChanged) return;
      for (const lowest of parents.keys()) {
        const path: number[] = [];
        for (let at: number | null = lowest; at !== null; at = parentOf(at)) {
          if (path.includes(at)) throw new Error(`user ${at} is above itself`);
          path.push(at);
        }
        if (path.length > PATH_MAX) throw new Error(`the path of user ${lowest} has ${path.length} users`);
      }
    },
  };
}
