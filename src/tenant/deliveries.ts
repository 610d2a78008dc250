// How deliveries to webhooks go, as the administrator sees them: what waits, and what became of each message.
// Everything that was recorded before a call is in its answer. beyond.md, section 3, "Admin API".

import type { Term } from "../../actors/term.ts";
import type { Database } from "../storage/database.ts";
import {
  type DeliveryStanding,
  listMessages,
  type MessagePage,
  type MessageRecord,
  readStandings,
} from "../storage/stores/webhook_store.ts";
import type { Webhook } from "./registry.ts";

/** What these calls work on. */
export interface DeliveriesWorld {
  readonly term: Pick<Term, "flush">;
  readonly database: Pick<Database, "query">;
}

/** A webhook with how its deliveries stand. */
export type WebhookStanding = Webhook & DeliveryStanding;

/** Webhooks with how their deliveries stand, in the same order. */
export async function withStandings(
  { term, database }: DeliveriesWorld,
  webhooks: readonly Webhook[],
): Promise<WebhookStanding[]> {
  await term.flush();
  const rows = await readStandings(database, webhooks.map(({ webhookId }) => webhookId));
  const byId = new Map(rows.map((row) => [row.webhookId, row]));
  return webhooks.map((webhook) => ({ ...webhook, ...byId.get(webhook.webhookId) as DeliveryStanding }));
}

/** A page of a webhook's messages, newest first. */
export async function readMessages(
  { term, database }: DeliveriesWorld,
  page: MessagePage,
): Promise<MessageRecord[]> {
  await term.flush();
  return await listMessages(database, page);
}
