// `deno task admin`: a thin client of the admin API. It prints tables for people and, with `--json`, data for
// programs. Every rule is the service's. Exit status: 0 done, 1 refused by the service, 2 wrong usage, 3 the service is
// unreachable.

import { SETTING_NAMES } from "../process/settings.ts";
import type { Groups } from "./admin_call.ts";
import { CATALOG_GROUP } from "./admin_catalog.ts";
import { addDoctorCommand } from "./admin_doctor.ts";
import { addMoveStoreCommand } from "./admin_move_store.ts";
import { MODEL_GROUP } from "./admin_models.ts";
import { PEOPLE_GROUP } from "./admin_people.ts";
import { REGISTRY_GROUPS, SERVICE_COMMANDS } from "./admin_registry.ts";
import { actionsOf } from "./admin_run.ts";
import { STRIPE_GROUP } from "./admin_stripe.ts";
import { WEBHOOK_GROUP } from "./admin_webhooks.ts";
import { makeProgram, openShell, runProgram, type Shell, withExample } from "./shell.ts";

const GROUPS: Groups = {
  ...REGISTRY_GROUPS,
  catalog: CATALOG_GROUP,
  models: MODEL_GROUP,
  people: PEOPLE_GROUP,
  stripe: STRIPE_GROUP,
  webhooks: WEBHOOK_GROUP,
};

/** Runs the command line to its exit status. */
export function runAdmin(args: readonly string[], shell: Shell): Promise<number> {
  const program = makeProgram(shell, "deno task admin", "Administers a running service over its admin API.")
    .option(
      "--url <url>",
      "base URL of the service (default: from HOLDFAST_ADMIN_LISTEN, else PORT and HOLDFAST_HOST)",
    )
    .option("--json", "print the data as JSON")
    .addHelpText(
      "after",
      "\nThe token is HOLDFAST_ADMIN_TOKEN, else the file admin-token in HOLDFAST_DATA_DIR (default .holdfast)." +
        "\nExit status: 0 done, 1 refused by the service or faults, 2 wrong usage, 3 the service is unreachable.",
    );
  withExample(program, "deno task admin apps create Shop", "deno task admin workspaces list --json");
  const action = actionsOf(program, shell);
  for (const [name, [words, commands]] of Object.entries(GROUPS)) {
    const group = program.command(name).description(words);
    withExample(group, `deno task admin ${name} --help`);
    for (const add of commands) add(group, action);
  }
  for (const add of SERVICE_COMMANDS) add(program, action);
  addDoctorCommand(program, shell);
  addMoveStoreCommand(program, shell);
  return runProgram(program, args, shell);
}

if (import.meta.main) Deno.exit(await runAdmin(Deno.args, openShell(SETTING_NAMES)));
