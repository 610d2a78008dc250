// The commands of `deno task admin` about workspaces, apps, keys and the service as a whole.

import type { Command } from "commander";
import {
  changeWorkspace,
  createApp,
  createKey,
  createWorkspace,
  getApp,
  listApps,
  listKeys,
  listWorkspaces,
  revokeKey,
  rollKey,
  rotateIdentitySecret,
} from "../../routes/contract/admin.ts";
import type { AnswerOf } from "../../routes/contract/definition.ts";
import { createReader, listReaders, removeReader } from "../../routes/contract/readers.ts";
import {
  listStores,
  moveHistory,
  showCluster,
  type splitStore,
  sweep,
} from "../../routes/contract/service.ts";
import { commandOf, type Groups } from "./admin_call.ts";
import type { AdminAction } from "./admin_run.ts";
import { addSplitCommand } from "./admin_split.ts";
import { type Columns, renderTable, safeText, tableOf } from "./table.ts";

/** Printed above a secret. */
export const ONCE = "Shown once and never again. Keep it now:";

const CAPS = ["operationCap", "aiBudgetCents", "testOperationCap", "testCreditBalanceCap"];

const WORKSPACE: Columns<AnswerOf<typeof createWorkspace>> = [
  "workspaceId",
  "name",
  ["OPERATIONS CAP", ({ operationCap }) => operationCap ?? "no limit"],
  ["AI CENTS CAP", ({ aiBudgetCents }) => aiBudgetCents ?? "no limit"],
  ["TEST OPERATIONS CAP", ({ testOperationCap }) => testOperationCap ?? "no limit"],
  ["TEST CREDITS CAP", ({ testCreditBalanceCap }) => testCreditBalanceCap ?? "no limit"],
];
const USED_WORKSPACE: Columns<AnswerOf<typeof listWorkspaces>[number]> = [
  ...WORKSPACE,
  "operationsUsed",
  "testOperationsUsed",
  ["AI CENTS SPENT", "aiSpentCents"],
];
const APP: Columns<AnswerOf<typeof getApp>> = ["appId", "name", "workspaceId", "catalogVersion", "createdAt"];
const KEY: Columns<AnswerOf<typeof revokeKey>> = [
  ["KEY ID", "keyId"],
  ["PREFIX", ({ prefix }) => `${prefix}...`],
  "name",
  "class",
  "mode",
  "createdAt",
  "createdBy",
  "lastUsedAt",
  "validUntil",
  "revokedAt",
];
const NEW_KEY: Columns<AnswerOf<typeof createKey>> = [["KEY ID", "keyId"], "class", "mode", "key"];

const WORKSPACE_COMMANDS = [
  commandOf("list", listWorkspaces, USED_WORKSPACE, "admin workspaces list --json"),
  commandOf(
    "create",
    createWorkspace,
    WORKSPACE,
    'admin workspaces create "Acme" --operation-cap 1000000',
    { args: ["name"], nullable: CAPS },
  ),
  commandOf(
    "update",
    changeWorkspace,
    WORKSPACE,
    "admin workspaces update ws_1 --operation-cap none --ai-budget-cents 5000",
    { words: "Change a workspace; omitted fields are unchanged.", nullable: CAPS },
  ),
];
const APP_COMMANDS = [
  commandOf("list", listApps, APP, "admin apps list --json"),
  commandOf("create", createApp, createdAppText, "admin apps create Shop --workspace ws_1", {
    words: "Create an app with its four keys, which are shown once.",
    args: ["name"],
    flags: { workspaceId: [["--workspace <id>", "its workspace (default: the first one)"]] },
  }),
  commandOf("show", getApp, APP, "admin apps show app_1", { args: ["appId"] }),
  commandOf(
    "rotate-identity-secret",
    rotateIdentitySecret,
    rotatedText,
    "admin apps rotate-identity-secret app_1 --keep-old-seconds 3600",
    { args: ["appId"] },
  ),
];
const KEY_COMMANDS = [
  commandOf("list", listKeys, KEY, "admin keys list --app app_1"),
  commandOf(
    "create",
    createKey,
    (key) => `${ONCE}\n${tableOf(NEW_KEY, [key])}`,
    "admin keys create --app app_1 --class secret --mode live",
    { words: "Create a key, which is shown once." },
  ),
  commandOf(
    "roll",
    rollKey,
    (key) => `${ONCE}\n${tableOf(NEW_KEY, [key])}\nThe old key is valid until ${key.oldValidUntil}.`,
    "admin keys roll key_1 --app app_1 --keep-old-seconds 3600",
    { words: "Create a key in place of another one, which stays valid for a while." },
  ),
  commandOf("revoke", revokeKey, KEY, "admin keys revoke key_1 --app app_1 --yes", {
    confirms: "Its callers are refused at once.",
  }),
];
const STORE: Columns<AnswerOf<typeof listStores>[number]> = [
  ["STORE", ({ store }) => store ?? "the only one"],
  "state",
  ["WORKSPACES", "workspaces"],
  ["PROCESSES", ({ cluster }) => cluster?.members.filter(({ hasEnded }) => !hasEnded).length ?? null],
  ["CELLS WITHOUT OWNER", ({ cluster }) => cluster?.cellsWithoutOwner.length ?? null],
  ["SPLIT", ({ splits }) => splits.map(splitText).join("; ") || null],
];
function splitText({ to, state, cells, left }: AnswerOf<typeof splitStore>): string {
  if (state === "open") return `${cells.length} cells to ${to}`;
  return `${cells.length} of ${cells.length + left.length} cells to ${to}, which does not serve yet`;
}

const READER_COMMANDS = [
  commandOf("list", listReaders, ["name"], "admin reader list"),
  commandOf("create", createReader, ({ url }) => `${ONCE}\n${url}`, "admin reader create", {
    words: "Create a role that may read the views of the schema holdfast. Its address is shown once.",
  }),
  commandOf("remove", removeReader, ["name"], "admin reader remove holdfast_reader_1a2b3c4d --yes", {
    confirms: "Its connections end at once.",
  }),
];

/** The groups with their commands. */
export const REGISTRY_GROUPS: Groups = {
  workspaces: ["Manage owners of apps, with their monthly caps.", WORKSPACE_COMMANDS],
  apps: ["Manage apps: each has its own keys, catalog and users.", APP_COMMANDS],
  keys: ["Manage the API keys of an app.", KEY_COMMANDS],
  reader: ["Manage database roles for tools that only read.", READER_COMMANDS],
};

/** Commands about the service as a whole. */
export const SERVICE_COMMANDS = [
  commandOf("sweep", sweep, countsText, "admin sweep --json", {
    words: "Run every sweep of the service now, to its end.",
  }),
  commandOf("move-history", moveHistory, countsText, "move-history"),
  commandOf("cluster", showCluster, clusterText, "admin cluster --json"),
  (program: Command, action: AdminAction) => {
    commandOf("stores", listStores, STORE, "admin stores")(program, action);
    addSplitCommand(program.commands.at(-1) as Command, action);
  },
];

function createdAppText({ appId, workspaceId, identitySecret, keys }: AnswerOf<typeof createApp>): string {
  return [
    `App ${appId} in workspace ${workspaceId}`,
    "",
    ONCE,
    `Identity secret: ${identitySecret}`,
    tableOf(NEW_KEY, keys),
  ].join("\n");
}

function rotatedText({ identitySecret, oldValidUntil }: AnswerOf<typeof rotateIdentitySecret>): string {
  const old = `Tokens signed with the old secret are valid until ${oldValidUntil}`;
  return [ONCE, `Identity secret: ${identitySecret}`, old].join("\n");
}

/** Counts by their names: "expiredReservations" is shown as "expired reservations". */
function countsText(counts: Readonly<Record<string, number>>): string {
  const words = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return renderTable(["WHAT", "COUNT"], Object.entries(counts).map(([name, count]) => [words(name), count]));
}

function clusterText(cluster: AnswerOf<typeof showCluster>): string {
  const { member, members, cellsWithoutOwner, registryVersion, troubles } = cluster;
  const table = tableOf<(typeof members)[number]>([
    ["MEMBER", "term"],
    "address",
    ["CELLS", ({ share, cells }) => share === 0 && cells.length === 0 ? "front" : String(cells.length)],
    ["VERSION", "registryVersion"],
    ["LIVED S", ({ livedSeconds }) => Math.round(livedSeconds)],
    ["SILENT S", "silentSeconds"],
    ["REACHED", ({ term, hasEnded, isReached }) => {
      if (term === member) return "answers";
      return hasEnded ? "ended" : isReached ? "yes" : "no";
    }],
  ], members);
  const wrong = troubles.flatMap(({ found, advice }) => [safeText(found), `  -> ${safeText(advice)}`]);
  const summary =
    `Version ${registryVersion} of the registry is in force; cells without an owner: ${cellsWithoutOwner.length}`;
  return [table, "", summary, ...wrong.length === 0 ? ["All is well."] : wrong].join("\n");
}
