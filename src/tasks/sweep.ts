// `deno task sweep`: runs every sweep of the running service now and prints the counts. The same as
// `deno task admin sweep`, under the name that an operator looks for.

import { ADMIN_VARIABLES } from "src/tasks/admin_client.ts";
import { runAdmin } from "src/tasks/admin.ts";
import { openShell } from "src/tasks/shell.ts";

if (import.meta.main) Deno.exit(await runAdmin(["sweep", ...Deno.args], openShell(ADMIN_VARIABLES)));
