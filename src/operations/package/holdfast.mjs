#!/usr/bin/env node
// The command of the npm package: runs the service, or a task such as `admin`, with the Deno that npm installed beside
// it. commands.json has the arguments of each, permissions included. The working directory stays the caller's.

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { constants } from "node:os";
import process from "node:process";
import { fileURLToPath } from "node:url";

const commands = JSON.parse(readFileSync(new URL("commands.json", import.meta.url), "utf8"));
const [first, ...rest] = process.argv.slice(2);
const isTask = first !== undefined && !first.startsWith("-");
const name = isTask ? first : "start";

if (first === "--help" || first === "-h" || !Object.hasOwn(commands, name)) {
  const isHelp = first === "--help" || first === "-h";
  (isHelp ? console.log : console.error)(
    `Usage: holdfast [command]\nCommands: ${Object.keys(commands).join(", ")}. The default is start.`,
  );
  process.exit(isHelp ? 0 : 2);
}

const { flags, module } = commands[name];
const program = (path) => fileURLToPath(new URL(`program/${path}`, import.meta.url));
// Deno's own installer knows where the executable is, also where npm runs no install scripts.
const deno = createRequire(import.meta.url)("deno/install_api.cjs").runInstall();
const child = spawn(
  deno,
  ["run", "--config", program("deno.json"), ...flags, program(module), ...(isTask ? rest : [])],
  // The package.json of npm is not Deno's business.
  { stdio: "inherit", env: { ...process.env, DENO_NO_PACKAGE_JSON: "1", DENO_NO_UPDATE_CHECK: "1" } },
);

// A terminal sends Ctrl-C to both; a second one would end a task that asks for patience.
process.on("SIGINT", () => process.stdin.isTTY || child.kill("SIGINT"));
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
// npx ends its shell and not what runs in it. When that shell is gone, npx was told to stop.
if (process.env.npm_command === "exec") {
  const shell = process.ppid;
  setInterval(() => process.ppid === shell || child.kill("SIGTERM"), 250).unref();
}
child.on("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
