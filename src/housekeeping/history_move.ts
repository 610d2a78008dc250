// The history move: events, ledger and subscription history of an alias are filed under its canonical user, a bounded
// step at a time. Reads look at both places until it is done, so nothing waits for it, and a restart goes on where
// it was: what is left to do is in the tables. Between steps it rests for as long as the step took, so that at most half
// of the database's time goes there.

import type { UserKey } from "../domain/ids.ts";
import { MERGE_LIMITS } from "../process/limits.ts";
import type { Serving } from "../service/service.ts";
import { listHistoryMoves, moveHistory } from "../storage/stores/merge_store.ts";

const ALIASES_MAX = 100;

/** Moves the history of an alias to its end; answers how many rows moved. */
export async function moveAlias({ term, database }: Serving, alias: UserKey): Promise<number> {
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

/** Moves what every merge has left; answers how many rows moved. */
export async function moveAllHistory(serving: Serving): Promise<number> {
  let rows = 0;
  const tried = new Set<UserKey>();
  while (serving.term.isServing) {
    await serving.term.flush();
    const aliases = (await listHistoryMoves(serving.database, ALIASES_MAX)).filter((key) => !tried.has(key));
    if (aliases.length === 0) break;
    for (const alias of aliases) {
      tried.add(alias);
      rows += await moveAlias(serving, alias);
    }
  }
  return rows;
}
