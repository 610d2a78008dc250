// Webhook messages as decisions record them. The status and the attempts of a message are other columns of the same table,
// with defaults; only the sender writes them.

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
  causedBy: column("caused_by", { later: { since: 26, value: null } }),
});
