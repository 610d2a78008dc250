// `deno task dashboard > dashboard.json`: prints the dashboard for Grafana. Exit status: 0, 2 wrong usage.

import { makeDashboard } from "../operations/metrics/dashboard.ts";
import { makeProgram, openShell, runProgram } from "./shell.ts";

if (import.meta.main) {
  const shell = openShell([]);
  const program = makeProgram(shell, "deno task dashboard", "Prints the dashboard for Grafana as JSON.")
    .action(() => shell.print(JSON.stringify(makeDashboard(), null, 2)));
  Deno.exit(await runProgram(program, Deno.args, shell));
}
