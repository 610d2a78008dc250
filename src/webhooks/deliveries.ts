// The state of deliveries for the admin API: pending messages, the status of each message, a ping, and a retry. A call
// shows everything that was recorded before it. It runs at the owner of the app's cell, where the sender of its messages
// is.

import type { Term } from "../../actors/term.ts";
import type { IdSource } from "../domain/values/ids.ts";
import { addressed, type WebhookMessage } from "../domain/state/message.ts";
import { refusal } from "../domain/values/refusal.ts";
import { answered, refused, type Result } from "../domain/state/result.ts";
import type { Clock } from "../process/clock.ts";
import { SENDER_LIMITS } from "../process/webhook_limits.ts";
import type { Database } from "../storage/database.ts";
import type { InCell } from "../storage/nodes/cell_store.ts";
import { insertMessages, sendAgain } from "../storage/stores/message_store.ts";
import {
  type AttemptRecord,
  type DeliveryState,
  findMessage,
  listAttempts,
  listMessages,
  type MessagePage,
  type MessageRecord,
  readDeliveryStates,
} from "../storage/stores/webhook_store.ts";
import type { App } from "../tenant/registry.ts";
import type { Webhook } from "../storage/rows/registry_rows.ts";

/** What these calls use. */
export interface DeliveriesWorld {
  readonly term: Pick<Term, "flush">;
  readonly database: Pick<Database, "query">;
  readonly inCell: InCell;
  readonly ids: IdSource;
  readonly sender: {
    /** Makes one attempt at once, outside of the user's order; resolves when its outcome is in the table. */
    attemptNow(messageId: string): Promise<void>;
    /** Adds messages that may be in the table by now. */
    note(messages: readonly WebhookMessage[]): void;
    /** Looks at all messages of an endpoint again. */
    lookAnew(webhookId: string): void;
  };
  readonly clock: Clock;
}

/** A webhook endpoint with the state of its deliveries. */
export type WebhookStanding = Webhook & DeliveryState;

/** Adds the state of deliveries to webhook endpoints, in the same order. */
export async function withStandings(
  { term, database }: Pick<DeliveriesWorld, "term" | "database">,
  webhooks: readonly Webhook[],
): Promise<WebhookStanding[]> {
  await term.flush();
  const rows = await readDeliveryStates(database, webhooks.map(({ webhookId }) => webhookId));
  const byId = new Map(rows.map((row) => [row.webhookId, row]));
  return webhooks.map((webhook) => ({ ...webhook, ...byId.get(webhook.webhookId) as DeliveryState }));
}

/** Reads a page of an endpoint's messages, newest first. */
export async function readMessages(
  { term, database }: Pick<DeliveriesWorld, "term" | "database">,
  page: MessagePage,
): Promise<MessageRecord[]> {
  await term.flush();
  return await listMessages(database, page);
}

/** Records a ping and sends it at once; returns its id without waiting for the endpoint. */
export async function ping(world: DeliveriesWorld, app: App, webhook: Webhook): Promise<Result<string>> {
  if (webhook.disabled) {
    return refused(refusal("invalid_request", "The webhook is disabled: enable it before a ping"));
  }
  const message = pingFor(app, webhook, world.ids);
  try {
    await world.inCell(app.cell, (session) => insertMessages(session, [message]));
  } catch (error) {
    // When the answer of the commit was lost, the row may exist, and no other call would send it.
    world.sender.note([message]);
    throw error;
  }
  // Its outcome is stored with the message.
  void world.sender.attemptNow(message.id).catch(() => {});
  return answered(message.id);
}

/** Attempts a message again, whatever its status; null when the endpoint has no such message. */
export async function redeliver(
  { term, database, sender }: Pick<DeliveriesWorld, "term" | "database" | "sender">,
  { webhookId }: Webhook,
  messageId: string,
): Promise<MessageRecord | null> {
  await term.flush();
  if (await findMessage(database, webhookId, messageId) === null) return null;
  await sender.attemptNow(messageId);
  return await findMessage(database, webhookId, messageId);
}

/** Which messages a call sends again: those that were given up, or all that are not delivered and failed once. */
type AgainStatus = "failed" | "failing";

/** Makes messages of an endpoint pending and due at once, up to a bound; returns how many. */
export async function redeliverAll(
  { term, inCell, sender, clock }: Pick<DeliveriesWorld, "term" | "inCell" | "sender" | "clock">,
  app: App,
  { webhookId, disabled }: Webhook,
  status: AgainStatus,
): Promise<Result<number>> {
  if (disabled) {
    return refused(
      refusal("invalid_request", "The webhook is disabled: enable it, which sends pending messages"),
    );
  }
  await term.flush();
  const { hurryRows, sentAgainMax } = SENDER_LIMITS;
  const now = clock.now();
  let messages = 0;
  try {
    let some: number = hurryRows;
    while (some === hurryRows && messages < sentAgainMax) {
      some = await inCell(
        app.cell,
        (session) => sendAgain(session, webhookId, status === "failing", now, hurryRows),
      );
      messages += some;
    }
  } finally {
    sender.lookAnew(webhookId);
  }
  return answered(messages);
}

/** Reads the newest attempts at a message, the newest first; null when the endpoint has no such message. */
export function readAttempts(
  { database }: Pick<DeliveriesWorld, "database">,
  { webhookId }: Webhook,
  messageId: string,
): Promise<AttemptRecord[] | null> {
  return listAttempts(database, webhookId, messageId);
}

/** A ping has no user, and is sent whatever types the endpoint subscribed to. */
function pingFor({ record, realms }: App, { webhookId, mode }: Webhook, ids: IdSource): WebhookMessage {
  const { realm } = realms[mode];
  const now = realms[mode].now();
  const outbox = { appId: record.appId, mode, listeners: [{ webhookId, events: ["ping"] }] };
  const messages = [{ type: "ping" as const, at: now, data: {} }];
  return addressed(messages, outbox, { userKey: null, realm, now }, ids)[0] as WebhookMessage;
}
