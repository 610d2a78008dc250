// `deno task move-history`: moves the rest of the history of merged users now. The same as `deno task admin
// move-history`.

import { ADMIN_VARIABLES } from "./admin_client.ts";
import { runAdmin } from "./admin.ts";
import { openShell } from "./shell.ts";

if (import.meta.main) Deno.exit(await runAdmin(["move-history", ...Deno.args], openShell(ADMIN_VARIABLES)));
