// `deno task reconcile`: proves over the whole database that the books add up, and prints each drift as one line. It
// opens the store without migrating it and changes no row. Exit status: 0 everything adds up, 1 there are drifts, 2 no
// proof was possible (wrong usage or settings, a store in use, another schema, a lost connection).

import { MIGRATIONS } from "../../sql/migrations.ts";
import { readConfig } from "../process/settings.ts";
import { messageOf } from "../process/log.ts";
import { type Drift, reconcile, type ReconcileSummary } from "../storage/queries/reconcile.ts";
import { openUnmigrated, placesOf, type StorePlace } from "../cluster/store.ts";
import { EXIT, makeProgram, openShell, runProgram, type Shell, withExample } from "./shell.ts";
import { counted, safeText } from "./table.ts";
import type { Database } from "../storage/database.ts";
import { migrationState } from "../storage/migrate.ts";

const VARIABLES = ["DATABASE_URL", "HOLDFAST_DATABASES", "HOLDFAST_DATA_DIR"] as const;
const EXIT_DRIFTS = EXIT.refused;
const EXIT_NOT_PROVED = EXIT.usage;

/** Runs the command line to its exit status. */
export async function runReconcile(args: readonly string[], shell: Shell): Promise<number> {
  let exitCode: number = EXIT.ok;
  const program = makeProgram(
    shell,
    "deno task reconcile",
    "Proves that the books add up: each counter equals its holds, events and adjustments, each credit balance equals\n" +
      "its ledger and its holds, and all have a user. Reads DATABASE_URL, or each database of HOLDFAST_DATABASES, else the\n" +
      "embedded store in HOLDFAST_DATA_DIR.",
  )
    .option("--json", "print drifts and summary as JSON")
    .action(async ({ json }: { json?: boolean }) => {
      exitCode = await proveAll(shell, json === true);
    })
    .addHelpText(
      "after",
      "\nExit status: 0 everything adds up, 1 there are drifts, 2 no proof was possible." +
        "\nOn a server it may run beside a running service; on the embedded store stop the service first.",
    );
  withExample(program, "DATABASE_URL=postgres://user:password@host:5432/holdfast deno task reconcile");
  const status = await runProgram(program, args, shell);
  return status === EXIT.ok ? exitCode : status;
}

/** Reports a proof. Each drift is printed when it is found, since there may be many. */
interface Report {
  drift(drift: Drift): void;
  summary(summary: ReconcileSummary): void;
  failure(message: string): void;
}

/** Proves every store, each alone, also after one that could not be proved; returns the exit status. */
async function proveAll(shell: Shell, isJson: boolean): Promise<number> {
  let places: readonly StorePlace[];
  try {
    const { DATABASE_URL, HOLDFAST_DATABASES, HOLDFAST_DATA_DIR } = shell.variables;
    places = placesOf(readConfig({ DATABASE_URL, HOLDFAST_DATABASES, HOLDFAST_DATA_DIR }));
  } catch (error) {
    reportOf(shell, isJson, null).failure(failureOf(error));
    return EXIT_NOT_PROVED;
  }
  const summaries: (ReconcileSummary | null)[] = [];
  for (const place of places) {
    summaries.push(await proveStore(place, reportOf(shell, isJson, place.database?.name ?? null)));
  }
  if (summaries.includes(null)) return EXIT_NOT_PROVED;
  return summaries.some((summary) => summary !== null && summary.drifts > 0) ? EXIT_DRIFTS : EXIT.ok;
}

function reportOf(shell: Shell, isJson: boolean, store: string | null): Report {
  return isJson ? jsonReport(shell, store) : textReport(shell, store);
}

function failureOf(error: unknown): string {
  return messageOf(error).replace(/^(Cannot start: )?/, "Cannot reconcile: ");
}

/** Returns null if no proof was possible; the report then has the reason. */
async function proveStore(place: StorePlace, report: Report): Promise<ReconcileSummary | null> {
  let database: Database | null = null;
  try {
    database = await openUnmigrated(place);
    await refuseOtherSchema(database);
    const summary = await reconcile(database, report.drift);
    report.summary(summary);
    return summary;
  } catch (error) {
    // Every error is caught: an uncaught one would exit with 1, the status of drifts.
    report.failure(failureOf(error));
    return null;
  } finally {
    // The result is valid even if closing the database fails.
    await database?.close().catch(() => {});
  }
}

/** Refuses tables that do not have exactly the migrations of this program. */
export async function refuseOtherSchema(database: Database): Promise<void> {
  const { missing: [missing], changed: [changed], unknown: [unknown] } = await migrationState(
    database,
    MIGRATIONS,
  );
  if (missing !== undefined) {
    const hint = "start the service or run deno task migrate";
    throw new Error(`migration "${missing}" is not applied: ${hint}`);
  }
  if (changed !== undefined) throw new Error(`migration "${changed}" was applied with another text`);
  if (unknown !== undefined) throw new Error(`a newer program applied migration "${unknown}"`);
}

/** @param store the name of one of several databases; null for the only store */
function textReport(shell: Shell, store: string | null): Report {
  const of = store === null ? "" : `${store}: `;
  return {
    drift: ({ userKey, userId, text }) => {
      const user = userId === null ? `user ${userKey}` : `user ${userKey} ${JSON.stringify(userId)}`;
      shell.print(safeText(`${of}${user}: ${text}`));
    },
    summary: (summary) => shell.print(`${of}${summaryText(summary)}`),
    failure: shell.note,
  };
}

function summaryText(summary: ReconcileSummary): string {
  const looked = ([["user", "users"], ["counter", "counters"], ["credit balance", "balances"]] as const)
    .map(([name, member]) => counted(summary[member], name));
  const verdict = summary.drifts === 0 ? "The books add up" : counted(summary.drifts, "drift");
  const rows = [...looked, counted(summary.holds, "open hold"), counted(summary.events, "event")].join(", ");
  const batches = summary.undrainedBatches;
  if (batches === 0) return `${verdict}: ${rows}`;
  return `${verdict}: ${rows}\n${counted(batches, "batch", "batches")} of the journal not drained yet: ` +
    "their changes are not part of the proof";
}

/** Writes one JSON document for each store, drift by drift. */
function jsonReport(shell: Shell, store: string | null): Report {
  let open: string | null = null;
  const of = store === null ? {} : { store };
  const end = (ending: Record<string, unknown>) => {
    const last = { ...ending, ...of };
    if (open !== null) shell.print(open);
    const members = JSON.stringify(last).slice(1);
    shell.print(open === null ? `{${members}` : `],${members}`);
  };
  return {
    drift: (drift) => {
      shell.print(open === null ? '{"drifts":[' : `${open},`);
      open = JSON.stringify(drift);
    },
    summary: (summary) => {
      if (open === null) shell.print(JSON.stringify({ drifts: [], summary, ...of }));
      else end({ summary });
    },
    failure: (message) => end({ error: { message } }),
  };
}

if (import.meta.main) Deno.exit(await runReconcile(Deno.args, openShell(VARIABLES)));
