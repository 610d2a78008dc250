// Counts of refused calls: a crash may lose some, and nothing counts a call twice. At the end no row is under the id of an
// alias: counts from before a merge, or written during it, have moved.

import type { Fields } from "../../support/memory_store.ts";
import { type Attempt, elementsOf, isBatch } from "../history.ts";
import type { Checker } from "../watch.ts";

/** Looks at the table when everything has ended. */
export function refusalsChecker(): Checker {
  return {
    name: "refusals",
    atEnd({ server: { tables }, calls }) {
      const possible = new Map<string, number>();
      for (const attempt of calls.flatMap(({ attempts }) => attempts)) {
        if (!mayBeCounted(attempt)) continue;
        const { tenant, request } = attempt.call;
        for (const { event } of elementsOf(request)) {
          const key = `${tenant.realm} ${event}`;
          possible.set(key, (possible.get(key) ?? 0) + 1);
        }
      }
      const rows = tables.list("refusals");
      for (const [key, alike] of Map.groupBy(rows, ({ realm, event }) => `${realm} ${event}`)) {
        const counted = alike.reduce((sum, { count }) => sum + Number(count), 0);
        const most = possible.get(key) ?? 0;
        if (counted > most) {
          throw new Error(`${key}: ${counted} refused calls are counted, of at most ${most}`);
        }
      }
      const isAlias = (row: Fields) =>
        tables.list(
          "users",
          ({ realm, id, merged_into: into }) => realm === row.realm && id === row.user_id && into !== null,
        ).length > 0;
      const left = rows.find(isAlias);
      if (left !== undefined) throw new Error(`refused calls are left under the alias ${left.user_id}`);
    },
  };
}

/** Whether a process refused it, or gave no answer that says. */
function mayBeCounted({ call: { request }, reply }: Attempt): boolean {
  // The answer of a batch does not tell which of its events were refused.
  if (isBatch(request)) return reply?.isReplayed !== true;
  if (request.op !== "reserve" && request.op !== "track") return false;
  if (reply === null || reply.status === 503) return true;
  return !reply.isReplayed && (reply.status === 429 || reply.model.data?.["allowed"] === false);
}
