// How an admin command runs: its client, its output for people or programs, and the app that it concerns. A refusal
// becomes one line, or JSON with `--json`.

import type { Command } from "commander";
import { listApps } from "../../routes/contract/admin.ts";
import { type AdminClient, openAdminClient, ServiceRefusal } from "./admin_client.ts";
import { EXIT, type Shell, TaskError } from "./shell.ts";
import { safeText } from "./table.ts";

/** The tools of a running command. */
export interface AdminRun {
  readonly shell: Shell;
  readonly client: AdminClient;
  /** Prints the data for programs, or its text for people. */
  show<Data>(data: Data, text: (data: Data) => string): void;
  /** Prints a text for people before the data is there, and nothing for programs. */
  print(text: string): void;
  /** The given app, or else the only app. */
  appId(given: string | undefined): Promise<string>;
}

/** Makes an action of commander. Refusals of the service become text or JSON. */
export type AdminAction = <Args extends unknown[]>(
  work: (run: AdminRun, ...args: Args) => Promise<void>,
) => (...args: Args) => Promise<void>;

/** Makes actions of a program. The options of the program itself may be anywhere on the command line. */
export function actionsOf(program: Command, shell: Shell): AdminAction {
  return (work) => async (...args) => {
    const { url, json } = program.opts<{ url?: string; json?: boolean }>();
    try {
      const client = await openAdminClient(url, shell);
      const show: AdminRun["show"] = (data, text) =>
        shell.print(json === true ? JSON.stringify(data, null, 2) : text(data));
      const print: AdminRun["print"] = (text) => json === true || shell.print(text);
      await work({ shell, client, show, print, appId: (given) => appIdOf(client, given) }, ...args);
    } catch (error) {
      if (json !== true || !(error instanceof ServiceRefusal)) throw error;
      shell.print(JSON.stringify({ error: error.error }, null, 2));
      throw new TaskError("", error.exitCode);
    }
  };
}

const APPS_SHOWN_MAX = 10;

/** The given app, or else the only one. */
export async function appIdOf(client: AdminClient, given: string | undefined): Promise<string> {
  if (given !== undefined) return given;
  const apps = await client.call(listApps);
  const [only, ...others] = apps;
  if (only === undefined) {
    throw new TaskError(
      "There is no app yet; create one with `deno task admin apps create NAME`",
      EXIT.usage,
    );
  }
  if (others.length === 0) return only.appId;
  const shown = apps.slice(0, APPS_SHOWN_MAX).map(({ appId, name }) =>
    `  --app ${appId}   ${safeText(name)}`
  );
  if (apps.length > shown.length) {
    shown.push(`  and ${apps.length - shown.length} more: deno task admin apps list`);
  }
  const problem = `--app: required, because there are ${apps.length} apps. Choose one:`;
  throw new TaskError([problem, ...shown].join("\n"), EXIT.usage);
}
