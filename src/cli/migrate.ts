// `deno task migrate`: opens the store of the settings, applies the missing migrations and prints their names. A
// service does the same when it starts; the task is for deployments with a separate migration step.

import { ConfigError, readConfig } from "../process/settings.ts";
import { openStore, placesOf } from "../cluster/store.ts";
import { EXIT, makeProgram, openShell, runProgram, type Shell, TaskError, withExample } from "./shell.ts";
import { FolderError } from "../storage/embedded/folder_lock.ts";
import { MigrationError } from "../storage/migrate.ts";

const VARIABLES = ["DATABASE_URL", "HOLDFAST_DATABASES", "HOLDFAST_DATA_DIR"] as const;

/** Runs the command line to its exit status. */
export function runMigrate(args: readonly string[], shell: Shell): Promise<number> {
  const program = makeProgram(
    shell,
    "deno task migrate",
    "Applies missing migrations to the store: DATABASE_URL, or each of HOLDFAST_DATABASES, else the embedded store in\n" +
      "HOLDFAST_DATA_DIR.",
  ).action(() => migrateStore(shell));
  withExample(program, "DATABASE_URL=postgres://user:password@host:5432/holdfast deno task migrate");
  return runProgram(program, args, shell);
}

async function migrateStore(shell: Shell): Promise<void> {
  const { DATABASE_URL, HOLDFAST_DATABASES, HOLDFAST_DATA_DIR } = shell.variables;
  let count = 0;
  try {
    for (const place of placesOf(readConfig({ DATABASE_URL, HOLDFAST_DATABASES, HOLDFAST_DATA_DIR }))) {
      const { applied, database } = await openStore(place);
      await database.close();
      count += applied.length;
      const name = place.database?.name ?? null;
      for (const migration of applied) shell.print(`${name === null ? "" : `${name}: `}Applied ${migration}`);
    }
  } catch (error) {
    const isExpected = [ConfigError, FolderError, MigrationError].some((kind) => error instanceof kind);
    if (!isExpected) throw error;
    throw new TaskError((error as Error).message.replace(/^Cannot start:/, "Cannot migrate:"), EXIT.refused);
  }
  if (count === 0) shell.print("Nothing to do: every migration is applied");
}

if (import.meta.main) Deno.exit(await runMigrate(Deno.args, openShell(VARIABLES)));
