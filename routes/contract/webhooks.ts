// Webhook endpoints of an app, their secrets and the deliveries to them, with the admin token.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { appPath, mode, nameOf, SHOWN_AS, textOf, wholeNumber } from "./fields.ts";
import { nothing, time } from "./records.ts";
import { MESSAGES } from "./webhook_messages.ts";
import { isEventPattern } from "../../src/domain/state/message.ts";
import { REQUEST_LIMITS, WEBHOOK_LIMITS } from "../../src/process/limits.ts";

const webhookPath = { ...appPath, webhookId: z.string() };
const messagePath = { ...webhookPath, messageId: z.string() };

const url = nameOf(WEBHOOK_LIMITS.urlLengthMax)
  .describe("An https URL without user and password, whose host is no private address");

const pattern = z.string().refine(
  isEventPattern,
  'must be a type of message, a prefix of types such as "credits.*", or "*"',
).register(SHOWN_AS, { type: "string", examples: ["usage.threshold_reached", "credits.*", "*"] });

const events = z.array(pattern).min(1).max(WEBHOOK_LIMITS.eventsMax)
  .transform((patterns) => [...new Set(patterns)])
  .describe('Types that it is told, prefixes of types that end in ".*", or "*" for all');

const description = textOf(WEBHOOK_LIMITS.descriptionLengthMax).nullish();

/** What makes a webhook. */
const webhookInput = z.object({
  url,
  mode,
  events,
  description: description.transform((text) => text ?? null),
});

/** What changes a webhook. */
const webhookPatch = z.object({
  url: url.nullish().transform((text) => text ?? undefined),
  events: events.nullish().transform((patterns) => patterns ?? undefined),
  description: description.describe("null: none"),
  disabled: z.boolean().nullish().transform((value) => value ?? undefined)
    .describe("Whether messages wait, and no new ones are recorded"),
});

const status = z.enum(["pending", "delivered", "failed"]);

/** Which messages of a webhook a page shows. */
const messagesQuery = z.object({
  status: status.optional(),
  limit: wholeNumber(1, REQUEST_LIMITS.feedLimitMax).optional(),
  offset: wholeNumber(0, REQUEST_LIMITS.feedOffsetMax).optional(),
});

const shownWebhook = {
  url: z.string(),
  mode,
  events: z.array(z.string()),
  description: z.string().nullable(),
  disabled: z.boolean().describe("By you, by an answer of 410, or after five days of nothing but failures"),
  createdAt: time,
  lastSuccessAt: time.nullable().describe("null before the first delivery"),
  failingSince: time.nullable().describe("The first failure since the last delivery; null for none"),
  pending: z.int().min(0).describe(
    `Messages that wait; ${WEBHOOK_LIMITS.pendingCountMax} stands for that many or more`,
  ),
};

const webhookAnswer = z.strictObject({ webhookId: z.string(), ...shownWebhook })
  .meta({ id: "Webhook" });

const secret = z.string().describe('Signs messages; shown once: "whsec_" and the base64 of 32 bytes');

const newWebhookAnswer = z.strictObject({ webhookId: z.string(), secret, ...shownWebhook });

const newSecretAnswer = z.strictObject({ secret });

const pingAnswer = z.strictObject({ messageId: z.string() });

const messageAnswer = z.strictObject({
  messageId: z.string().describe("The webhook-id of every attempt"),
  type: z.string(),
  status,
  attempts: z.int().min(0),
  nextAttemptAt: time.nullable().describe(
    "The earliest time of the next attempt; null where there is none: it ended, or the webhook is disabled",
  ),
  lastStatus: z.int().nullable().describe("The HTTP status of the last answer; null where none came"),
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
  summary: "The webhooks of an app, oldest first, and how their deliveries go",
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
  summary: "Make a webhook",
  description: "The secret shows once. Of what happens from then on, in its mode, the webhook is told the " +
    "types that it wants. An app has 20 webhooks at most.",
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
  summary: "Change, disable or enable a webhook",
  description: "A member that is left out keeps its value. While a webhook is disabled nothing is recorded " +
    "for it; what was recorded before waits, and goes out when it is enabled.",
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
  summary: "Remove a webhook",
  description: "Messages that wait are not sent any more, and none of its messages is listed.",
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
  summary: "Give a webhook a new secret",
  description: "For 24 hours every message has a signature of each, so that nothing is refused while you " +
    "put the new one in place. Of two rotations within a day the newest two secrets sign.",
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
  summary: "Send a webhook a message that says nothing",
  description: "It goes out at once, whatever types the webhook wants. A disabled one gets none.",
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
  summary: "A page of a webhook's messages, newest first",
  description: "What was delivered is kept for 7 days, what failed for 30. Each message is of a type that " +
    "stands under the webhooks of this document.",
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
  summary: "Attempt a message once more, now",
  description:
    "Whatever became of it before, with the same webhook-id, and without waiting for earlier messages of " +
    "the user. Answers when the attempt has ended. If it failed, a pending message keeps its schedule.",
  answer: messageAnswer,
  errors: ["not_found"],
});
