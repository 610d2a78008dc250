// Webhook messages for their sender: which may be sent next, and the outcomes of attempts. The messages of one user to one
// webhook are a lane: they are sent in order, the earliest pending one first. The ids of a merged user share a lane, in
// which messages recorded for the alias precede all messages after the merge.
//
// A webhook may have millions of pending messages, so every read is bounded. Lanes are read in the order of an index, and
// messages that failed before by the time of their next attempt.

import type { UserKey } from "../../domain/values/ids.ts";
import type { WebhookMessage } from "../../domain/state/message.ts";
import type { Millis } from "../../domain/values/period.ts";
import { WEBHOOK_MESSAGES } from "../rows/message_rows.ts";
import { SENDER_LIMITS } from "../../process/webhook_limits.ts";
import { arrayText, type Session } from "../database.ts";
import type { AttemptRecord, MessageStatus } from "./webhook_store.ts";

type Reader = Pick<Session, "query">;

/** A message with what its sender needs. */
export interface StoredMessage {
  readonly id: string;
  readonly webhookId: string;
  /** Null for a message without an order. */
  readonly userKey: UserKey | null;
  readonly realm: number;
  readonly body: string;
  readonly status: MessageStatus;
  /** Failed attempts of the schedule. */
  readonly failures: number;
  /** Real time; 0 for at once. */
  readonly nextAttemptAt: Millis;
}

/** The outcome of an attempt. Values of the schedule that are null stay unchanged. */
export interface AttemptOutcome {
  readonly messageId: string;
  /** Null if another attempt follows, or if the status does not change. */
  readonly status: Exclude<MessageStatus, "pending"> | null;
  readonly failures: number | null;
  readonly nextAttemptAt: Millis | null;
  readonly lastStatus: number | null;
  readonly lastError: string | null;
  /** On the realm's clock. */
  readonly endedAt: Millis;
  readonly attempt: AttemptRecord;
}

const COLUMNS =
  `m.id, m.webhook_id as "webhookId", m.user_key as "userKey", m.realm, m.body, m.status, m.failures,
  m.next_attempt_at_ms as "nextAttemptAt"`;

/** Lists users with pending messages to a webhook, in the order of their keys, after a key. */
export async function listLanes(
  reader: Reader,
  webhookId: string,
  after: UserKey,
  limit: number,
): Promise<UserKey[]> {
  const next = (cursor: string) =>
    `select m.user_key from webhook_messages m
     where m.webhook_id = $1 and m.status = 'pending' and m.user_key > ${cursor} order by m.user_key limit 1`;
  const rows = await reader.query<{ key: UserKey }>(
    `with recursive lanes(user_key, place) as (
       (select user_key, 1 from (${next("$2::bigint")}) as first)
       union all
       select (${
      next("l.user_key")
    }), l.place + 1 from lanes l where l.user_key is not null and l.place < $3::int
     ) select user_key as key from lanes where user_key is not null`,
    [webhookId, after, limit],
  );
  return rows.map(({ key }) => key);
}

/** Reads the earliest pending message in the lane of each of some users. */
export function headsOf(
  reader: Reader,
  webhookId: string,
  users: readonly UserKey[],
): Promise<StoredMessage[]> {
  return reader.query<StoredMessage>(
    `with lanes as (
       select distinct coalesce(u.merged_into, u.key) as key
       from unnest($2::text::bigint[]) as asked(key) join users u on u.key = asked.key
     )
     select head.* from lanes cross join lateral (
       select first.* from (
         select lanes.key union all select a.key from users a where a.merged_into = lanes.key
       ) as owner(key) cross join lateral (
         select ${COLUMNS} from webhook_messages m
         where m.webhook_id = $1 and m.user_key = owner.key and m.status = 'pending' order by m.id limit 1
       ) as first order by first.id limit 1
     ) as head order by head.id`,
    [webhookId, arrayText(users)],
  );
}

/** Lists pending messages without an order, in the order of their ids, after an id. */
export function listLoose(
  reader: Reader,
  webhookId: string,
  after: string,
  limit: number,
): Promise<StoredMessage[]> {
  return reader.query<StoredMessage>(
    `select ${COLUMNS} from webhook_messages m
     where m.webhook_id = $1 and m.user_key is null and m.status = 'pending' and m.id > $2
     order by m.id limit $3::int`,
    [webhookId, after, limit],
  );
}

/**
 * Lists messages that failed before, by the times of their next attempts. Each was the first of its lane when it was
 * tried, and still is: later messages follow it.
 */
export function listRetries(reader: Reader, webhookId: string, limit: number): Promise<StoredMessage[]> {
  return reader.query<StoredMessage>(
    `select ${COLUMNS} from webhook_messages m
     where m.webhook_id = $1 and m.status = 'pending' and m.failures > 0
     order by m.next_attempt_at_ms limit $2::int`,
    [webhookId, limit],
  );
}

/** Finds messages of any status. */
export function findMessages(reader: Reader, ids: readonly string[]): Promise<StoredMessage[]> {
  return reader.query<StoredMessage>(
    `select ${COLUMNS} from webhook_messages m where m.id = any($1::text::text[])`,
    [arrayText(ids)],
  );
}

/** Makes retries due at once; returns how many, fewer than the limit when none are left. */
export async function hurryRetries(
  session: Session,
  webhookId: string,
  now: Millis,
  limit: number,
): Promise<number> {
  const rows = await session.query(
    `update webhook_messages set next_attempt_at_ms = $2::bigint where id = any(array(
       select id from webhook_messages
       where webhook_id = $1 and status = 'pending' and failures > 0 and next_attempt_at_ms > $2::bigint
       order by next_attempt_at_ms limit $3::int for update skip locked)) returning 1`,
    [webhookId, now, limit],
  );
  return rows.length;
}

/**
 * Makes messages due at once that were given up, with `isPendingToo` also those that wait for a retry: each has its whole
 * schedule again, in the order of its lane. Returns how many, fewer than the limit when none are left.
 */
export async function sendAgain(
  session: Session,
  webhookId: string,
  isPendingToo: boolean,
  now: Millis,
  limit: number,
): Promise<number> {
  const rows = await session.query(
    `update webhook_messages set status = 'pending', ended_at_ms = null, next_attempt_at_ms = $2::bigint,
       failures = case when status = 'failed' then 0 else failures end
     where id = any(array(
       select id from webhook_messages where webhook_id = $1 and status <> 'delivered' and attempts > 0
         and (status = 'failed' or $4::boolean and next_attempt_at_ms > $2::bigint)
       order by id desc limit $3::int for update skip locked)) returning 1`,
    [webhookId, now, limit, isPendingToo],
  );
  return rows.length;
}

/** Records messages outside of a turn, in the transaction of the change that they report. */
export async function insertMessages(session: Session, messages: readonly WebhookMessage[]): Promise<void> {
  for (const message of messages) {
    await session.query(
      `insert into webhook_messages (${WEBHOOK_MESSAGES.columns.join(", ")})
       values ($1, $2, $3::bigint, $4::int, $5, $6, $7::bigint, $8::bigint)`,
      [
        message.id,
        message.webhookId,
        message.userKey,
        message.realm,
        message.type,
        message.body,
        message.createdAt,
        message.causedBy,
      ],
    );
  }
}

/** Writes outcomes of attempts. A delivered message stays delivered; removed messages are not restored. */
export async function saveOutcomes(session: Session, outcomes: readonly AttemptOutcome[]): Promise<void> {
  const ids = arrayText(outcomes.map(({ messageId }) => messageId));
  // An erasure locks messages in the same order, so that the two cannot deadlock.
  await session.query(
    "select 1 from webhook_messages where id = any($1::text::text[]) order by id for update",
    [
      ids,
    ],
  );
  await session.query(
    `update webhook_messages m set attempts = m.attempts + 1,
       status = case when ${ENDS} then o.status else m.status end,
       ended_at_ms = case when ${ENDS} then o.ended_at_ms else m.ended_at_ms end,
       failures = case when m.status = 'pending' then coalesce(o.failures, m.failures) else m.failures end,
       next_attempt_at_ms = case when m.status = 'pending'
         then coalesce(o.next_attempt_at_ms, m.next_attempt_at_ms) else m.next_attempt_at_ms end,
       last_status = o.last_status, last_error = o.last_error,
       recent_attempts = (array[o.attempt] || m.recent_attempts)[1:${SENDER_LIMITS.attemptsKept}]
     from unnest($1::text::text[], $2::text::text[], $3::text::int[], $4::text::bigint[], $5::text::int[],
       $6::text::text[], $7::text::bigint[], $8::text::text[])
       as o(id, status, failures, next_attempt_at_ms, last_status, last_error, ended_at_ms, attempt)
     where m.id = o.id`,
    [
      ids,
      arrayText(outcomes.map(({ status }) => status)),
      arrayText(outcomes.map(({ failures }) => failures)),
      arrayText(outcomes.map(({ nextAttemptAt }) => nextAttemptAt)),
      arrayText(outcomes.map(({ lastStatus }) => lastStatus)),
      arrayText(outcomes.map(({ lastError }) => lastError)),
      arrayText(outcomes.map(({ endedAt }) => endedAt)),
      arrayText(outcomes.map(({ attempt }) => JSON.stringify(attempt))),
    ],
  );
}

/** SQL of whether an outcome ends its message: once only, except that a redelivery may end a message that was given up. */
const ENDS =
  "(m.status = 'pending' and o.status is not null or m.status = 'failed' and o.status = 'delivered')";

/** The health of a webhook after its last attempts. */
export interface WebhookHealth {
  readonly webhookId: string;
  /** Real time; null if none succeeded. */
  readonly succeededAt: Millis | null;
  /** Real time; null if none failed after the last success. */
  readonly failedAt: Millis | null;
}

/** Stores the health of webhooks; returns since when each has only failed. */
export function saveHealth(
  session: Session,
  health: readonly WebhookHealth[],
): Promise<{ readonly webhookId: string; readonly failingSince: Millis | null }[]> {
  return session.query(
    `update webhooks w set last_success_at_ms = greatest(w.last_success_at_ms, h.succeeded_at_ms),
       failing_since_ms = case when h.succeeded_at_ms is null
         then coalesce(w.failing_since_ms, h.failed_at_ms) else h.failed_at_ms end
     from unnest($1::text::text[], $2::text::bigint[], $3::text::bigint[])
       as h(id, succeeded_at_ms, failed_at_ms)
     where w.id = h.id returning w.id as "webhookId", w.failing_since_ms as "failingSince"`,
    [
      arrayText(health.map(({ webhookId }) => webhookId)),
      arrayText(health.map(({ succeededAt }) => succeededAt)),
      arrayText(health.map(({ failedAt }) => failedAt)),
    ],
  );
}

/** The pending messages of a webhook. */
interface Backlog {
  readonly webhookId: string;
  /** Counted up to a limit. */
  readonly pending: number;
  /** When the oldest was recorded, on its realm's clock; null if none is pending. */
  readonly oldestAt: Millis | null;
}

/** Reads the backlogs of some webhooks. */
export function readBacklogs(
  reader: Reader,
  webhookIds: readonly string[],
  limit: number,
): Promise<Backlog[]> {
  return reader.query<Backlog>(
    `select w.id as "webhookId",
       (select count(*)::int from (
          select 1 from webhook_messages m where m.webhook_id = w.id and m.status = 'pending' limit $2::int
        ) as counted) as pending,
       (select m.created_at_ms from webhook_messages m
        where m.webhook_id = w.id and m.status = 'pending' order by m.id limit 1) as "oldestAt"
     from unnest($1::text::text[]) as w(id)`,
    [arrayText(webhookIds), limit],
  );
}
