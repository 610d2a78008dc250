// The commands of `deno task admin` about webhook endpoints, their secrets and their messages.

import type { AnswerOf } from "../../routes/contract/definition.ts";
import {
  changeWebhook,
  createWebhook,
  deleteWebhook,
  listAttempts,
  listMessages,
  listWebhooks,
  pingWebhook,
  redeliverMessage,
  redeliverMessages,
  rotateWebhookSecret,
} from "../../routes/contract/webhooks.ts";
import { commandOf, type Groups } from "./admin_call.ts";
import { ONCE } from "./admin_registry.ts";
import { type Columns, safeText, tableOf } from "./table.ts";

const WEBHOOK: Columns<AnswerOf<typeof changeWebhook>> = [
  "webhookId",
  "mode",
  "url",
  "events",
  ["STATE", ({ disabled }) => disabled ? "disabled" : "enabled"],
  "pending",
  "lastSuccessAt",
  "failingSince",
  "description",
];
const MESSAGE: Columns<AnswerOf<typeof redeliverMessage>> = [
  "messageId",
  "type",
  "status",
  "attempts",
  "nextAttemptAt",
  "lastStatus",
  "lastError",
  "createdAt",
];

/** The group of commands. */
export const WEBHOOK_GROUP: Groups[string] = ["Manage webhook endpoints.", [
  commandOf("list", listWebhooks, WEBHOOK, "admin webhooks list --app app_1"),
  commandOf(
    "create",
    createWebhook,
    (row) => [tableOf(WEBHOOK, [row]), "", ONCE, `Secret: ${row.secret}`].join("\n"),
    "admin webhooks create https://example.com/holdfast --mode live --events '*' --app app_1",
    { words: "Create a webhook endpoint. Its secret is shown once.", args: ["url"] },
  ),
  commandOf("update", changeWebhook, WEBHOOK, "admin webhooks update whk_1 --app app_1 --enable", {
    words: "Change a webhook endpoint; omitted fields are unchanged.",
    flags: {
      description: [
        ["--description <text>", "a note for people who read the list"],
        ["--no-description", "remove the description"],
      ],
      disabled: [
        ["--disable", "record no new messages, and keep pending ones", true],
        ["--enable", "send messages again, pending ones first", false],
      ],
    },
  }),
  commandOf(
    "delete",
    deleteWebhook,
    (_, { webhookId }) => `Removed ${safeText(String(webhookId))}`,
    "admin webhooks delete whk_1 --app app_1 --yes",
    { confirms: "Pending messages are never sent." },
  ),
  commandOf(
    "rotate",
    rotateWebhookSecret,
    ({ secret }) => `${ONCE}\nSecret: ${secret}`,
    "admin webhooks rotate whk_1 --app app_1",
  ),
  commandOf(
    "ping",
    pingWebhook,
    ({ messageId }) => `Sent ${messageId}`,
    "admin webhooks ping whk_1 --app app_1",
    { words: "Send a test event to a webhook endpoint." },
  ),
  commandOf(
    "messages",
    listMessages,
    ({ messages }) => tableOf(MESSAGE, messages),
    "admin webhooks messages whk_1 --app app_1 --status failed",
  ),
  commandOf("redeliver", redeliverMessage, MESSAGE, "admin webhooks redeliver whk_1 whm_1 --app app_1"),
  commandOf(
    "attempts",
    listAttempts,
    ["at", "status", "error", "tookMs", ["ANSWER", ({ answer }) => (answer ?? "").slice(0, 80)]],
    "admin webhooks attempts whk_1 whm_1 --app app_1",
  ),
  commandOf(
    "redeliver-all",
    redeliverMessages,
    ({ messages }) => `${messages} messages are sent again`,
    "admin webhooks redeliver-all whk_1 --status failed --app app_1",
  ),
]];
