// `deno task admin stores split`: asks the service to split a database, and shows the progress until the new one serves. The
// service goes on without the command, so it may be stopped and run again at any time. Exit status: 0 the new database serves,
// 1 refused or not yet there, 2 wrong usage, 3 the service is unreachable.

import type { Command } from "commander";
import type { AnswerOf } from "../../routes/contract/definition.ts";
import { listStores, splitStore } from "../../routes/contract/service.ts";
import { rest } from "../process/rest.ts";
import type { AdminAction, AdminRun } from "./admin_run.ts";
import { EXIT, TaskError, withExample } from "./shell.ts";
import { safeText } from "./table.ts";

type Stores = AnswerOf<typeof listStores>;

const LOOK_MS = 250;
/** How long the command waits for a step. */
const STEP_MS = 120_000;

/** Adds the command to that of the list. */
export function addSplitCommand(stores: Command, action: AdminAction): void {
  const command = stores.command("split")
    .description(
      "Move the workspaces of some cells to a standby of their database, which becomes a database of its own.\n" +
        "Run it again to see how far it is: the service goes on by itself.",
    )
    .argument("<store>", "the database to split")
    .requiredOption("--cells <cells>", 'the cells to move, such as "32-63" or "1,5,8-11"')
    .requiredOption("--to <store>", "the name of the standby in HOLDFAST_DATABASES")
    .action(action(async (run, store: string, { cells, to }: { cells: string; to: string }) => {
      await split(run, store, { to, cells: readCells(cells) });
    }))
    .addHelpText("after", "\nExit status: 0 it serves, 1 refused or not yet, 2 wrong usage, 3 unreachable.");
  withExample(command, "deno task admin stores split eu1 --cells 32-63 --to eu2");
}

/** Reads numbers and ranges of numbers. */
export function readCells(text: string): number[] {
  return text.split(",").flatMap((part) => {
    const [, first, last] = /^(\d{1,2})(?:-(\d{1,2}))?$/.exec(part.trim()) ?? [];
    const [from, to] = [Number(first), Number(last ?? first)];
    if (first === undefined || to < from || to > 63) {
      throw new TaskError(
        `--cells: "${safeText(part)}" must be a cell from 0 to 63 or a range, such as 32-63`,
        EXIT.usage,
      );
    }
    return Array.from({ length: to - from + 1 }, (_, place) => from + place);
  });
}

async function split(
  { client, print, show }: AdminRun,
  store: string,
  asked: { readonly to: string; readonly cells: readonly number[] },
): Promise<void> {
  await client.call(splitStore, { store, ...asked });
  let shown = "";
  let until = performance.now() + STEP_MS;
  while (true) {
    const stores = await client.call(listStores);
    const { isOver, text } = stepOf(stores, store, asked.to);
    if (isOver) return show(stores, () => text);
    if (text !== shown) {
      print(text);
      until = performance.now() + STEP_MS;
    }
    shown = text;
    if (performance.now() > until) {
      throw new TaskError(`${text}. Run the command again to go on waiting`, EXIT.refused);
    }
    await rest(LOOK_MS);
  }
}

/** Returns the progress of a split. */
function stepOf(stores: Stores, store: string, to: string): { isOver: boolean; text: string } {
  const split = stores.find((row) => row.store === store)?.splits.find((row) => row.to === to);
  const heir = stores.find((row) => row.store === to);
  if (split === undefined) return { isOver: false, text: `${store} does not answer` };
  const { cells, left, state } = split;
  const moved = `${cells.length} of ${cells.length + left.length} cells are handed over`;
  if (left.length > 0 || state === "planned") return { isOver: false, text: moved };
  if (heir?.state === "serving") {
    return { isOver: true, text: `${to} serves ${cells.length} cells of ${store}` };
  }
  return {
    isOver: false,
    text: `${moved}; ${safeText(heir?.waitsFor ?? `${to} is ${heir?.state ?? "away"}`)}`,
  };
}
