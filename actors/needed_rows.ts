// Older rows that a call names, loaded before its turn: a settled reservation, the texts of one without room for them, a run
// that has ended, or balances of a grant.

import type { CommandName } from "../src/domain/command.ts";
import { ownerOf } from "../src/domain/values/ids.ts";
import type { OlderRows, UserState } from "../src/domain/state/user.ts";
import type { RuntimeCounts } from "../src/process/counts/runtime_counts.ts";
import type { Needed } from "./call.ts";
import { Unavailable, type UserStore } from "./port.ts";

/** The parts of a term that loads use. */
export interface LoadTerm {
  readonly store: Pick<
    UserStore,
    "loadReservation" | "loadTexts" | "loadRuns" | "loadBalances" | "loadTopUp" | "loadWhole"
  >;
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
  if ("runId" in needs) {
    const owner = ownerOf("run", needs.runId);
    return owner !== null && !state.runs.has(needs.runId) && state.keys.includes(owner);
  }
  if ("topUpId" in needs) {
    const owner = ownerOf("topUp", needs.topUpId);
    return owner !== null && !state.topUps.has(needs.topUpId) && state.keys.includes(owner);
  }
  // Of a grant's balances, some may be in memory and others not.
  return "externalRefs" in needs || !state.balances.has(needs.balanceId);
}

/** Loads a settled reservation of a user, with the counters of its lines. Rejects with Unavailable. */
export async function loadSettled({ store }: LoadTerm, { keys }: UserState, id: string): Promise<OlderRows> {
  return await loadingFrom(() => store.loadReservation(keys, id));
}

/** Loads the counters and shares of ended windows that a decision lacked. Rejects with Unavailable. */
export async function loadEnded({ store }: LoadTerm, states: readonly UserState[]): Promise<void> {
  await loadingFrom(() =>
    Promise.all(states.map(async (state) => {
      const { counters, shares = [] } = await store.loadWhole(state.user.key);
      state.admitEnded({ counters, shares, reservations: [], balances: [] });
    }))
  );
}

/** Nothing was loaded. */
export const NOTHING_LOADED = (): void => {};

/**
 * Loads the rows that a call names, for the turn that follows. Rejects with Unavailable.
 *
 * @returns forgets, after the turn, the reservation and the runs that the turn did not change
 */
export function loadNeeded(term: LoadTerm, user: Loaded, needs: Needed): Promise<() => void> {
  const { state } = user;
  return loadingFrom(async () => {
    if ("runId" in needs) return admit(state, await term.store.loadRuns(state.keys, needs.runId));
    if ("topUpId" in needs) return await loadTopUp(term, user, needs.topUpId);
    if (!("reservationId" in needs)) {
      return admit(state, await term.store.loadBalances(state.user.key, needs));
    }
    const { reservationId: id } = needs;
    const forgetRuns = await loadReservation(term, user, id);
    const loaded = state.reservations.stored(id);
    return () => {
      if (loaded !== undefined && state.reservations.stored(id) === loaded) state.forget(id);
      forgetRuns();
    };
  });
}

/** Adds rows to a user; returns what forgets the runs that memory did not have, if they are unchanged. */
function admit(state: UserState, rows: OlderRows): () => void {
  const ids = (rows.runs ?? []).map(({ id }) => id).filter((id) => !state.runs.has(id));
  state.admit(rows);
  if (ids.length === 0) return NOTHING_LOADED;
  const loaded = ids.flatMap((id) => state.runs.get(id) ?? []);
  return () => {
    for (const run of loaded) if (state.runs.get(run.id) === run) state.forgetRun(run.id);
  };
}

/** Loads a settled top-up; returns what forgets it, if it is unchanged. */
async function loadTopUp({ store, flush }: LoadTerm, { state, isDrained }: Loaded, id: string) {
  // It leaves memory when it is settled, and its row may still wait for a drain.
  if (!isDrained) await flush();
  state.admit(await store.loadTopUp(state.keys, id));
  const loaded = state.topUps.get(id);
  return () => {
    if (loaded !== undefined && state.topUps.get(id) === loaded) state.forgetTopUp(id);
  };
}

/** Loads a settled reservation, or the texts of one that is here without them. */
async function loadReservation(
  { store, counts, flush }: LoadTerm,
  { state, isDrained }: Loaded,
  id: string,
): Promise<() => void> {
  const { reservations, keys } = state;
  const bareSince = reservations.bareSince(id);
  if (bareSince === null) {
    const rows = await store.loadReservation(keys, id);
    const forgetRuns = admit(state, rows);
    // There may be no room to keep its texts.
    for (const row of rows.reservations) reservations.lend(row);
    return forgetRuns;
  }
  // The row may still wait for a drain.
  if (!isDrained) await flush();
  const texts = await store.loadTexts(keys, id, bareSince);
  if (texts === null) throw new Error(`The tables lack the texts of ${id}`);
  counts.holdTextsLoaded += 1;
  reservations.lend({ id, ...texts });
  return NOTHING_LOADED;
}

/** Runs a load; a failure is retryable. */
async function loadingFrom<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    throw new Unavailable("A load failed", { cause: error });
  }
}
