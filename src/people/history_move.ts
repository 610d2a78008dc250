// The history move: gives events, ledger and subscription history of an alias to its canonical user, a bounded step at a
// time. Reads look under both users until it is done, so no call waits for it. The remaining work is recorded in the tables,
// so the next term, or the next owner of the cell, continues it. It rests between steps for as long as the last step took,
// and so takes at most half of the database's time.

import type { Realm } from "../../actors/call.ts";
import type { Term } from "../../actors/term.ts";
import { realmsHere, visit } from "../../actors/visit.ts";
import type { UserKey } from "../domain/values/ids.ts";
import { MERGE_LIMITS } from "../process/limits.ts";
import type { Database } from "../storage/database.ts";
import type { InCell } from "../storage/nodes/cell_store.ts";
import { listHistoryMoves, moveHistory } from "../storage/stores/merge_store.ts";
import { rest } from "../process/rest.ts";

/** What the move uses of a running term. */
interface MoveWorld {
  readonly term: Pick<Term, "flush" | "isServing" | "refusedCalls">;
  /** Writes outside of the journal, which only the owner of a cell can make. */
  readonly inCell: InCell;
}

/** What background moves use of a running term. */
interface MovesWorld extends MoveWorld {
  readonly term: Pick<Term, "flush" | "isServing" | "refusedCalls" | "doors">;
  readonly database: Database;
  readonly registry: { readonly realms: ReadonlyMap<number, Realm> };
}

const ALIASES_MAX = 100;

/**
 * Moves the history of an alias within a call, up to one step of rows; the rest is left to the background. The caller is
 * inside the realm's cell.
 */
export async function moveAlias(world: MoveWorld, realm: Realm, alias: UserKey): Promise<void> {
  await inSteps(world, () => moveSome(world, realm, alias), MERGE_LIMITS.callStepsMax);
}

/** Moves one step of history; returns how many rows moved, fewer than a step when none are left. */
async function moveSome({ term, inCell }: MoveWorld, realm: Realm, alias: UserKey): Promise<number> {
  // Write counts of refused calls first: otherwise they would be written under the alias after the last step.
  await term.refusedCalls.write([realm.realm]);
  return await inCell(
    realm.cell,
    (session) => moveHistory(session, alias, MERGE_LIMITS.historyRowsMax),
  );
}

async function inSteps(
  { term }: MoveWorld,
  step: () => Promise<number>,
  stepsMax = Infinity,
): Promise<number> {
  await term.flush();
  let rows = 0;
  for (let steps = 0; steps < stepsMax && term.isServing; steps++) {
    const startedAt = performance.now();
    const moved = await step();
    rows += moved;
    if (moved < MERGE_LIMITS.historyRowsMax) break;
    await rest(Math.min(performance.now() - startedAt, MERGE_LIMITS.historyRestMsMax));
  }
  return rows;
}

/**
 * Moves all pending history in this process's cells; returns how many rows moved. Each step enters the cell and reads the
 * tables again, so the cell may change its owner between two steps.
 */
export async function moveAllHistory(world: MovesWorld): Promise<number> {
  const { term, database, registry } = world;
  let rows = 0;
  const tried = new Set<UserKey>();
  while (term.isServing) {
    await term.flush();
    const realms = realmsHere(term, registry.realms.values()).map(({ realm }) => realm);
    const moves = (await listHistoryMoves(database, realms, ALIASES_MAX)).filter(({ key }) =>
      !tried.has(key)
    );
    if (moves.length === 0) break;
    for (const { key, realm: number } of moves) {
      tried.add(key);
      const realm = registry.realms.get(number) as Realm;
      const step = () => visit(term, realm.cell, () => moveSome(world, realm, key));
      rows += await inSteps(world, async () => await step() ?? 0);
    }
  }
  return rows;
}
