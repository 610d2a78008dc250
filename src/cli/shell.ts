// Shared by all command-line tasks: exit statuses, access to variables and the terminal, and running a program of
// commander. Commander does not write or exit by itself, so every task has the statuses below and tests can run a task as
// a function.

import { Command, CommanderError, InvalidArgumentError } from "commander";
import { ConfigError, readConfig } from "../process/settings.ts";

/** Exit statuses; shells use `interrupted` for Ctrl-C. */
export const EXIT = { ok: 0, refused: 1, usage: 2, unreachable: 3, interrupted: 130 } as const;

/** Ends a task with one clear line on standard error. */
export class TaskError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode: number) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** A task's access to variables, output and the terminal. */
export interface Shell {
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** Whether a person is at the terminal to answer questions. */
  readonly isInteractive: boolean;
  /** Writes to standard output, for results. */
  print(text: string): void;
  /** Writes to standard error, for everything else. */
  note(text: string): void;
  /** Asks a person for a line. */
  ask(question: string): string;
}

/** The shell of this process. It reads only the named variables, since the task has no permission for others. */
export function openShell(names: readonly string[]): Shell {
  return {
    variables: Object.fromEntries(names.map((name) => [name, Deno.env.get(name)])),
    isInteractive: Deno.stdin.isTerminal() && Deno.stderr.isTerminal(),
    print: (text) => console.log(text),
    note: (text) => console.error(text),
    ask: askOnTerminal,
  };
}

/** A program that prints through the shell, as do its subcommands. */
export function makeProgram(shell: Shell, name: string, description: string): Command {
  return new Command(name)
    .description(description)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => shell.print(text.trimEnd()),
      writeErr: (text) => shell.note(text.trimEnd()),
      outputError: (text, write) => write(sentence(text.replace(/^error: /, "").replace(/\.\s*$/, ""))),
      // Otherwise commander would read variables for which the task has no permission.
      getOutHasColors: () => false,
      getErrHasColors: () => false,
      getOutHelpWidth: () => 110,
      getErrHelpWidth: () => 110,
    });
}

/** An example at the end of a command's help. */
export function withExample(command: Command, ...lines: readonly string[]): Command {
  return command.addHelpText("after", ["\nExample:", ...lines.map((line) => `  ${line}`)].join("\n"));
}

/** Runs a program to its exit status. */
export async function runProgram(program: Command, args: readonly string[], shell: Shell): Promise<number> {
  try {
    await program.parseAsync(args, { from: "user" });
    return EXIT.ok;
  } catch (error) {
    if (error instanceof CommanderError) {
      return error.code === "commander.helpDisplayed" ? EXIT.ok : EXIT.usage;
    }
    if (!(error instanceof TaskError)) throw error;
    if (error.message !== "") shell.note(error.message);
    return error.exitCode;
  }
}

/** The base URL of the service, without a final slash: the given one, else the address of the settings. */
export function serviceUrl(given: string | undefined, shell: Shell): string {
  if (given === undefined) {
    const { PORT, HOLDFAST_HOST } = shell.variables;
    const { host, port } = settings(() => readConfig({ PORT, HOLDFAST_HOST }));
    return `http://${reachable(host)}:${port}`;
  }
  if (!URL.canParse(given) || !["http:", "https:"].includes(new URL(given).protocol)) {
    throw new TaskError(`--url: must be a URL such as http://127.0.0.1:8000, not "${given}"`, EXIT.usage);
  }
  return given.replace(/\/+$/, "");
}

/** The same for admin API and doctor, which may have an address of their own. */
export function adminUrl(given: string | undefined, shell: Shell): string {
  const { HOLDFAST_ADMIN_LISTEN } = shell.variables;
  const { adminListen } = settings(() => readConfig({ HOLDFAST_ADMIN_LISTEN }));
  if (given !== undefined || adminListen === null) return serviceUrl(given, shell);
  return `http://${reachable(adminListen.host)}:${adminListen.port}`;
}

/** The secret key of an app: the given one, else HOLDFAST_KEY. */
export function secretKey(given: string | undefined, shell: Shell): string {
  return keyOf(given, shell, /^sk_(live|test)_[A-Za-z0-9]+$/, "secret");
}

/** A key of an app that may read: a secret or a read-only one. */
export function readingKey(given: string | undefined, shell: Shell): string {
  return keyOf(given, shell, /^[sr]k_(live|test)_[A-Za-z0-9]+$/, "secret or read-only");
}

function keyOf(given: string | undefined, { variables }: Shell, form: RegExp, kind: string): string {
  const key = given ?? variables.HOLDFAST_KEY;
  if (key !== undefined && form.test(key)) return key;
  const problem = key ? `is not a ${kind} key` : "required";
  throw new TaskError(`--key: ${problem} (sk_live_... or sk_test_...; or set HOLDFAST_KEY)`, EXIT.usage);
}

/** Reads settings. Invalid ones are wrong usage of the task. */
export function settings<Value>(read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new TaskError(sentence(error.message.replace(/^Cannot start: /, "")), EXIT.usage);
  }
}

/** A parser of whole numbers for an option. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : NaN;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Must be a whole number from ${min} to ${max}.`);
  };
}

/** The host to call for a host to listen on: 0.0.0.0 means every address. */
function reachable(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return host.includes(":") ? `[${host}]` : host;
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Asks on standard error, so that standard output has only the result. */
function askOnTerminal(question: string): string {
  Deno.stderr.writeSync(new TextEncoder().encode(question));
  const line = new Uint8Array(1024);
  const length = Deno.stdin.readSync(line) ?? 0;
  return new TextDecoder().decode(line.subarray(0, length)).trim();
}
