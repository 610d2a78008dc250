// Every sweep of the service, in bounded steps and counted. Deno.cron, the admin API and `deno task sweep` run this code.
//
// Each process sweeps the cells that it owns. A step runs inside the door of its cell, so it never meets a hand-over. A cell
// that leaves meanwhile is left to its next owner.

import { sweepRealmBeside } from "../../../actors/sweep.ts";
import type { Term } from "../../../actors/term.ts";
import type { UserStore } from "../../../actors/port.ts";
import { realmsHere, visitAll } from "../../../actors/visit.ts";
import type { Counts, SweepName } from "../../cluster/counts.ts";
import { type ErasureWorld, runErasures } from "../../people/erasure.ts";
import { retryUnderNewCatalogs } from "../../integrations/stripe/unhandled.ts";
import type { Clock } from "../../process/clock.ts";
import type { Session } from "../../storage/database.ts";
import { NO_CELLS } from "../../audit/audit.ts";
import { AUDIT_LIMITS, SWEEP_LIMITS } from "../../process/limits.ts";
import { REQUEST_LOG_LIMITS } from "../../process/sent_limits.ts";
import { deleteOldFailedSignIns } from "../../storage/stores/audit_store.ts";
import { deleteOldFailedRequests } from "../../storage/stores/failed_request_store.ts";
import { saveKeyUses } from "../../storage/stores/key_use_store.ts";
import { deleteMovedRows } from "../../storage/stores/moved_rows.ts";
import { deleteOldAnswers } from "../../storage/stores/retention_store.ts";
import { addAllUp } from "./daily_use.ts";
import type { Registry } from "../../tenant/registry.ts";
import { moveAllHistory } from "../../people/history_move.ts";
import { removeInSteps, removeOld, type RetentionWorld } from "./retention.ts";

/** What sweeps use of a running term. */
interface SweepWorld extends Omit<RetentionWorld, "term">, ErasureWorld {
  readonly term: Term;
  readonly store: Pick<UserStore, "listDue">;
  readonly clock: Clock;
  readonly registry: ErasureWorld["registry"] & Pick<Registry, "takeUses" | "heirs">;
  readonly counts: Pick<Counts, "sweeps" | "stripe">;
}

/** What a run of all sweeps did, by kind. */
interface SweepCounts {
  readonly expiredReservations: number;
  readonly endedSubscriptions: number;
  readonly idempotencyRecords: number;
  readonly historyRows: number;
  readonly promptLogs: number;
  readonly refusals: number;
  readonly messages: number;
  readonly stripeFacts: number;
  readonly runs: number;
  readonly rates: number;
  readonly stripeRetries: number;
  readonly erasures: number;
  readonly failedSignIns: number;
  readonly failedRequests: number;
  readonly movedRows: number;
}

/** Runs every sweep to its end. */
export async function sweepAll(world: SweepWorld): Promise<SweepCounts> {
  const due = await runSweep(world, "due");
  const idempotencyRecords = await runSweep(world, "idempotency");
  const historyRows = await runSweep(world, "history");
  const promptLogs = await runSweep(world, "prompt_logs");
  const refusals = await runSweep(world, "refusals");
  const messages = await runSweep(world, "messages");
  const stripeFacts = await runSweep(world, "stripe");
  const runs = await runSweep(world, "runs");
  const rates = await runSweep(world, "rates");
  const stripeRetries = await runSweep(world, "stripe_retry");
  const erasures = await runSweep(world, "erasures");
  const failedSignIns = await runSweep(world, "failed_sign_ins");
  await runSweep(world, "key_uses");
  const failedRequests = await runSweep(world, "failed_requests");
  const movedRows = await runSweep(world, "moved");
  return {
    ...due,
    idempotencyRecords,
    historyRows,
    promptLogs,
    refusals,
    messages,
    stripeFacts,
    runs,
    rates,
    stripeRetries,
    erasures,
    failedSignIns,
    failedRequests,
    movedRows,
  };
}

const SWEEPS = {
  due: sweepDue,
  store: ({ database }: SweepWorld) => database.maintain(),
  history: moveAllHistory,
  erasures: runErasures,
  prompt_logs: removeOld("prompt_logs"),
  refusals: removeOld("refusals"),
  messages: removeOld("messages"),
  idempotency: sweepIdempotency,
  daily_use: addAllUp,
  stripe: removeOld("stripe"),
  runs: removeOld("runs"),
  rates: removeOld("rates"),
  stripe_retry: retryUnderNewCatalogs,
  failed_sign_ins: removeUnowned(AUDIT_LIMITS.failedKeptMs, deleteOldFailedSignIns),
  key_uses: storeKeyUses,
  failed_requests: removeUnowned(REQUEST_LOG_LIMITS.keptMs, deleteOldFailedRequests),
  moved: removeMoved,
} satisfies Record<SweepName, (world: SweepWorld) => Promise<unknown>>;

type SweepAnswer<Name extends SweepName> = Awaited<ReturnType<(typeof SWEEPS)[Name]>>;

/** Runs a sweep to its end and counts its result. */
export async function runSweep<Name extends SweepName>(
  world: SweepWorld,
  name: Name,
): Promise<SweepAnswer<Name>> {
  const tally = world.counts.sweeps[name];
  try {
    const answer = await SWEEPS[name](world);
    tally.finished += 1;
    tally.rows += rowsOf(answer);
    tally.finishedAtSeconds = world.clock.now() / 1000;
    return answer as SweepAnswer<Name>;
  } catch (error) {
    tally.failed += 1;
    throw error;
  }
}

/** The rows of an answer, which is a count, counts by kind, or undefined. */
function rowsOf(answer: unknown): number {
  if (typeof answer === "number") return answer;
  if (typeof answer !== "object" || answer === null) return 0;
  return Object.values(answer).reduce((sum: number, count) => sum + Number(count), 0);
}

/** Settles expired holds, ended subscriptions and promotions in every realm of this process. */
async function sweepDue(
  { term, store, registry }: Pick<SweepWorld, "term" | "store" | "registry">,
): Promise<Pick<SweepCounts, "expiredReservations" | "endedSubscriptions">> {
  let expiredReservations = 0;
  let endedSubscriptions = 0;
  for (const realm of realmsHere(term, registry.realms.values())) {
    const { holds, subscriptions } = await sweepRealmBeside(term, store, realm);
    expiredReservations += holds;
    endedSubscriptions += subscriptions;
  }
  return { expiredReservations, endedSubscriptions };
}

/** Removes expired first answers. They are kept by real time, whatever a test clock shows. */
export async function sweepIdempotency(
  { term, inCell, registry, clock }: Pick<SweepWorld, "term" | "inCell" | "registry" | "clock">,
): Promise<number> {
  const before = clock.now() - SWEEP_LIMITS.idempotencyKeptMs;
  // All cells in one step: the index knows times and no realms, and steps by cell would each read past all other cells.
  return await removeInSteps(term, async (limit) => {
    const here = Map.groupBy(realmsHere(term, registry.realms.values()), ({ cell }) => cell);
    return await visitAll(term, here.keys(), async (cells) => {
      if (cells.length === 0) return 0;
      const realms = cells.flatMap((cell) => here.get(cell) ?? []).map(({ realm }) => realm);
      return await inCell(cells, (session) => deleteOldAnswers(session, realms, before, limit));
    });
  });
}

/** Stores when the API keys that this process admitted were last used: one statement for all of them. */
async function storeKeyUses({ inCell, registry }: Pick<SweepWorld, "inCell" | "registry">): Promise<number> {
  const uses = registry.takeUses();
  if (uses.size > 0) await inCell(NO_CELLS, (session) => saveKeyUses(session, uses));
  return uses.size;
}

/** Removes rows of workspaces that another store serves since a split. They belong to no cell of this one. */
async function removeMoved(
  { term, inCell, registry }: Pick<SweepWorld, "term" | "inCell" | "registry">,
): Promise<number> {
  if (registry.heirs.size === 0) return 0;
  let removed = 0;
  for (let step = 0; step < SWEEP_LIMITS.movedStepsMax && term.isServing; step++) {
    const rows = await inCell(NO_CELLS, (session) => deleteMovedRows(session, SWEEP_LIMITS.stepRowsMax));
    if (rows === 0) break;
    removed += rows;
  }
  return removed;
}

/** Makes a sweep that removes old rows which belong to no cell, by real time. */
function removeUnowned(
  keptMs: number,
  remove: (session: Session, before: number, limit: number) => Promise<number>,
) {
  return async (
    { term, inCell, clock }: Pick<SweepWorld, "term" | "inCell" | "clock">,
  ): Promise<number> => {
    const before = clock.now() - keptMs;
    return await removeInSteps(
      term,
      (limit) => inCell(NO_CELLS, (session) => remove(session, before, limit)),
    );
  };
}
