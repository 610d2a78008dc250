// The commands of `deno task admin` about prices of models: import them from a price file. The rules of the import are in
// src/tenant/catalog. Here the file is read, the differences are printed and the catalog is sent.

import type { Command } from "commander";
import { getCatalog } from "../../routes/contract/catalogs.ts";
import builtinPrices from "../tenant/catalog/builtin_prices.json" with { type: "json" };
import {
  importPrices,
  type PriceDifference,
  type PriceImport,
  readPriceFile,
} from "../tenant/catalog/import.ts";
import { type ApplyOptions, putCatalog, readDocument } from "./admin_catalog.ts";
import { type Groups, withApp } from "./admin_call.ts";
import type { AdminAction, AdminRun } from "./admin_run.ts";
import { EXIT, TaskError, withExample } from "./shell.ts";
import { renderTable, safeText, type TableValue } from "./table.ts";

interface ImportCommandOptions extends ApplyOptions {
  readonly only?: readonly string[];
  readonly builtin?: boolean;
}

/** The group of commands. */
export const MODEL_GROUP: Groups[string] = ["Manage the prices of models in an app's catalog.", [
  addImportCommand,
]];

function addImportCommand(group: Command, action: AdminAction): void {
  const command = withApp(
    group.command("import").description(
      "Import prices from a file: LiteLLM's model_prices_and_context_window.json, or models in the form of a\n" +
        "catalog; or from the list that comes with this version. Prints the differences. Models that the file\n" +
        "lacks are unchanged, and a price above 0 never becomes 0.",
    ),
  )
    .argument("[file]", "the price file as JSON")
    .option("--builtin", "the list of this version, with the date of each price, in place of a file")
    .option("--only <ids>", "only these models, also new ones: ids separated by commas", idsOf)
    .option("--dry-run", "only show the differences")
    .action(action(importFile));
  withExample(
    command,
    "deno task admin models import model_prices_and_context_window.json --app app_1 --dry-run",
    "deno task admin models import model_prices_and_context_window.json --only gpt-5,claude-sonnet-5",
    "deno task admin models import --builtin --only gpt-4o-mini,claude-sonnet-5",
  );
}

function idsOf(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, ...text.split(",").map((id) => id.trim()).filter((id) => id !== "")];
}

async function importFile(
  run: AdminRun,
  path: string | undefined,
  options: ImportCommandOptions,
): Promise<void> {
  const { file, source } = await readPrices(path, options);
  const appId = await run.appId(options.app);
  const { version, ...document } = await run.client.call(getCatalog, { appId });
  const found = importPrices(document.models ?? [], file, {
    only: options.only ?? null,
    checkedAt: new Date().toISOString(),
    source,
  });
  if (found.faults.length > 0) throw new TaskError(faultsText(found.faults), EXIT.refused);
  run.print(importText(found));
  const isDryRun = options.dryRun === true;
  const applied = found.imported.length === 0 ? { version, changes: [] } : await putCatalog(
    run,
    appId,
    { ...document, models: found.models, expectedVersion: version },
    isDryRun,
  );
  const { differences, imported, missing, unpriced, kept } = found;
  run.show(
    { version: applied.version, differences, imported, missing, unpriced, kept },
    () => resultText(applied, version, isDryRun),
  );
}

/** The prices of a file, or those that come with this version, with their source for rows that name none. */
async function readPrices(path: string | undefined, { builtin = false }: ImportCommandOptions) {
  if ((path === undefined) !== builtin) {
    throw new TaskError("Name a price file, or --builtin: one of them", EXIT.usage);
  }
  const text = path === undefined ? JSON.stringify(builtinPrices) : await readDocument(path);
  const file = readPriceFile(text);
  if (file === null) {
    throw new TaskError(
      `"${path}" is not a price file of LiteLLM, and not a list or object of models`,
      EXIT.refused,
    );
  }
  return { file, source: path?.split(/[\\/]/).at(-1) ?? "builtin" };
}

function faultsText(faults: PriceImport["faults"]): string {
  const lines = faults.map(({ model, member, message }) => safeText(`  ${model}.${member} ${message}`));
  return ["The file has faults, and nothing was applied:", ...lines].join("\n");
}

function importText({ differences, imported, missing, unpriced, kept }: PriceImport): string {
  const changed = new Set(differences.map(({ model }) => model));
  const same = imported.filter((id) => !changed.has(id));
  const lists = [
    ["The same price as in the file", same],
    ["Not in the file, unchanged", missing],
    ["In the file without a price of their kind, unchanged", unpriced],
    ["0 in the file, unchanged", kept.map(({ model, member, before }) => `${model}.${member} ${before}`)],
  ] as const;
  const table = differences.length === 0
    ? "No price differs"
    : renderTable(["MODEL", "MEMBER", "OLD", "NEW"], differences.map(rowOf));
  const lines = lists.flatMap(([title, ids]) =>
    ids.length === 0 ? [] : [safeText(`${title}: ${ids.join(", ")}`)]
  );
  return [table, ...lines].join("\n");
}

function rowOf({ model, member, before, after }: PriceDifference): TableValue[] {
  return [model, member, shownOf(before), shownOf(after)];
}

function shownOf(value: unknown): TableValue {
  if (value === null || typeof value === "number" || typeof value === "string") return value;
  return JSON.stringify(value);
}

function resultText(applied: { readonly version: number }, before: number, isDryRun: boolean): string {
  if (isDryRun) return `Dry run: version ${before} stays in force`;
  if (applied.version === before) return `Nothing to apply: version ${before} stays in force`;
  return `Version ${applied.version} is in force`;
}
