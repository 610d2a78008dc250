// Commands made from definitions of the admin API (`routes/contract`). Members of the path become arguments, all other
// members options, with the choices, bounds and words of their schemas.

import { type Command, InvalidArgumentError, Option } from "commander";
import type { AnswerOf, KeylessDefinition } from "../../routes/contract/definition.ts";
import { type JsonSchema, jsonSchemaOf, withoutNull } from "../../routes/reference/json_schema.ts";
import type { Members } from "./admin_client.ts";
import type { AdminAction, AdminRun } from "./admin_run.ts";
import { EXIT, type Shell, TaskError, wholeNumber, withExample } from "./shell.ts";
import { type Columns, safeText, tableOf } from "./table.ts";

/** The answer as people read it: a table of its rows, or a text. */
type Shown<Answer> =
  | Columns<Answer extends readonly (infer Row)[] ? Row : Answer>
  | ((answer: Answer, members: Members) => string);

/** Parts of a command that its definition does not have. */
interface Extras {
  /** By default the summary of the call. */
  readonly words?: string;
  /** Members that are arguments: by default those of the path, but the app is an option. */
  readonly args?: readonly string[];
  /** Flags in place of a member's own, with the value of a flag that takes no argument. */
  readonly flags?: Readonly<
    Record<string, readonly (readonly [flag: string, words: string, value?: unknown])[]>
  >;
  /** Number members for which "none" means null. */
  readonly nullable?: readonly string[];
  /** The effect of a call that asks for confirmation, unless `--yes` is given. */
  readonly confirms?: string;
}

/** Adds a command to its group. */
type AddCommand = (group: Command, action: AdminAction) => void;

/** Groups of commands by their names, with their words. */
export type Groups = Readonly<Record<string, readonly [words: string, commands: readonly AddCommand[]]>>;

/**
 * The command of a call.
 *
 * @param example a line that follows `deno task`
 */
export function commandOf<Call extends KeylessDefinition>(
  name: string,
  call: Call,
  shown: Shown<AnswerOf<Call>>,
  example: string,
  extras: Extras = {},
): AddCommand {
  const { words = `${call.summary}.`, confirms } = extras;
  return (group, action) => {
    const inPath = [...call.path.matchAll(/:(\w+)/g)].map(([, member = ""]) => member);
    const args = extras.args ?? inPath.filter((member) => member !== "appId");
    const hasApp = inPath.includes("appId") && !args.includes("appId");
    const command = group.command(name).description(words);
    for (const member of args) command.argument(member === "name" ? "[name]" : `<${member}>`);
    if (hasApp) withApp(command);
    const flags = flagsOf(call, extras, args, inPath);
    for (const { option } of flags) command.addOption(option);
    if (confirms !== undefined) command.option("--yes", "do not ask");
    command.action(action(async (run: AdminRun, ...values: unknown[]) => {
      const options = values[args.length] as Record<string, unknown> & { app?: string; yes?: boolean };
      const members: Record<string, unknown> = argumentsOf(args, values, options);
      for (const { member, option, value } of flags) {
        const given = options[option.attributeName()];
        if (given !== undefined) members[member] = given === false ? null : value ?? given;
      }
      for (const member of extras.nullable ?? []) if (members[member] === "none") members[member] = null;
      if (call.method === "PATCH" && Object.keys(members).length === args.length) {
        throw new TaskError("Nothing to change: give at least one option (see --help)", EXIT.usage);
      }
      if (hasApp) members.appId = await run.appId(options.app);
      if (confirms !== undefined && options.yes !== true) {
        confirm(run.shell, `${name} ${String(members[args[0]!])}`, confirms);
      }
      const answer = await run.client.call(call, members);
      run.show(answer, () => {
        if (typeof shown === "function") return shown(answer, members);
        return tableOf(shown as Columns<unknown>, [answer].flat());
      });
    }));
    withExample(command, `deno task ${example}`);
  };
}

/** The option that names an app. */
export function withApp(command: Command): Command {
  return command.option("--app <id>", "the app (default: the only one)");
}

/** An option of commander with its member, and the value that it gives the member where it takes no argument. */
interface Flag {
  readonly member: string;
  readonly option: Option;
  readonly value?: unknown;
}

function flagsOf(
  { input }: KeylessDefinition,
  { flags = {}, nullable = [] }: Extras,
  args: readonly string[],
  inPath: readonly string[],
): Flag[] {
  if (input === null) return [];
  const { properties, required = [] } = jsonSchemaOf(input) as {
    properties: Record<string, JsonSchema>;
    required?: string[];
  };
  return Object.entries(properties).flatMap(([member, schema]) => {
    // A name may also be given as an option, since people try both.
    if (inPath.includes(member) || (args.includes(member) && member !== "name")) return [];
    const own = flags[member];
    if (own !== undefined) {
      const others = (flag: string) => own.map(([other]) => other).filter((other) => other !== flag);
      return own.map(([flag, words, value]) => {
        const option = new Option(flag, words);
        if (value !== undefined) option.conflicts(others(flag).map((other) => other.slice("--".length)));
        return { member, option, value };
      });
    }
    const option = optionOf(member, withoutNull(schema), nullable.includes(member));
    return [{
      member,
      option: option.makeOptionMandatory(required.includes(member) && !args.includes(member)),
    }];
  });
}

function optionOf(member: string, schema: JsonSchema, isNullable: boolean): Option {
  const { type, enum: choices, minimum = 0, maximum = 0, description = "" } = schema as {
    type?: string;
    enum?: string[];
    minimum?: number;
    maximum?: number;
    description?: string;
  };
  const flag = `--${member.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  const words = description.replace(/^[A-Z](?=[a-z ])/, (letter) => letter.toLowerCase());
  const option = (value: string) => new Option(`${flag} <${value}>`, words);
  if (choices !== undefined) return option(member).choices(choices);
  if (isNullable) return option("n|none").argParser(numberOrNone);
  if (type === "integer" || type === "number") return option("n").argParser(wholeNumber(minimum, maximum));
  if (type === "array") return option("list").argParser((text) => text.split(",").map((one) => one.trim()));
  return option("text");
}

/** "none" remains text until the call: commander cannot hold null as an option's value. */
function numberOrNone(text: string): number | "none" {
  if (text === "none") return text;
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : NaN;
  if (Number.isFinite(value)) return value;
  throw new InvalidArgumentError('Must be a number of 0 or more, or "none" for no limit.');
}

/** Arguments by their members. A name may be an argument or an option, but not both. */
function argumentsOf(args: readonly string[], values: readonly unknown[], { name }: Members) {
  return Object.fromEntries(args.map((member, place) => {
    const value = values[place];
    if (member !== "name") return [member, value];
    if (value !== undefined && name !== undefined) {
      throw new TaskError("The name is given twice, as an argument and by --name", EXIT.usage);
    }
    if (value === undefined && name === undefined) {
      throw new TaskError("Missing required argument 'name'", EXIT.usage);
    }
    return [member, value ?? name];
  }));
}

/** Asks a person. Without a terminal there is no one to ask, so a script needs `--yes`. */
function confirm(shell: Shell, what: string, effect: string): void {
  if (!shell.isInteractive) throw new TaskError("Confirmation required; use --yes", EXIT.usage);
  const answer = shell.ask(`${safeText(what)}: ${effect} Type yes: `);
  if (answer.toLowerCase() !== "yes") throw new TaskError("Canceled; nothing was changed", EXIT.refused);
}
