// The webhook commands of `deno task admin`: addresses that are told what happens, their secrets, and what becomes of
// the messages.

import { type Command, Option } from "commander";
import { type AdminAction, type AdminRun, withApp } from "./admin_run.ts";
import { EXIT, type Shell, TaskError, wholeNumber, withExample } from "./shell.ts";
import { renderTable, safeText } from "./table.ts";

interface WebhookRow {
  readonly webhookId: string;
  readonly url: string;
  readonly mode: string;
  readonly events: readonly string[];
  readonly description: string | null;
  readonly disabled: boolean;
  readonly createdAt: string;
  readonly lastSuccessAt: string | null;
  readonly failingSince: string | null;
  readonly pending: number;
}

interface MessageRow {
  readonly messageId: string;
  readonly type: string;
  readonly status: string;
  readonly attempts: number;
  readonly nextAttemptAt: string | null;
  readonly lastStatus: number | null;
  readonly lastError: string | null;
  readonly createdAt: string;
}

interface AppOption {
  readonly app?: string;
}

interface CreateOptions extends AppOption {
  readonly mode: string;
  readonly events: readonly string[];
  readonly description?: string;
}

interface UpdateOptions extends AppOption {
  readonly url?: string;
  readonly events?: readonly string[];
  /** False to clear it. */
  readonly description?: string | false;
  readonly disable?: boolean;
  readonly enable?: boolean;
}

interface PageOptions extends AppOption {
  readonly status?: string;
  readonly limit?: number;
  readonly offset?: number;
}

const ONCE = "Shown once and never again. Keep it now:";
const LIMIT_MAX = 100;
const OFFSET_MAX = 10_000;

/** Adds the commands. */
export function addWebhookCommands(program: Command, action: AdminAction): void {
  const group = program.command("webhooks").description("Addresses that are told what happens in an app.");
  withExample(group, "deno task admin webhooks list --app app_1");
  addAddressCommands(group, action);
  addSecretCommand(group, action);
  addDeliveryCommands(group, action);
}

function addAddressCommands(group: Command, action: AdminAction): void {
  const list = withApp(group.command("list").description("The webhooks of an app, and how deliveries go."))
    .action(action(async ({ client, show, appId }: AdminRun, { app }: AppOption) => {
      show(await client.call<WebhookRow[]>("GET", await pathOf(appId, app)), webhookTable);
    }));
  withExample(list, "deno task admin webhooks list --app app_1");
  const create = withApp(
    group.command("create").description("Make a webhook. Its secret is shown once.")
      .argument("<url>", "an https address of yours"),
  )
    .addOption(
      new Option("--mode <mode>", "whose data it is told").choices(["live", "test"]).makeOptionMandatory(),
    )
    .addOption(eventsOption().makeOptionMandatory())
    .option("--description <text>", "for whoever reads the list")
    .action(action(async ({ client, show, appId }: AdminRun, url: string, options: CreateOptions) => {
      const { app, ...input } = options;
      const path = await pathOf(appId, app);
      show(await client.call<WebhookRow & { secret: string }>("POST", path, { url, ...input }), createdText);
    }));
  withExample(
    create,
    "deno task admin webhooks create https://example.com/holdfast --mode live --events '*' --app app_1",
  );
  const update = withApp(
    group.command("update").description("Change a webhook; what is not given stays.")
      .argument("<webhookId>", "its id").option("--url <url>", "a new address"),
  )
    .addOption(eventsOption())
    .option("--description <text>", "for whoever reads the list")
    .option("--no-description", "leave it without one")
    .addOption(new Option("--disable", "record nothing for it, and let messages wait").conflicts("enable"))
    .option("--enable", "send again, first what waits")
    .action(action(updateWebhook));
  withExample(update, "deno task admin webhooks update whk_1 --app app_1 --enable");
  const remove = withApp(group.command("delete").description("Remove a webhook, and what waits for it."))
    .argument("<webhookId>", "its id")
    .option("--yes", "do not ask")
    .action(
      action(async (run: AdminRun, id: string, { app, yes }: AppOption & { yes?: boolean }) => {
        const path = await pathOf(run.appId, app, id);
        if (yes !== true) confirmDelete(run.shell, id);
        run.show(await run.client.call("DELETE", path), () => `Removed ${safeText(id)}`);
      }),
    );
  withExample(remove, "deno task admin webhooks delete whk_1 --app app_1 --yes");
}

async function updateWebhook({ client, show, appId }: AdminRun, id: string, options: UpdateOptions) {
  const { app, disable, enable, description, ...members } = options;
  const changes = {
    ...members,
    ...description === undefined ? {} : { description: description === false ? null : description },
    ...disable === true ? { disabled: true } : enable === true ? { disabled: false } : {},
  };
  if (Object.keys(changes).length === 0) {
    throw new TaskError("Nothing to change: give what is to change (see --help)", EXIT.usage);
  }
  const path = await pathOf(appId, app, id);
  show(await client.call<WebhookRow>("PATCH", path, changes), (row) => webhookTable([row]));
}

function addSecretCommand(group: Command, action: AdminAction): void {
  const rotate = withApp(
    group.command("rotate").description(
      "Give a webhook a new secret. The old one signs for a day beside it.",
    ),
  )
    .argument("<webhookId>", "its id")
    .action(action(async ({ client, show, appId }: AdminRun, id: string, { app }: AppOption) => {
      const path = `${await pathOf(appId, app, id)}/rotate`;
      show(await client.call<{ secret: string }>("POST", path), ({ secret }) => `${ONCE}\nSecret: ${secret}`);
    }));
  withExample(rotate, "deno task admin webhooks rotate whk_1 --app app_1");
}

function addDeliveryCommands(group: Command, action: AdminAction): void {
  const ping = withApp(group.command("ping").description("Send a webhook a message that says nothing."))
    .argument("<webhookId>", "its id")
    .action(action(async ({ client, show, appId }: AdminRun, id: string, { app }: AppOption) => {
      const path = `${await pathOf(appId, app, id)}/ping`;
      show(await client.call<{ messageId: string }>("POST", path), ({ messageId }) => `Sent ${messageId}`);
    }));
  withExample(ping, "deno task admin webhooks ping whk_1 --app app_1");
  const messages = withApp(
    group.command("messages").description("A webhook's messages, newest first; what they say with --json."),
  )
    .argument("<webhookId>", "its id")
    .addOption(new Option("--status <status>", "only these").choices(["pending", "delivered", "failed"]))
    .option("--limit <n>", "how many (default: 20)", wholeNumber(1, LIMIT_MAX))
    .option("--offset <n>", "how many newer ones to pass over", wholeNumber(0, OFFSET_MAX))
    .action(action(async ({ client, show, appId }: AdminRun, id: string, options: PageOptions) => {
      const { app, ...page } = options;
      const query = new URLSearchParams(Object.entries(page).map(([name, value]) => [name, String(value)]));
      const path = `${await pathOf(appId, app, id)}/messages?${query}`;
      show(
        await client.call<{ messages: MessageRow[] }>("GET", path),
        (found) => messageTable(found.messages),
      );
    }));
  withExample(messages, "deno task admin webhooks messages whk_1 --app app_1 --status failed");
  const redeliver = withApp(group.command("redeliver").description("Attempt a message once more, now."))
    .argument("<webhookId>", "its webhook")
    .argument("<messageId>", "its id")
    .action(
      action(async ({ client, show, appId }: AdminRun, id: string, messageId: string, { app }: AppOption) => {
        const path = `${await pathOf(appId, app, id)}/messages/${encodeURIComponent(messageId)}/redeliver`;
        show(await client.call<MessageRow>("POST", path), (row) => messageTable([row]));
      }),
    );
  withExample(redeliver, "deno task admin webhooks redeliver whk_1 whm_1 --app app_1");
}

function eventsOption(): Option {
  return new Option("--events <list>", 'types, prefixes that end in ".*", or "*", with commas between them')
    .argParser((text) => text.split(",").map((event) => event.trim()));
}

async function pathOf(appId: AdminRun["appId"], app: string | undefined, id?: string): Promise<string> {
  const path = `/apps/${encodeURIComponent(await appId(app))}/webhooks`;
  return id === undefined ? path : `${path}/${encodeURIComponent(id)}`;
}

/** Without a terminal there is nobody to ask, so a script that forgot `--yes` removes nothing. */
function confirmDelete(shell: Shell, id: string): void {
  if (!shell.isInteractive) {
    throw new TaskError("Removing asks on a terminal, and there is none: give --yes", EXIT.usage);
  }
  const answer = shell.ask(`Remove ${safeText(id)}? Messages that wait are never sent. Type yes: `);
  if (answer.toLowerCase() !== "yes") throw new TaskError("Nothing was removed", EXIT.refused);
}

function createdText({ secret, ...row }: WebhookRow & { readonly secret: string }): string {
  return [webhookTable([row]), "", ONCE, `Secret: ${secret}`].join("\n");
}

function webhookTable(rows: readonly WebhookRow[]): string {
  return renderTable(
    ["WEBHOOK", "MODE", "URL", "EVENTS", "STATE", "PENDING", "LAST SUCCESS", "FAILING SINCE", "DESCRIPTION"],
    rows.map((row) => [
      row.webhookId,
      row.mode,
      row.url,
      row.events.join(", "),
      row.disabled ? "disabled" : "enabled",
      row.pending,
      row.lastSuccessAt,
      row.failingSince,
      row.description,
    ]),
  );
}

function messageTable(rows: readonly MessageRow[]): string {
  return renderTable(
    ["MESSAGE", "TYPE", "STATUS", "ATTEMPTS", "NEXT ATTEMPT", "LAST STATUS", "LAST ERROR", "CREATED"],
    rows.map((row) => [
      row.messageId,
      row.type,
      row.status,
      row.attempts,
      row.nextAttemptAt,
      row.lastStatus === null ? null : String(row.lastStatus),
      row.lastError,
      row.createdAt,
    ]),
  );
}
