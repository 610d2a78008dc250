// The books: a counter is its holds and its events, a balance is its ledger and never below zero, an id is given out
// once. The auditor of the domain keeps them, over every durable turn of all processes.

import type { RowChange } from "../../../actors/port.ts";
import type { Change } from "../../../src/domain/state/user.ts";
import { Auditor } from "../../domain/auditor.ts";
import type { Turn } from "../recorder.ts";
import type { Checker, Scene } from "../watch.ts";

const OF_RUNTIME: ReadonlySet<string> = new Set([
  "idempotency",
  "operations",
  "credit_issues",
  "ai_spend",
  "gateway_spend",
]);

/** The user that a turn was about; null where it says nothing of one. */
export function userOfTurn({ changes }: Turn): number | null {
  for (const { table, row } of changes) {
    if (table === "users") return row.key;
    if ("userKey" in row && row.userKey !== null) return row.userKey;
  }
  return null;
}

/** Keeps the books of everybody but those who get erased. */
export function booksChecker(): Checker {
  const auditor = new Auditor();
  const isOfUser = (change: RowChange): change is Change => !OF_RUNTIME.has(change.table);
  return {
    name: "books",
    onTurn(turn, scene: Scene) {
      const user = userOfTurn(turn);
      if (user === null || scene.isGone(user)) return;
      auditor.take(turn.changes.filter(isOfUser), momentOf(turn, user, scene));
    },
  };
}

/** The time of a turn in its mode. What nobody asked for was noted by the calendar, which a test clock may be ahead of. */
function momentOf({ now, attempt }: Turn, user: number, { server: { tables }, tenantOf }: Scene): number {
  if (attempt !== null) return now;
  const [row] = tables.list("realms", ({ realm }) => realm === tenantOf(user)?.realm);
  return now + Number(row?.clockOffsetMs ?? 0);
}
