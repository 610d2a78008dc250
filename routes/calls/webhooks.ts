// Webhook endpoints: their settings, their secrets and the deliveries to them.

import type { Clock } from "../../src/process/clock.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";
import {
  type DeliveriesWorld,
  ping,
  readAttempts,
  readMessages,
  redeliver,
  redeliverAll,
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
import { appOf, unknown } from "./admin.ts";
import { failure, success } from "../http/answer.ts";
import { keylessEndpointsOn } from "../http/endpoint.ts";
import type { KeylessEndpoint } from "../http/endpoint_types.ts";
import type { DataOf } from "../contract/definition.ts";
import * as contract from "../contract/webhooks.ts";
import { timeText, timeTextOrNull } from "../contract/fields.ts";

type World = WebhooksWorld & DeliveriesWorld & {
  readonly registry: Registry;
  readonly clock: Clock;
};

const endpoint = keylessEndpointsOn<World>();

const WEBHOOK_CHANGES: readonly KeylessEndpoint<World>[] = [
  endpoint(contract.listWebhooks, async ({ world, input }) => {
    const rows = await withStandings(world, [...appOf(world, input.appId).webhooks.values()]);
    // Ids grow with time.
    return success(
      rows.toSorted((one, other) => one.webhookId < other.webhookId ? -1 : 1).map(showWebhook),
    );
  }),
  endpoint(contract.createWebhook, async ({ world, input: { appId, ...input } }) => {
    const made = await createWebhook(world, appOf(world, appId), input);
    if (!made.ok) return failure(made.refusal);
    const { webhookId, ...shown } = showWebhook({ ...made.answer, ...NOTHING_YET });
    return success({ webhookId, secret: newestSecret(made.answer), ...shown });
  }),
  endpoint(contract.changeWebhook, async ({ world, input: { appId, webhookId, ...input } }) => {
    const set = Object.entries(input).filter(([, value]) => value !== undefined);
    const changed = await changeWebhook(world, appOf(world, appId), webhookId, Object.fromEntries(set));
    if (!changed.ok) return failure(changed.refusal);
    const [row] = await withStandings(world, [changed.answer]);
    return success(showWebhook(row as WebhookStanding));
  }),
  endpoint(contract.deleteWebhook, async ({ world, input: { appId, webhookId } }) => {
    const removed = await removeWebhook(world, appOf(world, appId), webhookId);
    return removed.ok ? success({}) : failure(removed.refusal);
  }),
  endpoint(contract.rotateWebhookSecret, async ({ world, input: { appId, webhookId } }) => {
    const rotated = await rotateWebhookSecret(world, appOf(world, appId), webhookId);
    if (!rotated.ok) return failure(rotated.refusal);
    return success({ secret: newestSecret(rotated.answer) });
  }),
];

const DELIVERIES: readonly KeylessEndpoint<World>[] = [
  endpoint(contract.pingWebhook, async ({ world, input: { appId, webhookId } }) => {
    const app = appOf(world, appId);
    const pinged = await ping(world, app, webhookOf(app, webhookId));
    return pinged.ok ? success({ messageId: pinged.answer }) : failure(pinged.refusal);
  }),
  endpoint(contract.listMessages, async ({ world, input: { appId, webhookId, status, limit, offset } }) => {
    const webhook = webhookOf(appOf(world, appId), webhookId);
    const rows = await readMessages(world, {
      webhookId,
      status: status ?? null,
      limit: limit ?? REQUEST_LIMITS.feedLimitDefault,
      offset: offset ?? 0,
    });
    const now = world.clock.now();
    return success({ messages: rows.map((row) => showMessage(row, webhook, now)) });
  }),
  endpoint(contract.listAttempts, async ({ world, input: { appId, webhookId, messageId } }) => {
    const rows = await readAttempts(world, webhookOf(appOf(world, appId), webhookId), messageId);
    return success((rows ?? unknown("Message")).map((row) => ({ ...row, at: timeText(row.at) })));
  }),
  endpoint(contract.redeliverMessages, async ({ world, input: { appId, webhookId, status } }) => {
    const app = appOf(world, appId);
    const sent = await redeliverAll(world, app, webhookOf(app, webhookId), status);
    return sent.ok ? success({ messages: sent.answer }) : failure(sent.refusal);
  }),
  endpoint(contract.redeliverMessage, async ({ world, input: { appId, webhookId, messageId } }) => {
    const webhook = webhookOf(appOf(world, appId), webhookId);
    const row = await redeliver(world, webhook, messageId);
    return success(showMessage(row ?? unknown("Message"), webhook, world.clock.now()));
  }),
];

/** Webhook endpoints and deliveries. */
export const WEBHOOKS: readonly KeylessEndpoint<World>[] = [...WEBHOOK_CHANGES, ...DELIVERIES];

function webhookOf(app: App, webhookId: string): Webhook {
  return app.webhooks.get(webhookId) ?? unknown("Webhook");
}

/** The secret that was made last. */
function newestSecret({ secrets }: Webhook): string {
  return (secrets[0] as Webhook["secrets"][number]).secret;
}

/** The deliveries of a new webhook. */
const NOTHING_YET = { lastSuccessAt: null, failingSince: null, pending: 0 } as const;

function showWebhook(row: Omit<WebhookStanding, "secrets">): DataOf<typeof contract.changeWebhook> {
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

function showMessage(
  row: MessageRow,
  { disabled }: Webhook,
  now: number,
): DataOf<typeof contract.redeliverMessage> {
  const { messageId, type, status, attempts, nextAttemptAt, lastStatus, lastError, createdAt, body } = row;
  const isDue = status === "pending" && !disabled;
  return {
    messageId,
    type,
    status,
    attempts,
    // A message that is overdue, or waits for an earlier message of the user, is due now.
    nextAttemptAt: isDue ? timeText(Math.max(nextAttemptAt, now)) : null,
    lastStatus,
    lastError,
    createdAt: timeText(createdAt),
    data: JSON.parse(body).data,
  };
}
