// `deno task whatif`: tries a catalog on the recorded events of a span, and prints what it would refuse. The running service
// does it; if none can be reached, the task opens the store. It changes no row. Exit status: 0 done, 1 refused, 2 wrong
// usage, 3 neither a service nor a store.

import { Option } from "commander";
import { moment } from "../../routes/contract/fields.ts";
import { whatIf as call } from "../../routes/contract/what_if.ts";
import { openUnmigrated, placesOf } from "../cluster/store.ts";
import {
  type FoldedCatalog,
  type Progress,
  TooMuch,
  type WhatIf,
  whatIf,
} from "../operations/what_if/what_if.ts";
import { messageOf } from "../process/log.ts";
import { readConfig } from "../process/settings.ts";
import type { Database } from "../storage/database.ts";
import type { RegistryRows } from "../storage/rows/registry_rows.ts";
import { readRegistry } from "../storage/stores/registry_store.ts";
import { checkCatalog } from "../tenant/catalog/check.ts";
import { ADMIN_VARIABLES, NoToken, openAdminClient, ServiceRefusal } from "./admin_client.ts";
import { appIdOf } from "./admin_run.ts";
import { refuseOtherSchema } from "./reconcile.ts";
import {
  EXIT,
  makeProgram,
  openShell,
  runProgram,
  settings,
  type Shell,
  TaskError,
  withExample,
} from "./shell.ts";
import { counted, numberText, renderTable, safeText } from "./table.ts";

const VARIABLES = [...ADMIN_VARIABLES, "DATABASE_URL"] as const;

interface Options {
  readonly app?: string;
  readonly mode: "live" | "test";
  readonly from: string;
  readonly to: string;
  readonly catalog?: string;
}

/** What is asked: times as texts, the catalog parsed; null for the one in force. */
interface Asked extends Pick<Options, "mode" | "from" | "to"> {
  readonly app: string | undefined;
  readonly catalog: Record<string, unknown> | null;
}

/** Runs the command line to its exit status. */
export async function runWhatIf(args: readonly string[], shell: Shell): Promise<number> {
  const program = makeProgram(
    shell,
    "deno task whatif",
    "Tries a catalog on recorded events: decides them anew, and prints which calls it would refuse. Changes nothing.\n" +
      "Asks the running service, else opens the store (DATABASE_URL, or HOLDFAST_DATA_DIR).",
  )
    .option("--url <url>", "the service")
    .option("--json", "print the result as JSON")
    .option("--app <id>", "the app (default: the only one)")
    .addOption(new Option("--mode <mode>", "which events").choices(["live", "test"]).default("live"))
    .requiredOption("--from <time>", "the first moment of the span, such as 2026-11-01")
    .requiredOption("--to <time>", "the end of the span, exclusive")
    .option("--catalog <file>", "the catalog to try (default: the one in force)");
  program.action(async ({ app, mode, from, to, catalog: file }: Options) => {
    if (checkTime("from", from) >= checkTime("to", to)) {
      throw new TaskError("--to: must be after --from", EXIT.usage);
    }
    const asked = { app, mode, from, to, catalog: file === undefined ? null : await readCatalog(file) };
    const { url, json } = program.opts<{ url?: string; json?: boolean }>();
    try {
      const result = await askService(asked, url, shell) ?? await openStoreFor(asked, shell);
      shell.print(json === true ? JSON.stringify(result, null, 2) : textOf(result));
    } catch (error) {
      if (json !== true || !(error instanceof ServiceRefusal)) throw error;
      shell.print(JSON.stringify({ error: error.error }, null, 2));
      throw new TaskError("", error.exitCode);
    }
  });
  withExample(program, "deno task whatif --app app_1 --from 2026-11-01 --to 2026-12-01 --catalog next.json");
  return await runProgram(program, args, shell);
}

function checkTime(name: string, text: string): number {
  const { success, data } = moment.safeParse(text);
  if (success) return data;
  throw new TaskError(`--${name}: must be a date or a time such as 2026-11-01T00:00:00Z`, EXIT.usage);
}

async function readCatalog(file: string): Promise<Record<string, unknown>> {
  try {
    return JSON.parse(await Deno.readTextFile(file));
  } catch (error) {
    throw new TaskError(`Cannot read "${safeText(file)}": ${messageOf(error)}`, EXIT.usage);
  }
}

/** Asks the running service; null if none is reached, or its token is not known. */
async function askService(
  { app, ...asked }: Asked,
  url: string | undefined,
  shell: Shell,
): Promise<WhatIf | null> {
  try {
    const client = await openAdminClient(url, shell);
    const appId = await appIdOf(client, app);
    for await (const line of client.lines(call, { ...asked, appId })) {
      const { progress, result, error } = line as Line;
      if (progress !== undefined) noteProgress(progress, shell);
      if (error !== undefined) throw new ServiceRefusal({ ...error, details: undefined });
      if (result !== undefined) return result;
    }
    throw new TaskError("The service ended before the result", EXIT.refused);
  } catch (error) {
    const isAway = error instanceof NoToken ||
      (error instanceof TaskError && error.exitCode === EXIT.unreachable);
    if (!isAway || url !== undefined) throw error;
    shell.note(`${error.message}. Opening the store`);
    return null;
  }
}

/** A line of the answer. */
interface Line {
  readonly progress?: Progress;
  readonly result?: WhatIf;
  readonly error?: { readonly code: string; readonly message: string };
}

function noteProgress({ events, users }: Progress, shell: Shell): void {
  shell.note(`Decided so far: ${eventsText(events, users)}`);
}

/** Decides the events of a store that no service has open. */
async function openStoreFor(asked: Asked, shell: Shell): Promise<WhatIf> {
  const { DATABASE_URL, HOLDFAST_DATABASES, HOLDFAST_DATA_DIR } = shell.variables;
  const config = settings(() => readConfig({ DATABASE_URL, HOLDFAST_DATABASES, HOLDFAST_DATA_DIR }));
  let database: Database | null = null;
  try {
    let registry: RegistryRows | null = null;
    for (const place of placesOf(config)) {
      await database?.close();
      database = await openUnmigrated(place);
      await refuseOtherSchema(database);
      registry = await readRegistry(database, -1);
      if (registry.apps.some(({ appId }) => appId === asked.app)) break;
    }
    if (database === null || registry === null) throw new TaskError("No database is set", EXIT.usage);
    const { realm, catalog } = await placeOf(registry, asked);
    const [from, to] = [checkTime("from", asked.from), checkTime("to", asked.to)];
    const pieces = whatIf(database, { realm, from, to }, catalog);
    let piece = await pieces.next();
    for (; piece.done !== true; piece = await pieces.next()) noteProgress(piece.value, shell);
    return piece.value;
  } catch (error) {
    if (error instanceof TaskError) throw error;
    const exit = error instanceof TooMuch ? EXIT.refused : EXIT.unreachable;
    throw new TaskError(messageOf(error).replace(/^Cannot start: /, ""), exit);
  } finally {
    // The result is valid even if closing the database fails.
    await database?.close().catch(() => {});
  }
}

/** The realm of an app, and the catalog to try there. */
async function placeOf(
  { apps, realms, catalogs }: RegistryRows,
  { app, mode, catalog: sent }: Asked,
): Promise<{ readonly realm: number; readonly catalog: FoldedCatalog }> {
  if (app === undefined && apps.length !== 1) {
    throw new TaskError(`--app: required, because there are ${apps.length} apps`, EXIT.usage);
  }
  const appId = app ?? apps[0]?.appId;
  const found = realms.find((row) => row.appId === appId && row.mode === mode);
  if (found === undefined) throw new TaskError(`App not found: ${safeText(String(appId))}`, EXIT.refused);
  const { priceRows = [], rateRows = [], document = {} } = inForce(catalogs, appId, mode) ?? {};
  const { realm } = found;
  if (sent === null) return { realm, catalog: { document, priceRows, rateRows } };
  const checked = await checkCatalog(sent, null);
  if ("catalog" in checked) return { realm, catalog: { document: checked.catalog, priceRows, rateRows } };
  const faults = checked.faults.map(({ path, message }) => `${path}: ${message}`);
  throw new TaskError(safeText(`Catalog is invalid: ${faults.join("; ")}`), EXIT.refused);
}

/** The catalog in force: test mode may have one of its own. */
function inForce(catalogs: RegistryRows["catalogs"], appId: string | undefined, mode: string) {
  const ofApp = catalogs.filter((row) => row.appId === appId && !row.removed);
  return ofApp.find((row) => row.mode === mode) ?? ofApp.find((row) => row.mode === "live");
}

function textOf({ events, users, refused }: WhatIf): string {
  const of = eventsText(events, users);
  if (refused.length === 0) return `No call of ${of} would be refused`;
  const rows = refused.map(({ day, groupId, calls, users: hit }) => [
    day,
    safeText(groupId ?? "-"),
    numberText(calls),
    numberText(hit),
  ]);
  return `Of ${of}, these calls would be refused:\n${renderTable(["DAY", "GROUP", "CALLS", "USERS"], rows)}`;
}

function eventsText(events: number, users: number): string {
  return `${counted(events, "event")} of ${counted(users, "user")}`;
}

if (import.meta.main) Deno.exit(await runWhatIf(Deno.args, openShell(VARIABLES)));
