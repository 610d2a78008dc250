// `deno task client:pack`: writes the client as an npm package, to be installed from the file or published.

import { CompileError, packClient } from "./client_package.ts";
import { EXIT, makeProgram, openShell, runProgram, type Shell, TaskError, withExample } from "./shell.ts";
import { type Tarball, writeTarball } from "./tarball.ts";

/** Runs the command line to its exit status. */
function runClientPack(args: readonly string[], shell: Shell): Promise<number> {
  const program = makeProgram(
    shell,
    "deno task client:pack",
    "Writes the client as an npm package and prints the path of the file.",
  )
    .option("--out <folder>", "where to write it", ".")
    .action(async ({ out }: { out: string }) => {
      shell.print(await writeTarball(out, await packOrRefuse()));
    });
  withExample(program, "deno task client:pack --out /tmp && npm install /tmp/holdfast-client-0.1.0.tgz");
  return runProgram(program, args, shell);
}

/** A client that does not compile ends the task with the compiler's message. */
async function packOrRefuse(): Promise<Tarball> {
  try {
    return await packClient();
  } catch (error) {
    if (error instanceof CompileError) throw new TaskError(error.message, EXIT.refused);
    throw error;
  }
}

if (import.meta.main) Deno.exit(await runClientPack(Deno.args, openShell([])));
