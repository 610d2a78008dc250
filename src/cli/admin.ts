// `deno task admin`: a thin client of the admin API. It prints tables for people and, with `--json`, data for
// programs. The service decides everything. Exit status: 0 done, 1 refused by the service, 2 wrong usage, 3 the service
// cannot be reached.

import { type Command, InvalidArgumentError, Option } from "commander";
import type { CreatedApp, listWorkspaces, ShownKey } from "../tenant/admin.ts";
import { SETTING_NAMES } from "../process/settings.ts";
import type { Workspace } from "../storage/rows/registry_rows.ts";
import { addCatalogCommands } from "./admin_catalog.ts";
import { addClusterCommand } from "./admin_cluster.ts";
import { addDoctorCommand } from "./admin_doctor.ts";
import { addModelCommands } from "./admin_models.ts";
import { actionsOf, type AdminAction, type AdminRun, withApp } from "./admin_run.ts";
import { addWebhookCommands } from "./admin_webhooks.ts";
import {
  EXIT,
  makeProgram,
  openShell,
  runProgram,
  type Shell,
  TaskError,
  wholeNumber,
  withExample,
} from "./shell.ts";
import { renderTable, safeText } from "./table.ts";

/** A workspace; in the list also with what it used in the running month. */
type WorkspaceRow = Workspace & Partial<ReturnType<typeof listWorkspaces>[number]>;

interface AppRow {
  readonly appId: string;
  readonly workspaceId: string;
  readonly name: string;
  readonly createdAt: string;
  readonly catalogVersion: number;
}

interface KeyRow {
  readonly keyId: string;
  readonly prefix: string;
  readonly class: string;
  readonly mode: string;
  readonly createdAt: string;
  readonly revokedAt: string | null;
}

const ONCE = "Shown once and never again. Keep it now:";
const CAPS = ["operationCap", "aiBudgetCents", "testOperationCap", "testCreditBalanceCap"] as const;

/** Runs the command line to its exit status. */
export function runAdmin(args: readonly string[], shell: Shell): Promise<number> {
  const program = makeProgram(shell, "deno task admin", "Administers a running service over its admin API.")
    .option("--url <url>", "base URL of the service (default: from PORT and HOLDFAST_HOST)")
    .option("--json", "print the data as JSON")
    .addHelpText(
      "after",
      "\nThe token is HOLDFAST_ADMIN_TOKEN, else the file admin-token in HOLDFAST_DATA_DIR (default .holdfast)." +
        "\nExit status: 0 done, 1 refused by the service or faults, 2 wrong usage, 3 the service cannot be reached.",
    );
  withExample(program, "deno task admin apps create Shop", "deno task admin workspaces list --json");
  const action = actionsOf(program, shell);
  addWorkspaceCommands(program, action);
  addAppCommands(program, action);
  addKeyCommands(program, action);
  addCatalogCommands(program, action);
  addModelCommands(program, action);
  addWebhookCommands(program, action);
  addSweepCommand(program, action);
  addClusterCommand(program, action);
  addDoctorCommand(program, shell);
  return runProgram(program, args, shell);
}

function addWorkspaceCommands(program: Command, action: AdminAction): void {
  const group = program.command("workspaces").description("Owners of apps, with their monthly caps.");
  withExample(group, "deno task admin workspaces list");
  const list = group.command("list").description("All workspaces with their use of the running UTC month.")
    .action(action(async ({ client, show }: AdminRun) => {
      show(await client.call<WorkspaceRow[]>("GET", "/workspaces"), workspaceTable);
    }));
  withExample(list, "deno task admin workspaces list --json");
  const create = withCaps(withName(group.command("create").description("Make a workspace.")))
    .action(action(async ({ client, show }: AdminRun, given: string | undefined, options: NameOption) => {
      const name = nameOf(given, options);
      show(
        await client.call<WorkspaceRow>("POST", "/workspaces", { ...withoutLimit(options), name }),
        (row) => workspaceTable([row]),
      );
    }));
  withExample(create, 'deno task admin workspaces create "Acme" --operation-cap 1000000');
  const update = withCaps(
    group.command("update").description("Change a workspace; what is not given stays.")
      .argument("<workspaceId>", "its id").option("--name <name>", "a new name"),
  ).action(action(async ({ client, show }: AdminRun, id: string, changes: object) => {
    if (Object.keys(changes).length === 0) {
      throw new TaskError("Nothing to change: give --name or a cap (see --help)", EXIT.usage);
    }
    const path = `/workspaces/${encodeURIComponent(id)}`;
    show(
      await client.call<WorkspaceRow>("PATCH", path, withoutLimit(changes)),
      (row) => workspaceTable([row]),
    );
  }));
  withExample(update, "deno task admin workspaces update ws_1 --operation-cap none --ai-budget-cents 5000");
}

function withCaps(command: Command): Command {
  return command
    .option("--operation-cap <n|none>", "metering operations a month in live mode", cap)
    .option("--ai-budget-cents <n|none>", "cents a month for the model server", cap)
    .option("--test-operation-cap <n|none>", "metering operations a month in test mode", cap)
    .option("--test-credit-balance-cap <n|none>", "credit balances that an app may issue in test mode", cap);
}

/** "none" stays a text until the request is made: commander cannot hold null as an option's value. */
function cap(text: string): number | "none" {
  if (text === "none") return text;
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : NaN;
  if (Number.isFinite(value)) return value;
  throw new InvalidArgumentError('Must be a number of 0 or more, or "none" for no limit.');
}

/** The caps of a command line as the API takes them: null is no limit. */
function withoutLimit(caps: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(caps).map(([name, value]) => [name, name !== "name" && value === "none" ? null : value]),
  );
}

function workspaceTable(rows: readonly WorkspaceRow[]): string {
  const isUsed = rows.some(({ operationsUsed }) => operationsUsed !== undefined);
  const titles = [
    "WORKSPACE",
    "NAME",
    "OPERATIONS CAP",
    "AI CENTS CAP",
    "TEST OPERATIONS CAP",
    "TEST CREDITS CAP",
  ];
  const used = ["OPERATIONS USED", "TEST OPERATIONS USED", "AI CENTS SPENT"];
  return renderTable(
    isUsed ? [...titles, ...used] : titles,
    rows.map((row) => {
      const caps = CAPS.map((name) => row[name] ?? "no limit");
      const uses = [row.operationsUsed, row.testOperationsUsed, row.aiSpentCents];
      return [row.workspaceId, row.name, ...caps, ...(isUsed ? uses : [])];
    }),
  );
}

function addAppCommands(program: Command, action: AdminAction): void {
  const group = program.command("apps").description("Apps: each owns keys, a catalog and its users.");
  withExample(group, "deno task admin apps list");
  const list = group.command("list").description("All apps, without secrets.")
    .action(action(async ({ client, show }: AdminRun) => {
      show(await client.call<AppRow[]>("GET", "/apps"), appTable);
    }));
  withExample(list, "deno task admin apps list --json");
  const create = withName(
    group.command("create").description("Make an app with its four keys, which are shown once."),
  )
    .option("--workspace <id>", "its workspace (default: the first one, made if there is none)")
    .action(
      action(async ({ client, show }: AdminRun, given: string | undefined, options: CreateAppOptions) => {
        const body = { name: nameOf(given, options), workspaceId: options.workspace };
        show(await client.call<CreatedApp>("POST", "/apps", body), createdAppText);
      }),
    );
  withExample(create, "deno task admin apps create Shop --workspace ws_1");
  const show = group.command("show").description("One app, without secrets.").argument("<appId>", "its id")
    .action(action(async ({ client, show }: AdminRun, id: string) => {
      show(await client.call<AppRow>("GET", `/apps/${encodeURIComponent(id)}`), (row) => appTable([row]));
    }));
  withExample(show, "deno task admin apps show app_1");
  addRotateCommand(group, action);
}

function addRotateCommand(group: Command, action: AdminAction): void {
  const rotate = group.command("rotate-identity-secret")
    .description("Give an app a new identity secret, which is shown once. The old one holds for a while.")
    .argument("<appId>", "its id")
    .option(
      "--keep-old-seconds <n>",
      "how long tokens signed with the old one hold (default: a day)",
      wholeNumber(0, KEEP_OLD_SECONDS_MAX),
    )
    .action(action(async ({ client, show }: AdminRun, id: string, { keepOldSeconds }: RotateOptions) => {
      const path = `/apps/${encodeURIComponent(id)}/identity-secret`;
      show(await client.call<RotatedSecret>("POST", path, { keepOldSeconds }), rotatedText);
    }));
  withExample(rotate, "deno task admin apps rotate-identity-secret app_1 --keep-old-seconds 3600");
}

const KEEP_OLD_SECONDS_MAX = 30 * 86_400;

interface RotateOptions {
  readonly keepOldSeconds?: number;
}

interface RotatedSecret {
  readonly identitySecret: string;
  readonly oldValidUntil: string | null;
}

function rotatedText({ identitySecret, oldValidUntil }: RotatedSecret): string {
  const old = oldValidUntil === null ? [] : [`Tokens signed with the old secret hold until ${oldValidUntil}`];
  return [ONCE, `Identity secret: ${identitySecret}`, ...old].join("\n");
}

interface NameOption {
  readonly name?: string;
}

interface CreateAppOptions extends NameOption {
  readonly workspace?: string;
}

/** Accepts the name as an argument or as an option, since people try both. */
function withName(command: Command): Command {
  return command.argument("[name]", "its name").option("--name <name>", "the same, as an option");
}

function nameOf(given: string | undefined, { name }: NameOption): string {
  if (given !== undefined && name !== undefined) {
    throw new TaskError("The name is given twice, as an argument and by --name", EXIT.usage);
  }
  const found = given ?? name;
  if (found === undefined) throw new TaskError("Missing required argument 'name'", EXIT.usage);
  return found;
}

function appTable(rows: readonly AppRow[]): string {
  return renderTable(
    ["APP", "NAME", "WORKSPACE", "CATALOG VERSION", "CREATED"],
    rows.map((row) => [row.appId, row.name, row.workspaceId, row.catalogVersion, row.createdAt]),
  );
}

function createdAppText({ appId, workspaceId, identitySecret, keys }: CreatedApp): string {
  return [
    `App ${appId} in workspace ${workspaceId}`,
    "",
    ONCE,
    `Identity secret: ${identitySecret}`,
    shownKeyTable(keys),
  ].join("\n");
}

function shownKeyTable(keys: readonly ShownKey[]): string {
  return renderTable(
    ["KEY ID", "CLASS", "MODE", "KEY"],
    keys.map((key) => [key.keyId, key.class, key.mode, key.key]),
  );
}

function addKeyCommands(program: Command, action: AdminAction): void {
  const group = program.command("keys").description("API keys of an app.");
  withExample(group, "deno task admin keys list --app app_1");
  const list = withApp(group.command("list").description("The keys of an app by their prefixes."))
    .action(action(async ({ client, show, appId }: AdminRun, { app }: AppOption) => {
      show(await client.call<KeyRow[]>("GET", `${await keysPath(appId, app)}`), keyTable);
    }));
  withExample(list, "deno task admin keys list --app app_1");
  const create = withApp(group.command("create").description("Make a key, which is shown once."))
    .addOption(
      new Option("--class <class>", "who uses it").choices(["secret", "public"]).makeOptionMandatory(),
    )
    .addOption(
      new Option("--mode <mode>", "whose data it reaches").choices(["live", "test"]).makeOptionMandatory(),
    )
    .action(action(async ({ client, show, appId }: AdminRun, { app, ...input }: AppOption) => {
      const made = await client.call<ShownKey>("POST", await keysPath(appId, app), input);
      show(made, (key) => `${ONCE}\n${shownKeyTable([key])}`);
    }));
  withExample(create, "deno task admin keys create --app app_1 --class secret --mode live");
  const revoke = withApp(group.command("revoke").description("Revoke a key. It stops at once and for good."))
    .argument("<keyId>", "its id")
    .option("--yes", "do not ask")
    .action(action(async ({ client, show, shell, appId }: AdminRun, id: string, options: RevokeOptions) => {
      const path = await keysPath(appId, options.app);
      if (options.yes !== true) confirmRevoke(shell, id);
      show(
        await client.call<KeyRow>("DELETE", `${path}/${encodeURIComponent(id)}`),
        (row) => keyTable([row]),
      );
    }));
  withExample(revoke, "deno task admin keys revoke key_1 --app app_1 --yes");
}

interface AppOption {
  readonly app?: string;
}

interface RevokeOptions extends AppOption {
  readonly yes?: boolean;
}

async function keysPath(appId: AdminRun["appId"], given: string | undefined): Promise<string> {
  return `/apps/${encodeURIComponent(await appId(given))}/keys`;
}

/** Without a terminal there is nobody to ask, so a script that forgot `--yes` revokes nothing. */
function confirmRevoke(shell: Shell, keyId: string): void {
  if (!shell.isInteractive) {
    throw new TaskError("Revoking asks on a terminal, and there is none: give --yes", EXIT.usage);
  }
  const answer = shell.ask(`Revoke ${safeText(keyId)}? Its callers are refused at once. Type yes: `);
  if (answer.toLowerCase() !== "yes") throw new TaskError("Nothing was revoked", EXIT.refused);
}

function keyTable(rows: readonly KeyRow[]): string {
  return renderTable(
    ["KEY ID", "PREFIX", "CLASS", "MODE", "CREATED", "REVOKED"],
    rows.map((row) => [row.keyId, `${row.prefix}...`, row.class, row.mode, row.createdAt, row.revokedAt]),
  );
}

function addSweepCommand(program: Command, action: AdminAction): void {
  const counting = (name: string, path: string, description: string) =>
    program.command(name).description(description).action(action(async ({ client, show }: AdminRun) => {
      show(await client.call<Record<string, number>>("POST", path), (counts) => {
        return renderTable(
          ["WHAT", "COUNT"],
          Object.entries(counts).map(([kind, count]) => [wordsOf(kind), count]),
        );
      });
    }));
  const sweep = counting("sweep", "/sweep", "Run every sweep of the service now, to its end.");
  withExample(sweep, "deno task sweep", "deno task admin sweep --json");
  const move = counting(
    "move-history",
    "/move-history",
    "Move the history that merges left to move, to its end.",
  );
  withExample(move, "deno task move-history");
}

/** Turns "expiredReservations" into "expired reservations". */
function wordsOf(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

if (import.meta.main) Deno.exit(await runAdmin(Deno.args, openShell(SETTING_NAMES)));
