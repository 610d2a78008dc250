// `deno task admin cluster`: the processes that serve a database, what each owns, and what is wrong. The service says it
// all; this prints it.

import type { Command } from "commander";
import type { AdminAction, AdminRun } from "./admin_run.ts";
import { withExample } from "./shell.ts";
import { renderTable, safeText } from "./table.ts";

interface Cluster {
  readonly member: number;
  readonly registryVersion: number;
  readonly members: readonly {
    readonly term: number;
    readonly address: string | null;
    readonly share: number;
    readonly cells: readonly number[];
    readonly registryVersion: number;
    readonly livedSeconds: number;
    readonly silentSeconds: number;
    readonly hasEnded: boolean;
    readonly isReached: boolean;
  }[];
  readonly cellsWithoutOwner: readonly number[];
  readonly troubles: readonly { readonly found: string; readonly advice: string }[];
}

/** Adds the command. */
export function addClusterCommand(program: Command, action: AdminAction): void {
  const command = program.command("cluster")
    .description(
      "The processes that serve the database, their cells and versions, and what is wrong with them.",
    )
    .action(action(async ({ client, show }: AdminRun) => {
      show(await client.call<Cluster>("GET", "/cluster"), clusterText);
    }));
  withExample(command, "deno task admin cluster", "deno task admin cluster --json");
}

function clusterText({ member, members, cellsWithoutOwner, registryVersion, troubles }: Cluster): string {
  const table = renderTable(
    ["MEMBER", "ADDRESS", "CELLS", "VERSION", "LIVED S", "SILENT S", "REACHED"],
    members.map((row) => [
      row.term,
      row.address,
      row.share === 0 && row.cells.length === 0 ? "front" : String(row.cells.length),
      row.registryVersion,
      Math.round(row.livedSeconds),
      row.silentSeconds,
      row.term === member ? "answers" : row.hasEnded ? "ended" : row.isReached ? "yes" : "no",
    ]),
  );
  const wrong = troubles.flatMap(({ found, advice }) => [safeText(found), `  -> ${safeText(advice)}`]);
  const summary =
    `Version ${registryVersion} of the registry is in force; cells without an owner: ${cellsWithoutOwner.length}`;
  return [table, "", summary, ...wrong.length === 0 ? ["All is well."] : wrong].join("\n");
}
