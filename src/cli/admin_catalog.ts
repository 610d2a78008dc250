// The commands of `deno task admin` about catalogs: show the current one, apply a file, or only show what a file would
// change. The service checks the whole document. Each fault is printed with its exact path.

import { type Command, Option } from "commander";
import {
  applyCatalog,
  dropCatalog,
  getCatalog,
  getCatalogVersion,
  listCatalogVersions,
  promoteCatalog,
} from "../../routes/contract/catalogs.ts";
import type { AnswerOf } from "../../routes/contract/definition.ts";
import { messageOf } from "../process/log.ts";
import { commandOf, type Groups, withApp } from "./admin_call.ts";
import type { AdminAction, AdminRun } from "./admin_run.ts";
import { ServiceRefusal } from "./admin_client.ts";
import { EXIT, TaskError, withExample } from "./shell.ts";
import { type Columns, renderTable } from "./table.ts";

/** Options of a command that applies a file. */
export interface ApplyOptions {
  readonly app?: string;
  readonly dryRun?: boolean;
  readonly mode?: "live" | "test";
}

const VERSION: Columns<AnswerOf<typeof listCatalogVersions>[number]> = [
  "version",
  "mode",
  "at",
  ["WHO", ({ who }) => who ?? "unknown"],
  ["CHANGES", ({ changes }) => changesText(changes)],
];

/** The group of commands. */
export const CATALOG_GROUP: Groups[string] = [
  "Manage the catalog of an app: plans, packs, models, settings.",
  [
    commandOf("show", getCatalog, catalogText, "admin catalog show --app app_1 --json > catalog.json", {
      words: "Show the current catalog; the whole document with --json.",
    }),
    addApplyCommand,
    commandOf("promote", promoteCatalog, changedText, "admin catalog promote --app app_1"),
    commandOf("drop", dropCatalog, changedText, "admin catalog drop --mode test --app app_1"),
    commandOf("versions", listCatalogVersions, VERSION, "admin catalog versions --app app_1"),
    commandOf(
      "version",
      getCatalogVersion,
      catalogText,
      "admin catalog version 3 --app app_1 --json > catalog.json",
      { words: "Show a version of the catalog; the whole document with --json." },
    ),
  ],
];

function addApplyCommand(group: Command, action: AdminAction): void {
  const apply = withApp(group.command("apply").description("Apply a catalog document."))
    .argument("<file>", "the whole document as JSON")
    .option("--dry-run", "only show the changes")
    .addOption(new Option("--mode <mode>", "test: for test mode alone").choices(["live", "test"]))
    .action(action(applyFile));
  withExample(
    apply,
    "deno task admin catalog apply catalog.json --app app_1 --dry-run",
    "deno task admin catalog apply catalog.json --app app_1 --mode test",
  );
}

async function applyFile(run: AdminRun, file: string, options: ApplyOptions) {
  const text = await readDocument(file);
  const isDryRun = options.dryRun === true;
  const applied = await putCatalog(run, await run.appId(options.app), text, isDryRun, options.mode);
  run.show(applied, () => isDryRun ? dryRunText(applied) : changedText(applied));
}

/** Applies a catalog, or asks for its changes in a dry run. Prints the faults of a catalog that is refused. */
export async function putCatalog(
  { client, shell }: AdminRun,
  appId: string,
  document: unknown,
  isDryRun: boolean,
  mode?: "live" | "test",
): Promise<AnswerOf<typeof applyCatalog>> {
  try {
    const dryRun = isDryRun ? "true" : undefined;
    return await client.call(applyCatalog, { appId, dryRun, mode, catalog: document });
  } catch (error) {
    // Faults go to standard error, as all errors. With --json the refusal is also printed as data.
    const faults = error instanceof ServiceRefusal ? faultsOf(error.error.details) : [];
    if (faults.length > 0) shell.note(renderTable(["PATH", "FAULT"], faults));
    throw error;
  }
}

/** The text of a file that holds JSON. */
export async function readDocument(file: string): Promise<string> {
  let text: string;
  try {
    text = await Deno.readTextFile(file);
  } catch (error) {
    throw new TaskError(`Cannot read "${file}": ${messageOf(error)}`, EXIT.usage);
  }
  try {
    JSON.parse(text);
    return text;
  } catch (error) {
    throw new TaskError(`"${file}" is not JSON: ${messageOf(error)}`, EXIT.refused);
  }
}

type Applied = AnswerOf<typeof applyCatalog>;

function changedText({ version, changes }: Applied): string {
  if (changes.length === 0) return `No changes: version ${version} is in force`;
  return `Version ${version} is in force\n${changeTable(changes)}`;
}

function dryRunText({ version, changes, usersAffected }: Applied): string {
  if (changes.length === 0) return `No changes: version ${version} is in force`;
  const lines = [`Dry run: version ${version} stays in force`, changeTable(changes)];
  if (usersAffected !== undefined) {
    const { live, test } = usersAffected;
    lines.push(
      `Users on plans that change: ${live ?? "too many to count"} live, ${test ?? "too many to count"} test`,
    );
  }
  return lines.join("\n");
}

function changeTable(changes: Applied["changes"]): string {
  return renderTable(["PATH", "ID", "CHANGE"], changes.map(({ path, id, change }) => [path, id, change]));
}

/** The changes of a version on one line. */
function changesText(changes: Applied["changes"]): string {
  const shown = changes.slice(0, CHANGES_SHOWN).map(({ path, change }) => `${path} ${change}`);
  const rest = changes.length - shown.length;
  return [...shown, ...rest > 0 ? [`${rest} more`] : []].join(", ");
}

const CHANGES_SHOWN = 3;

/** Path and message of each fault. Other refusals have details of another kind, and so no rows. */
function faultsOf(details: unknown): [string, string][] {
  const list = (Array.isArray(details) ? details : []) as { path?: unknown; message?: unknown }[];
  return list.flatMap(({ path, message }) =>
    typeof path === "string" && typeof message === "string" ? [[path, message]] : []
  );
}

function catalogText(catalog: AnswerOf<typeof getCatalog>): string {
  if (catalog.version === 0) return "No catalog has been applied yet";
  const { settings = {}, models = [], plans = [], packs = [], composeTypes = [] } = catalog;
  const sections = [`Version ${catalog.version}`];
  const add = (titles: string[], rows: (string | number | undefined)[][]) => {
    if (rows.length > 0) sections.push(renderTable(titles, rows));
  };
  add(["SETTING", "VALUE"], Object.entries(settings).map(([name, value]) => [name, JSON.stringify(value)]));
  add(
    ["PLAN", "NAME", "RANK", "PERIOD", "ON PLAN CHANGE", "ARCHIVED"],
    plans.map((plan) => [
      plan.id,
      plan.name,
      plan.rank,
      `${plan.period.type}, ${plan.period.anchor}`,
      plan.onPlanChange ?? "carry",
      plan.archived === true ? "yes" : "no",
    ]),
  );
  add(
    ["PLAN", "LIMIT GROUP", "UNIT", "QUOTA", "EVENTS"],
    plans.flatMap((plan) =>
      plan.limits.map((limit) => [plan.id, limit.id, limit.unit, limit.quota, eventsOf(limit.matches)])
    ),
  );
  add(["MODEL", "MODE", "MODALITY"], models.map((model) => [model.id, model.amountMode, model.modality]));
  add(
    ["PACK", "NAME", "KIND", "ITEMS"],
    packs.map((pack) => [pack.id, pack.name, pack.kind, pack.items.length]),
  );
  add(["COMPOSE TYPE", "MODEL"], composeTypes.map((type) => [type.name, type.model]));
  return sections.join("\n\n");
}

function eventsOf(matches: readonly { readonly event: string }[]): string {
  return [...new Set(matches.map(({ event }) => event))].join(", ");
}
