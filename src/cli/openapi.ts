// `deno task openapi > openapi.json`: prints the API as an OpenAPI document, without a running service. Version 3.1 is
// the document that a service has at `/api/openapi.json`. Exit status: 0, 2 wrong usage.

import { Option } from "commander";
import { SURFACE } from "../../routes/surface.ts";
import { makeDocument } from "../../routes/reference/openapi.ts";
import { toOpenApi30 } from "../../routes/reference/openapi_3_0.ts";
import { makeProgram, openShell, runProgram, type Shell } from "./shell.ts";

/** Runs the command line to its exit status. */
function runOpenapi(args: readonly string[], shell: Shell): Promise<number> {
  const program = makeProgram(shell, "deno task openapi", "Prints the API as an OpenAPI document.")
    .addOption(
      new Option("--version <version>", "of OpenAPI; 3.0 is for tools that do not read 3.1")
        .choices(["3.1", "3.0"]).default("3.1"),
    )
    .action(({ version }: { readonly version: "3.1" | "3.0" }) => {
      const document = makeDocument(SURFACE);
      shell.print(JSON.stringify(version === "3.0" ? toOpenApi30(document) : document, null, 2));
    });
  return runProgram(program, args, shell);
}

if (import.meta.main) {
  Deno.exit(await runOpenapi(Deno.args, openShell([])));
}
