// Retention: which rows are removed once they are past their time, by the clock of their realm. Rows go in bounded steps,
// each inside the door of its cell. Reads leave such rows out whether or not a sweep has removed them.

import type { Realm } from "../../../actors/call.ts";
import type { Term } from "../../../actors/term.ts";
import { realmsHere, visit } from "../../../actors/visit.ts";
import { ENDED_KEPT_MS } from "../../domain/state/run.ts";
import { REFUSAL_LIMITS, STRIPE_LIMITS, SWEEP_LIMITS } from "../../process/limits.ts";
import { SENDER_LIMITS } from "../../process/webhook_limits.ts";
import type { InCell } from "../../storage/nodes/cell_store.ts";
import {
  deleteEndedMessages,
  deleteEndedRuns,
  deleteMessagesOfRemoved,
  deleteOldLogs,
  deleteOldRefusedCalls,
  deleteOldUnhandled,
  deletePassedSlots,
  deleteStrayStripeFacts,
  forgetOldPrompts,
  type RemoveOld,
} from "../../storage/stores/retention_store.ts";

/** What the removal of old rows uses of a running term. */
export interface RetentionWorld {
  readonly term: Pick<Term, "isServing" | "doors">;
  readonly inCell: InCell;
  readonly registry: { readonly realms: ReadonlyMap<number, Realm> };
}

/** One kind of row: how long it is kept, and the statement that removes up to `limit` rows written before a time. */
interface Retention {
  readonly keptMs: (realm: Realm) => number;
  readonly remove: RemoveOld;
}

const forPromptLogs = (realm: Realm) => realm.catalog.promptLogRetentionMs;

/** Sweeps that only remove rows, with the kinds of rows of each. */
const RETENTION = {
  prompt_logs: [
    { keptMs: forPromptLogs, remove: deleteOldLogs },
    { keptMs: forPromptLogs, remove: forgetOldPrompts },
  ],
  refusals: [{ keptMs: () => REFUSAL_LIMITS.keptMs, remove: deleteOldRefusedCalls }],
  messages: [
    { keptMs: () => SENDER_LIMITS.deliveredKeptMs, remove: deleteEndedMessages("delivered") },
    { keptMs: () => SENDER_LIMITS.failedKeptMs, remove: deleteEndedMessages("failed") },
    // Messages of a removed endpoint go at once.
    {
      keptMs: () => 0,
      remove: (session, realm, _, limit) => deleteMessagesOfRemoved(session, [realm], limit),
    },
  ],
  runs: [{ keptMs: () => ENDED_KEPT_MS, remove: deleteEndedRuns }],
  rates: [{ keptMs: () => 0, remove: deletePassedSlots }],
  stripe: [
    { keptMs: () => STRIPE_LIMITS.strayKeptMs, remove: deleteStrayStripeFacts },
    { keptMs: () => STRIPE_LIMITS.unhandledKeptMs, remove: deleteOldUnhandled },
  ],
} as const satisfies Readonly<Record<string, readonly Retention[]>>;

/** Removes the rows of a sweep that are past their time in every realm of this process; returns how many. */
export function removeOld(sweep: keyof typeof RETENTION) {
  return async ({ term, inCell, registry }: RetentionWorld): Promise<number> => {
    let removed = 0;
    for (const realm of realmsHere(term, registry.realms.values())) {
      for (const { keptMs, remove } of RETENTION[sweep] as readonly Retention[]) {
        const before = realm.now() - keptMs(realm);
        removed += await removeInSteps(term, async (limit) => {
          const step = () => inCell(realm.cell, (session) => remove(session, realm.realm, before, limit));
          return await visit(term, realm.cell, step) ?? 0;
        });
      }
    }
    return removed;
  };
}

/** Runs steps that each remove up to `limit` rows until one removes fewer; returns how many rows were removed. */
export async function removeInSteps(
  term: Pick<Term, "isServing">,
  step: (limit: number) => Promise<number>,
): Promise<number> {
  let removed = 0;
  while (term.isServing) {
    const rows = await step(SWEEP_LIMITS.stepRowsMax);
    removed += rows;
    if (rows < SWEEP_LIMITS.stepRowsMax) break;
  }
  return removed;
}
