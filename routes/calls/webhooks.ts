// The admin API of webhooks: a customer's addresses, their secrets, and what becomes of the messages. beyond.md,
// section 3, "Admin API".

import { z } from "zod";
import type { Clock } from "../../src/process/clock.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";
import {
  type DeliveriesWorld,
  ping,
  readMessages,
  redeliver,
  type WebhookStanding,
  withStandings,
} from "../../src/webhooks/deliveries.ts";
import type { App, Registry } from "../../src/tenant/registry.ts";
import type { Webhook } from "../../src/storage/rows/registry_rows.ts";
import {
  changeWebhook,
  createWebhook,
  removeWebhook,
  rotateWebhookSecret,
  type WebhooksWorld,
} from "../../src/webhooks/endpoints.ts";
import { aboutApp, appOf, appPath, unknown } from "./admin.ts";
import { success } from "../http/answer.ts";
import { keylessEndpointsOn } from "../http/endpoint.ts";
import type { KeylessEndpoint } from "../http/endpoint_types.ts";
import { nothing } from "../contract/schemas/answers.ts";
import { timeText, timeTextOrNull } from "../contract/schemas/fields.ts";
import {
  messageAnswer,
  messagesAnswer,
  messagesQuery,
  newSecretAnswer,
  newWebhookAnswer,
  pingAnswer,
  webhookAnswer,
  webhookInput,
  webhookPatch,
} from "../contract/schemas/webhooks.ts";

type World = WebhooksWorld & DeliveriesWorld & {
  readonly registry: Registry;
  readonly clock: Clock;
};

const endpoint = keylessEndpointsOn<World>();

const webhookPath = { ...appPath, webhookId: z.string() };
const messagePath = { ...webhookPath, messageId: z.string() };

const WEBHOOK_CHANGES: readonly KeylessEndpoint<World>[] = [
  endpoint({
    method: "GET",
    access: "admin",
    path: "/admin/v1/apps/:appId/webhooks",
    input: z.object(appPath),
    about: aboutApp,
    doc: {
      id: "listWebhooks",
      tag: "Webhooks",
      summary: "The webhooks of an app, oldest first, and how their deliveries go",
      answer: z.array(webhookAnswer),
      errors: ["not_found"],
    },
    handle: async ({ world, input }) => {
      const rows = await withStandings(world, [...appOf(world, input.appId).webhooks.values()]);
      // Ids grow with time.
      return success(
        rows.toSorted((one, other) => one.webhookId < other.webhookId ? -1 : 1).map(showWebhook),
      );
    },
  }),
  endpoint({
    method: "POST",
    access: "admin",
    path: "/admin/v1/apps/:appId/webhooks",
    input: webhookInput.extend(appPath),
    about: aboutApp,
    doc: {
      id: "createWebhook",
      tag: "Webhooks",
      summary: "Make a webhook",
      description:
        "The secret shows once. Of what happens from then on, in its mode, the webhook is told the " +
        "types that it wants. An app has 20 webhooks at most.",
      answer: newWebhookAnswer,
      errors: ["not_found"],
    },
    handle: async ({ world, input: { appId, ...input } }) => {
      const made = await createWebhook(world, appOf(world, appId), input);
      if (!made.ok) return { ok: false, error: made.refusal };
      const { webhookId, ...shown } = showWebhook({ ...made.answer, ...NOTHING_YET });
      return success({ webhookId, secret: made.answer.secrets[0]?.secret, ...shown });
    },
  }),
  endpoint({
    method: "PATCH",
    access: "admin",
    path: "/admin/v1/apps/:appId/webhooks/:webhookId",
    input: webhookPatch.extend(webhookPath),
    about: aboutApp,
    doc: {
      id: "changeWebhook",
      tag: "Webhooks",
      summary: "Change, disable or enable a webhook",
      description:
        "A member that is left out keeps its value. While a webhook is disabled nothing is recorded " +
        "for it; what was recorded before waits, and goes out when it is enabled.",
      answer: webhookAnswer,
      errors: ["not_found"],
    },
    handle: async ({ world, input: { appId, webhookId, ...input } }) => {
      const set = Object.entries(input).filter(([, value]) => value !== undefined);
      const changed = await changeWebhook(world, appOf(world, appId), webhookId, Object.fromEntries(set));
      if (!changed.ok) return { ok: false, error: changed.refusal };
      const [row] = await withStandings(world, [changed.answer]);
      return success(showWebhook(row as WebhookStanding));
    },
  }),
  endpoint({
    method: "DELETE",
    access: "admin",
    path: "/admin/v1/apps/:appId/webhooks/:webhookId",
    input: z.object(webhookPath),
    about: aboutApp,
    doc: {
      id: "deleteWebhook",
      tag: "Webhooks",
      summary: "Remove a webhook",
      description: "Messages that wait are not sent any more, and none of its messages is listed.",
      answer: nothing,
      errors: ["not_found"],
    },
    handle: async ({ world, input: { appId, webhookId } }) => {
      const removed = await removeWebhook(world, appOf(world, appId), webhookId);
      return removed.ok ? success({}) : { ok: false, error: removed.refusal };
    },
  }),
  endpoint({
    method: "POST",
    access: "admin",
    path: "/admin/v1/apps/:appId/webhooks/:webhookId/rotate",
    input: z.object(webhookPath),
    hasNoBody: true,
    about: aboutApp,
    doc: {
      id: "rotateWebhookSecret",
      tag: "Webhooks",
      summary: "Give a webhook a new secret",
      description:
        "For 24 hours every message has a signature of each, so that nothing is refused while you " +
        "put the new one in place. Of two rotations within a day the newest two secrets sign.",
      answer: newSecretAnswer,
      errors: ["not_found"],
    },
    handle: async ({ world, input: { appId, webhookId } }) => {
      const rotated = await rotateWebhookSecret(world, appOf(world, appId), webhookId);
      if (!rotated.ok) return { ok: false, error: rotated.refusal };
      return success({ secret: rotated.answer.secrets[0]?.secret });
    },
  }),
];

const DELIVERIES: readonly KeylessEndpoint<World>[] = [
  endpoint({
    method: "POST",
    access: "admin",
    path: "/admin/v1/apps/:appId/webhooks/:webhookId/ping",
    input: z.object(webhookPath),
    hasNoBody: true,
    about: aboutApp,
    doc: {
      id: "pingWebhook",
      tag: "Webhooks",
      summary: "Send a webhook a message that says nothing",
      description: "It goes out at once, whatever types the webhook wants. A disabled one gets none.",
      answer: pingAnswer,
      errors: ["not_found"],
    },
    handle: async ({ world, input: { appId, webhookId } }) => {
      const app = appOf(world, appId);
      const pinged = await ping(world, app, webhookOf(app, webhookId));
      return pinged.ok ? success({ messageId: pinged.answer }) : { ok: false, error: pinged.refusal };
    },
  }),
  endpoint({
    method: "GET",
    access: "admin",
    path: "/admin/v1/apps/:appId/webhooks/:webhookId/messages",
    input: messagesQuery.extend(webhookPath),
    about: aboutApp,
    doc: {
      id: "listMessages",
      tag: "Webhooks",
      summary: "A page of a webhook's messages, newest first",
      description:
        "What was delivered is kept for 7 days, what failed for 30. Each message is of a type that " +
        "stands under the webhooks of this document.",
      answer: messagesAnswer,
      errors: ["not_found"],
    },
    handle: async ({ world, input: { appId, webhookId, status, limit, offset } }) => {
      const webhook = webhookOf(appOf(world, appId), webhookId);
      const rows = await readMessages(world, {
        webhookId,
        status: status ?? null,
        limit: limit ?? REQUEST_LIMITS.feedLimitDefault,
        offset: offset ?? 0,
      });
      const now = world.clock.now();
      return success({ messages: rows.map((row) => showMessage(row, webhook, now)) });
    },
  }),
  endpoint({
    method: "POST",
    access: "admin",
    path: "/admin/v1/apps/:appId/webhooks/:webhookId/messages/:messageId/redeliver",
    input: z.object(messagePath),
    hasNoBody: true,
    about: aboutApp,
    isLong: true,
    doc: {
      id: "redeliverMessage",
      tag: "Webhooks",
      summary: "Attempt a message once more, now",
      description:
        "Whatever became of it before, with the same webhook-id, and without waiting for earlier messages of " +
        "the user. Answers when the attempt has ended. If it failed, a pending message keeps its schedule.",
      answer: messageAnswer,
      errors: ["not_found"],
    },
    handle: async ({ world, input: { appId, webhookId, messageId } }) => {
      const webhook = webhookOf(appOf(world, appId), webhookId);
      const row = await redeliver(world, webhook, messageId);
      return success(showMessage(row ?? unknown("message"), webhook, world.clock.now()));
    },
  }),
];

/** Every endpoint of webhooks. */
export const WEBHOOKS: readonly KeylessEndpoint<World>[] = [...WEBHOOK_CHANGES, ...DELIVERIES];

function webhookOf(app: App, webhookId: string): Webhook {
  return app.webhooks.get(webhookId) ?? unknown("webhook");
}

/** How the deliveries of a new webhook stand. */
const NOTHING_YET = { lastSuccessAt: null, failingSince: null, pending: 0 } as const;

function showWebhook(row: Omit<WebhookStanding, "secrets">) {
  const { webhookId, url, mode, events, description, disabled, pending } = row;
  return {
    webhookId,
    url,
    mode,
    events,
    description,
    disabled,
    createdAt: timeText(row.createdAt),
    lastSuccessAt: timeTextOrNull(row.lastSuccessAt),
    failingSince: timeTextOrNull(row.failingSince),
    pending,
  };
}

type MessageRow = Awaited<ReturnType<typeof readMessages>>[number];

function showMessage(row: MessageRow, { disabled }: Webhook, now: number) {
  const { messageId, type, status, attempts, nextAttemptAt, lastStatus, lastError, createdAt, body } = row;
  const isDue = status === "pending" && !disabled;
  return {
    messageId,
    type,
    status,
    attempts,
    // What is due already, or waits for an earlier message of the user, is told as due now.
    nextAttemptAt: isDue ? timeText(Math.max(nextAttemptAt, now)) : null,
    lastStatus,
    lastError,
    createdAt: timeText(createdAt),
    data: JSON.parse(body).data,
  };
}
