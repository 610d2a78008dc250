// Messages of webhooks, as decisions record them. What becomes of a message afterwards, its attempts and its status, are
// columns of the same table that no decision knows: they have defaults here, and the sender writes them.

import type { WebhookMessage } from "../../domain/state/message.ts";
import { column, table } from "./columns.ts";

export const WEBHOOK_MESSAGES = table<WebhookMessage>("webhook_messages", 1, {
  id: column("id"),
  webhookId: column("webhook_id"),
  userKey: column("user_key"),
  realm: column("realm"),
  type: column("type"),
  body: column("body"),
  createdAt: column("created_at_ms"),
});
