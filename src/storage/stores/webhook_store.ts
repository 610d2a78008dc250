// State of webhooks outside the registry: the state of their deliveries, and pages of their messages.

import type { MessageType } from "../../domain/state/message.ts";
import type { Millis } from "../../domain/values/period.ts";
import { WEBHOOK_LIMITS } from "../../process/webhook_limits.ts";
import { arrayText, type Param, type Session } from "../database.ts";

type Reader = Pick<Session, "query">;

/** The state of a webhook's deliveries. */
export interface DeliveryState {
  readonly webhookId: string;
  /** Real time. */
  readonly lastSuccessAt: Millis | null;
  /** Real time of the first failure since the last delivery; null for none. */
  readonly failingSince: Millis | null;
  /** At most `pendingCountMax`, which means that many or more. */
  readonly pending: number;
}

/** Reads the state of the deliveries of webhooks, in no order. */
export function readDeliveryStates(
  reader: Reader,
  webhookIds: readonly string[],
): Promise<DeliveryState[]> {
  return reader.query<DeliveryState>(
    `select w.id as "webhookId", w.last_success_at_ms as "lastSuccessAt", w.failing_since_ms as "failingSince",
       (select count(*) from (
         select 1 from webhook_messages m where m.webhook_id = w.id and m.status = 'pending' limit $2::int
       ) as counted) as pending
     from webhooks w where w.id = any($1::text::text[])`,
    [arrayText(webhookIds), WEBHOOK_LIMITS.pendingCountMax],
  );
}

export type MessageStatus = "pending" | "delivered" | "failed";

/** A message with its status. */
export interface MessageRecord {
  readonly messageId: string;
  readonly type: MessageType;
  readonly status: MessageStatus;
  readonly attempts: number;
  /** Real time; 0 for at once. Meaningless if the message is not pending. */
  readonly nextAttemptAt: Millis;
  readonly lastStatus: number | null;
  readonly lastError: string | null;
  /** On the realm's clock. */
  readonly createdAt: Millis;
  readonly body: string;
}

const COLUMNS = `id as "messageId", type, status, attempts, next_attempt_at_ms as "nextAttemptAt",
  last_status as "lastStatus", last_error as "lastError", created_at_ms as "createdAt", body`;

/** Selects the messages of a page. */
export interface MessagePage {
  readonly webhookId: string;
  /** Null for any status; "failing" for those that are not delivered, with at least one failed attempt. */
  readonly status: MessageStatus | "failing" | null;
  readonly limit: number;
  readonly offset: number;
}

/** Lists a page of a webhook's messages, newest first. */
export function listMessages(reader: Reader, page: MessagePage): Promise<MessageRecord[]> {
  const { webhookId, status, limit, offset } = page;
  const params: Param[] = [webhookId, limit, offset];
  const ofStatus = status === null
    ? ""
    : status === "failing"
    ? " and status <> 'delivered' and attempts > 0"
    : ` and status = $${params.push(status)}`;
  return reader.query<MessageRecord>(
    `select ${COLUMNS} from webhook_messages where webhook_id = $1${ofStatus}
     order by id desc limit $2::int offset $3::int`,
    params,
  );
}

/** Finds a message of a webhook, or null. */
export async function findMessage(
  reader: Reader,
  webhookId: string,
  messageId: string,
): Promise<MessageRecord | null> {
  const [row] = await reader.query<MessageRecord>(
    `select ${COLUMNS} from webhook_messages where id = $1 and webhook_id = $2`,
    [messageId, webhookId],
  );
  return row ?? null;
}

/** An attempt to deliver a message. */
export interface AttemptRecord {
  /** Real time at which it began. */
  readonly at: Millis;
  /** The HTTP status; null without an answer. */
  readonly status: number | null;
  /** Null where the message was delivered. */
  readonly error: string | null;
  readonly tookMs: number;
  /** The first 1 KiB of the answer; null without one. */
  readonly answer: string | null;
}

/** Reads the newest attempts at a message of a webhook, the newest first; null for an unknown message. */
export async function listAttempts(
  reader: Reader,
  webhookId: string,
  messageId: string,
): Promise<AttemptRecord[] | null> {
  const [row] = await reader.query<{ attempts: string }>(
    `select coalesce(to_json(recent_attempts)::text, '[]') as attempts from webhook_messages
     where id = $1 and webhook_id = $2`,
    [messageId, webhookId],
  );
  return row === undefined ? null : (JSON.parse(row.attempts) as string[]).map((text) => JSON.parse(text));
}
