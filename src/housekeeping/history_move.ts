// The history move: gives events, ledger and subscription history of an alias to its canonical user, a bounded step at a
// time. Reads look under both users until it is done, so nothing waits for it. What is left to do is in the tables, so a
// restart continues it. It rests between steps for as long as the last step took, and so takes at most half of the
// database's time.

import type { UserKey } from "../domain/ids.ts";
import { MERGE_LIMITS } from "../process/limits.ts";
import type { Term } from "../../actors/term.ts";
import type { Database } from "../storage/database.ts";
import { listHistoryMoves, moveHistory } from "../storage/stores/merge_store.ts";

/** What the move uses of a running term. */
export interface MoveWorld {
  readonly term: Pick<Term, "flush" | "isServing">;
  readonly database: Database;
}

const ALIASES_MAX = 100;

/** Moves all history of an alias; answers how many rows moved. */
export async function moveAlias({ term, database }: MoveWorld, alias: UserKey): Promise<number> {
  await term.flush();
  let rows = 0;
  while (term.isServing) {
    const startedAt = performance.now();
    const moved = await database.transaction((session) =>
      moveHistory(session, alias, MERGE_LIMITS.historyRowsMax)
    );
    rows += moved;
    if (moved < MERGE_LIMITS.historyRowsMax) break;
    await rest(Math.min(performance.now() - startedAt, MERGE_LIMITS.historyRestMsMax));
  }
  return rows;
}

function rest(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Moves all history that merges have left to move; answers how many rows moved. */
export async function moveAllHistory(world: MoveWorld): Promise<number> {
  let rows = 0;
  const tried = new Set<UserKey>();
  while (world.term.isServing) {
    await world.term.flush();
    const aliases = (await listHistoryMoves(world.database, ALIASES_MAX)).filter((key) => !tried.has(key));
    if (aliases.length === 0) break;
    for (const alias of aliases) {
      tried.add(alias);
      rows += await moveAlias(world, alias);
    }
  }
  return rows;
}
