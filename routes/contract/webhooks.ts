// Webhook endpoints of an app, their secrets and the deliveries to them, with the admin token.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { appPath, feedPage, mode, nameOf, SHOWN_AS, textOf } from "./fields.ts";
import { nothing, time } from "./records.ts";
import { MESSAGES } from "./webhook_messages.ts";
import { isEventPattern, MESSAGE_TYPES } from "../../src/domain/state/message.ts";
import { WEBHOOK_LIMITS } from "../../src/process/webhook_limits.ts";

const webhookPath = { ...appPath, webhookId: z.string() };
const messagePath = { ...webhookPath, messageId: z.string() };

const url = nameOf(WEBHOOK_LIMITS.urlLengthMax)
  .describe("An https URL without user and password. The host must not be a private address");

const pattern = z.string().refine(
  isEventPattern,
  `must be "*", a prefix of types such as "credits.*", or one of ${MESSAGE_TYPES.join(", ")}`,
).register(SHOWN_AS, { type: "string", examples: ["usage.threshold_reached", "credits.*", "*"] });

const events = z.array(pattern).min(1).max(WEBHOOK_LIMITS.eventsMax)
  .transform((patterns) => [...new Set(patterns)])
  .describe('Message types to send, prefixes of types that end in ".*", or "*" for all');

const description = textOf(WEBHOOK_LIMITS.descriptionLengthMax).nullish();

/** The settings of a new endpoint. */
const webhookInput = z.object({
  url,
  mode: mode.describe("Whether it receives messages about live or test users"),
  events,
  description: description.transform((text) => text ?? null).describe("A note for people who read the list"),
});

/** Changes of an endpoint. */
const webhookPatch = z.object({
  url: url.nullish().transform((text) => text ?? undefined),
  events: events.nullish().transform((patterns) => patterns ?? undefined),
  description: description.describe("null removes it"),
  disabled: z.boolean().nullish().transform((value) => value ?? undefined)
    .describe("While disabled, pending messages wait and new ones are not recorded"),
});

const status = z.enum(["pending", "delivered", "failed"]);

/** The messages of a page. */
const messagesQuery = z.object({
  status: z.enum([...status.options, "failing"]).optional().describe(
    'Only messages with this status; "failing": not delivered, and at least one attempt failed',
  ),
  ...feedPage,
});

const shownWebhook = {
  url: z.string(),
  mode,
  events: z.array(z.string()),
  description: z.string().nullable(),
  disabled: z.boolean().describe("By you, by an answer of 410, or after five days without a delivery"),
  createdAt: time,
  lastSuccessAt: time.nullable().describe("null before the first delivery"),
  failingSince: time.nullable().describe("The first failure since the last delivery; null without a failure"),
  pending: z.int().min(0).describe(
    `Pending messages; ${WEBHOOK_LIMITS.pendingCountMax} means that many or more`,
  ),
};

const webhookAnswer = z.strictObject({ webhookId: z.string(), ...shownWebhook })
  .meta({ id: "Webhook" });

const secret = z.string().describe('Signs messages; shown only once: "whsec_" and the base64 of 32 bytes');

const newWebhookAnswer = z.strictObject({ webhookId: z.string(), secret, ...shownWebhook });

const newSecretAnswer = z.strictObject({ secret });

const pingAnswer = z.strictObject({ messageId: z.string() });

const messageAnswer = z.strictObject({
  messageId: z.string().describe("The webhook-id of every attempt"),
  type: z.string(),
  status,
  attempts: z.int().min(0),
  nextAttemptAt: time.nullable().describe(
    "The earliest time of the next attempt; null after the last attempt, or while the endpoint is disabled",
  ),
  lastStatus: z.int().nullable().describe("The HTTP status of the last response; null if there was none"),
  lastError: z.string().nullable().describe("Why the last attempt failed"),
  createdAt: time,
  data: z.union([...new Set(Object.values(MESSAGES).map(({ data }) => data))])
    .describe("As in the body of the message"),
}).meta({ id: "Message" });

const messagesAnswer = z.strictObject({ messages: z.array(messageAnswer) });

/** `GET /admin/v1/apps/{appId}/webhooks` */
export const listWebhooks = defineCall({
  id: "listWebhooks",
  method: "GET",
  path: "/admin/v1/apps/:appId/webhooks",
  access: "admin",
  about: "appId",
  input: z.object(appPath),
  tag: "Webhooks",
  summary: "List the webhook endpoints of an app",
  description: "Oldest first, with the state of their deliveries.",
  answer: z.array(webhookAnswer),
  errors: ["not_found"],
});

/** `POST /admin/v1/apps/{appId}/webhooks` */
export const createWebhook = defineCall({
  id: "createWebhook",
  method: "POST",
  path: "/admin/v1/apps/:appId/webhooks",
  access: "admin",
  about: "appId",
  input: webhookInput.extend(appPath),
  tag: "Webhooks",
  summary: "Create a webhook endpoint",
  description:
    "The secret is shown only once. From then on the endpoint receives the messages of its types and " +
    "its mode. An app has at most 20 endpoints.",
  answer: newWebhookAnswer,
  errors: ["not_found"],
});

/** `PATCH /admin/v1/apps/{appId}/webhooks/{webhookId}` */
export const changeWebhook = defineCall({
  id: "changeWebhook",
  method: "PATCH",
  path: "/admin/v1/apps/:appId/webhooks/:webhookId",
  access: "admin",
  about: "appId",
  input: webhookPatch.extend(webhookPath),
  tag: "Webhooks",
  summary: "Update, disable or enable a webhook endpoint",
  description:
    "Omitted members keep their value. While an endpoint is disabled, no messages are recorded for it; " +
    "earlier messages wait, and are sent when it is enabled.",
  answer: webhookAnswer,
  errors: ["not_found"],
});

/** `DELETE /admin/v1/apps/{appId}/webhooks/{webhookId}` */
export const deleteWebhook = defineCall({
  id: "deleteWebhook",
  method: "DELETE",
  path: "/admin/v1/apps/:appId/webhooks/:webhookId",
  access: "admin",
  about: "appId",
  input: z.object(webhookPath),
  tag: "Webhooks",
  summary: "Delete a webhook endpoint",
  description:
    "Pending messages are not sent any more, and the messages of the endpoint are no longer listed.",
  answer: nothing,
  errors: ["not_found"],
});

/** `POST /admin/v1/apps/{appId}/webhooks/{webhookId}/rotate` */
export const rotateWebhookSecret = defineCall({
  id: "rotateWebhookSecret",
  method: "POST",
  path: "/admin/v1/apps/:appId/webhooks/:webhookId/rotate",
  access: "admin",
  about: "appId",
  input: z.object(webhookPath),
  hasNoBody: true,
  tag: "Webhooks",
  summary: "Rotate the secret of a webhook endpoint",
  description:
    "For 24 hours every message is signed with both secrets, so that your server can switch without " +
    "refusing a message. After two rotations within a day, the newest two secrets sign.",
  answer: newSecretAnswer,
  errors: ["not_found"],
});

/** `POST /admin/v1/apps/{appId}/webhooks/{webhookId}/ping` */
export const pingWebhook = defineCall({
  id: "pingWebhook",
  method: "POST",
  path: "/admin/v1/apps/:appId/webhooks/:webhookId/ping",
  access: "admin",
  about: "appId",
  input: z.object(webhookPath),
  hasNoBody: true,
  tag: "Webhooks",
  summary: "Send a test message",
  description: "It is sent at once, whatever types the endpoint wants. A disabled endpoint receives none.",
  answer: pingAnswer,
  errors: ["not_found"],
});

/** `GET /admin/v1/apps/{appId}/webhooks/{webhookId}/messages` */
export const listMessages = defineCall({
  id: "listMessages",
  method: "GET",
  path: "/admin/v1/apps/:appId/webhooks/:webhookId/messages",
  access: "admin",
  about: "appId",
  input: messagesQuery.extend(webhookPath),
  tag: "Webhooks",
  summary: "List the messages of a webhook endpoint",
  description:
    "Newest first. Delivered messages are kept for 7 days, failed ones for 30. The types are listed " +
    "under the webhooks of this document.",
  answer: messagesAnswer,
  errors: ["not_found"],
});

/** `POST /admin/v1/apps/{appId}/webhooks/{webhookId}/messages/{messageId}/redeliver` */
export const redeliverMessage = defineCall({
  id: "redeliverMessage",
  method: "POST",
  path: "/admin/v1/apps/:appId/webhooks/:webhookId/messages/:messageId/redeliver",
  access: "admin",
  about: "appId",
  input: z.object(messagePath),
  hasNoBody: true,
  isLong: true,
  tag: "Webhooks",
  summary: "Send a message again",
  description:
    "Attempts the message now, whatever its status, with the same webhook-id and without waiting for " +
    "earlier messages of the user. Answers when the attempt has ended. If it failed, a pending message " +
    "keeps its schedule.",
  answer: messageAnswer,
  errors: ["not_found"],
});

/** `GET /admin/v1/apps/{appId}/webhooks/{webhookId}/messages/{messageId}/attempts` */
export const listAttempts = defineCall({
  id: "listAttempts",
  method: "GET",
  path: "/admin/v1/apps/:appId/webhooks/:webhookId/messages/:messageId/attempts",
  access: "admin",
  about: "appId",
  input: z.object(messagePath),
  tag: "Webhooks",
  summary: "List the attempts to deliver a message",
  description: "The newest 20, newest first. Attempts of versions before this call are not listed.",
  answer: z.array(
    z.strictObject({
      at: time.describe("When it began, in real time"),
      status: z.int().nullable().describe("The HTTP status of the response; null if there was none"),
      error: z.string().nullable().describe("Why it failed; null if the message was delivered"),
      tookMs: z.number().describe("Milliseconds until the response, or the failure"),
      answer: z.string().nullable().describe("The first 1 KiB of the response body; null if it was empty"),
    }).meta({ id: "Attempt" }),
  ),
  errors: ["not_found"],
});

/** `POST /admin/v1/apps/{appId}/webhooks/{webhookId}/redeliver` */
export const redeliverMessages = defineCall({
  id: "redeliverMessages",
  method: "POST",
  path: "/admin/v1/apps/:appId/webhooks/:webhookId/redeliver",
  access: "admin",
  about: "appId",
  input: z.object({
    status: z.enum(["failed", "failing"]).describe(
      '"failed": messages that were given up; "failing": also those that wait for a retry',
    ),
  }).extend(webhookPath),
  isLong: true,
  tag: "Webhooks",
  summary: "Send failed messages again",
  description:
    "Makes the messages pending and due at once, each in its user's order and with its whole schedule. " +
    "Answers without waiting for the attempts. At most 10,000 messages a call, newest first.",
  answer: z.strictObject({ messages: z.int().min(0).describe("How many are sent again") }),
  errors: ["not_found"],
});
