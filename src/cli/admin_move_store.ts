// `deno task admin move-store`: copies the embedded store to a PostgreSQL server, or back, and proves both. Exit status:
// 0 moved, 1 refused, 2 wrong usage.

import { type Command, Option } from "commander";
import { MIGRATIONS } from "../../sql/migrations.ts";
import { openStore, openUnmigrated } from "../cluster/store.ts";
import { messageOf } from "../process/log.ts";
import { readConfig } from "../process/settings.ts";
import type { Database } from "../storage/database.ts";
import { migrationState } from "../storage/migrate.ts";
import { moveStore } from "../storage/stores/move_store.ts";
import { reconcile } from "../storage/queries/reconcile.ts";
import { EXIT, type Shell, TaskError, withExample } from "./shell.ts";
import { numberText } from "./table.ts";

type Place = "server" | "folder";

/** Adds the command. */
export function addMoveStoreCommand(program: Command, shell: Shell): void {
  const command = program.command("move-store")
    .description(
      "Copy all data between the embedded store in HOLDFAST_DATA_DIR and the server at DATABASE_URL, and prove that the " +
        "books add up on both. Stop the service first. The target must be new; the source stays unchanged.",
    )
    .addOption(
      new Option("--to <place>", "where to copy to").choices(["server", "folder"]).makeOptionMandatory(),
    )
    .action(({ to }: { to: Place }) => move(to, shell))
    .addHelpText("after", "\nExit status: 0 copied, 1 refused, 2 wrong usage.");
  withExample(
    command,
    "DATABASE_URL=postgres://user:password@host:5432/holdfast deno task admin move-store --to server",
  );
}

async function move(to: Place, shell: Shell): Promise<void> {
  const { databases: [database], dataDir } = readConfig(shell.variables);
  if (database?.name !== null) {
    throw new TaskError("DATABASE_URL is not set: it names the server", EXIT.usage);
  }
  const server = { database, dataDir };
  const folder = { database: null, dataDir };
  const open: Database[] = [];
  try {
    const source = await openUnmigrated(to === "server" ? folder : server);
    open.push(source);
    const { missing, unknown } = await migrationState(source, MIGRATIONS);
    if (missing.length + unknown.length > 0) {
      throw new Error("the source has other migrations than this program: start the service on it once");
    }
    await prove(source, "The source", shell);
    const { database: target } = await openStore(to === "server" ? server : folder);
    open.push(target);
    const moved = await moveStore(source, target);
    const rows = Object.values(moved).reduce((sum, count) => sum + count, 0);
    shell.print(`Copied ${numberText(rows)} rows of ${Object.keys(moved).length} tables`);
    await prove(target, "The target", shell);
  } catch (error) {
    throw new TaskError(`Cannot move: ${messageOf(error).replace(/^Cannot start: /, "")}`, EXIT.refused);
  } finally {
    for (const database of open) await database.close().catch(() => {});
  }
  shell.print(
    to === "server"
      ? `Set HOLDFAST_PRIVACY_SECRET to the content of ${dataDir}/privacy-secret and HOLDFAST_ADMIN_TOKEN to that of ` +
        `${dataDir}/admin-token, unless they are set already. Then start the service with DATABASE_URL.`
      : "Keep HOLDFAST_PRIVACY_SECRET and HOLDFAST_ADMIN_TOKEN set. Then start the service without DATABASE_URL.",
  );
}

async function prove(database: Database, what: string, shell: Shell): Promise<void> {
  const { drifts, users, events } = await reconcile(database, ({ text }) => shell.note(text));
  if (drifts > 0) throw new Error(`${what}: ${drifts} drifts: see deno task reconcile`);
  shell.print(`${what}: the books add up: ${numberText(users)} users, ${numberText(events)} events`);
}
