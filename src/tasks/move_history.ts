// `deno task move-history`: moves the history that merges have left to move, now and to its end. The same as
// `deno task admin move-history`.

import { ADMIN_VARIABLES } from "src/tasks/admin_client.ts";
import { runAdmin } from "src/tasks/admin.ts";
import { openShell } from "src/tasks/shell.ts";

if (import.meta.main) Deno.exit(await runAdmin(["move-history", ...Deno.args], openShell(ADMIN_VARIABLES)));
