// The commands of `deno task admin` about prices of models: import them from a price file. The rules of the import are in
// src/tenant/catalog. Here the file is read, the differences are printed and the catalog is sent.

import type { Command } from "commander";
import { getCatalog } from "../../routes/contract/admin.ts";
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
}

/** The group of commands. */
export const MODEL_GROUP: Groups[string] = ["Manage the prices of models in an app's catalog.", [
  addImportCommand,
]];

function addImportCommand(group: Command, action: AdminAction): void {
  const command = withApp(
    group.command("import").description(
      "Import prices from a file: LiteLLM's model_prices_and_context_window.json, or models in the form of a\n" +
        "catalog. Prints the differences. Models that the file lacks are unchanged.",
    ),
  )
    .argument("<file>", "the price file as JSON")
    .option("--only <ids>", "only these models, also new ones: ids separated by commas", idsOf)
    .option("--dry-run", "only show the differences")
    .action(action(importFile));
  withExample(
    command,
    "deno task admin models import model_prices_and_context_window.json --app app_1 --dry-run",
    "deno task admin models import model_prices_and_context_window.json --only gpt-5,claude-sonnet-4-5",
  );
}

function idsOf(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, ...text.split(",").map((id) => id.trim()).filter((id) => id !== "")];
}

async function importFile(run: AdminRun, path: string, options: ImportCommandOptions): Promise<void> {
  const file = readPriceFile(await readDocument(path));
  if (file === null) {
    throw new TaskError(
      `"${path}" is not a price file of LiteLLM, and not a list or object of models`,
      EXIT.refused,
    );
  }
  const appId = await run.appId(options.app);
  const { version, ...document } = await run.client.call(getCatalog, { appId });
  const found = importPrices(document.models ?? [], file, {
    only: options.only ?? null,
    checkedAt: new Date().toISOString(),
    source: path.split(/[\\/]/).at(-1) ?? path,
  });
  run.say(importText(found));
  const isDryRun = options.dryRun === true;
  const applied = found.imported.length === 0 ? { version, changes: [] } : await putCatalog(
    run,
    appId,
    { ...document, models: found.models, expectedVersion: version },
    isDryRun,
  );
  const { differences, imported, missing, unpriced } = found;
  run.show(
    { version: applied.version, differences, imported, missing, unpriced },
    () => resultText(applied, version, isDryRun),
  );
}

function importText({ differences, imported, missing, unpriced }: PriceImport): string {
  const changed = new Set(differences.map(({ model }) => model));
  const same = imported.filter((id) => !changed.has(id));
  const lists = [
    ["The same price as in the file", same],
    ["Not in the file, unchanged", missing],
    ["In the file without a price of their kind, unchanged", unpriced],
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
