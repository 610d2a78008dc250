// `deno task sweep`: runs every sweep of the running service now and prints the counts. The same as
// `deno task admin sweep`.

import { ADMIN_VARIABLES } from "./admin_client.ts";
import { runAdmin } from "./admin.ts";
import { openShell } from "./shell.ts";

if (import.meta.main) Deno.exit(await runAdmin(["sweep", ...Deno.args], openShell(ADMIN_VARIABLES)));
