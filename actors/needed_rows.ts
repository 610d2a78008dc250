// Older rows that a call names, loaded before its turn: a settled reservation, the texts of one without room for them, or
// balances of a grant.

import type { CommandName } from "../src/domain/command.ts";
import type { UserState } from "../src/domain/state/user.ts";
import type { RuntimeCounts } from "../src/process/counts/runtime_counts.ts";
import type { Needed } from "./call.ts";
import { Unavailable, type UserStore } from "./port.ts";

/** The parts of a term that loads use. */
export interface LoadTerm {
  readonly store: Pick<UserStore, "loadReservation" | "loadTexts" | "loadBalances">;
  readonly counts: RuntimeCounts;
  /** Resolves when the tables hold everything that was durable at the call. */
  readonly flush: () => Promise<void>;
}

/** The user that rows are loaded for. */
interface Loaded {
  readonly state: UserState;
  /** Whether the tables have everything of the user. */
  readonly isDrained: boolean;
}

/** Commands that read no texts of the reservation they name. */
const TEXTLESS: ReadonlySet<CommandName> = new Set(["prolong", "detach"]);

/** Whether rows that a call names are not in memory. */
export function mustLoad(state: UserState, name: CommandName, needs: Needed): boolean {
  if (!state.recorded) return false;
  if ("reservationId" in needs) {
    const { reservations } = state;
    const { reservationId: id } = needs;
    return !reservations.has(id) || !TEXTLESS.has(name) && reservations.bareSince(id) !== null;
  }
  // Of a grant's balances, some may be in memory and others not.
  return "externalRefs" in needs || !state.balances.has(needs.balanceId);
}

/** Loads the rows that a call names, for the turn that follows. Rejects with Unavailable. */
export function loadNeeded(term: LoadTerm, user: Loaded, needs: Needed): Promise<void> {
  const { state } = user;
  return loadingFrom(async () => {
    if ("reservationId" in needs) await loadReservation(term, user, needs.reservationId);
    else state.admit(await term.store.loadBalances(state.user.key, needs));
  });
}

/** Loads a settled reservation, or the texts of one that is here without them. */
async function loadReservation(
  { store, counts, flush }: LoadTerm,
  { state, isDrained }: Loaded,
  id: string,
): Promise<void> {
  const { reservations, keys } = state;
  const bareSince = reservations.bareSince(id);
  if (bareSince === null) {
    const rows = await store.loadReservation(keys, id);
    state.admit(rows);
    // There may be no room to keep its texts.
    for (const row of rows.reservations) reservations.lend(row);
    return;
  }
  // The row may still wait for a drain.
  if (!isDrained) await flush();
  const texts = await store.loadTexts(keys, id, bareSince);
  if (texts === null) throw new Error(`The tables lack the texts of ${id}`);
  counts.holdTextsLoaded += 1;
  reservations.lend({ id, ...texts });
}

/** Runs a load; a failure is retryable. */
export async function loadingFrom<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    throw new Unavailable("A load failed", { cause: error });
  }
}
