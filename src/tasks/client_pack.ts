// `deno task client:pack`: writes the client as an npm package, to be installed from the file or published.

import { CompileError, packClient } from "./client_package.ts";
import { EXIT, makeProgram, openShell, runProgram, type Shell, TaskError, withExample } from "./shell.ts";

/** Runs the command line to its exit status. */
export function runClientPack(args: readonly string[], shell: Shell): Promise<number> {
  const program = makeProgram(
    shell,
    "deno task client:pack",
    "Writes the client as an npm package and prints the path of the file.",
  )
    .option("--out <folder>", "where to write it", ".")
    .action(async ({ out }: { out: string }) => {
      shell.print(await writePackage(out));
    });
  withExample(program, "deno task client:pack --out /tmp && npm install /tmp/holdfast-client-0.1.0.tgz");
  return runProgram(program, args, shell);
}

async function writePackage(folder: string): Promise<string> {
  try {
    const { fileName, bytes } = await packClient();
    const path = `${folder.replace(/\/+$/, "")}/${fileName}`;
    await Deno.writeFile(path, bytes);
    return path;
  } catch (error) {
    if (error instanceof CompileError) throw new TaskError(error.message, EXIT.refused);
    if (error instanceof Deno.errors.NotFound) {
      throw new TaskError(`--out: no such folder: ${folder}`, EXIT.usage);
    }
    throw error;
  }
}

if (import.meta.main) Deno.exit(await runClientPack(Deno.args, openShell([])));
