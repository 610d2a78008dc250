// `deno task service:pack`: writes the service as an npm package, which `npx` starts on any machine with Node.

import { packService } from "./service_package.ts";
import { makeProgram, openShell, runProgram, type Shell, withExample } from "./shell.ts";
import { writeTarball } from "./tarball.ts";

/** Runs the command line to its exit status. */
function runServicePack(args: readonly string[], shell: Shell): Promise<number> {
  const program = makeProgram(
    shell,
    "deno task service:pack",
    "Writes the service as an npm package and prints the path of the file.",
  )
    .option("--out <folder>", "where to write it", ".")
    .action(async ({ out }: { out: string }) => {
      shell.print(await writeTarball(out, await packService()));
    });
  withExample(program, "deno task service:pack --out /tmp && npx /tmp/holdfast-0.1.0.tgz");
  return runProgram(program, args, shell);
}

if (import.meta.main) Deno.exit(await runServicePack(Deno.args, openShell([])));
