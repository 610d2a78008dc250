// Statements of webhooks: their records, which messages may go next, and what came of attempts.

import type { Param } from "../../../src/storage/database.ts";
import type { Fields } from "../../support/memory_store.ts";
import { by, numbersOf, textsOf } from "./params.ts";
import type { Entry } from "./statements.ts";
import type { SimTables } from "./tables.ts";

const COLUMNS =
  `select m.id, m.webhook_id as "webhookId", m.user_key as "userKey", m.realm, m.body, m.status, ` +
  `m.failures, m.next_attempt_at_ms as "nextAttemptAt" from webhook_messages m`;

function read(start: string, run: (tables: SimTables, params: readonly Param[]) => Fields[]): Entry {
  return [start, { kind: "read", run }];
}

function write(start: string, run: (tables: SimTables, params: readonly Param[]) => Fields[]): Entry {
  return [start, { kind: "write", make: (params) => (tables) => run(tables, params) }];
}

/** As many rows as a statement has touched. */
function touched(rows: number): Fields[] {
  return Array.from({ length: rows }, () => ({}));
}

/** The status of a message before its first attempt; the journal has no such columns. */
const FRESH: Fields = {
  status: "pending",
  attempts: 0,
  failures: 0,
  next_attempt_at_ms: 0,
  last_status: null,
  last_error: null,
  ended_at_ms: null,
};

/** Messages in the order in which they were recorded. */
export function messagesIn(tables: SimTables): Fields[] {
  return messagesWhere(tables, () => true);
}

function messagesWhere(tables: SimTables, isWanted: (row: Fields) => boolean): Fields[] {
  return tables.list("webhook_messages", isWanted).map((row): Fields => ({ ...FRESH, ...row })).sort(
    by("id"),
  );
}

function pendingOf(tables: SimTables, webhookId: Param | undefined): Fields[] {
  return messagesWhere(
    tables,
    (row) => row.webhook_id === webhookId && (row.status ?? FRESH.status) === "pending",
  );
}

function shown(row: Fields): Fields {
  const { id, realm, body, status, failures } = row;
  return {
    ...{ id, realm, body, status, failures },
    webhookId: row.webhook_id as string,
    userKey: row.user_key as number | null,
    nextAttemptAt: row.next_attempt_at_ms as number,
  } as Fields;
}

/** The canonical user of a key; null for an unknown key. */
function canonicalOf(tables: SimTables, key: Fields[string] | undefined): number | null {
  const [user] = tables.list("users", (row) => row.key === key);
  return user === undefined ? null : (user.merged_into ?? user.key) as number;
}

/** The first pending message of each lane to a webhook, by canonical user. */
function headsIn(tables: SimTables, webhookId: Param | undefined): Map<number, Fields> {
  const heads = new Map<number, Fields>();
  for (const row of pendingOf(tables, webhookId)) {
    const lane = row.user_key === null ? null : canonicalOf(tables, row.user_key);
    if (lane !== null && !heads.has(lane)) heads.set(lane, row);
  }
  return heads;
}

const WEBHOOK_COLUMNS = [
  ...["webhookId", "appId", "mode", "url", "events", "description", "disabled", "secrets", "createdAt"],
  ...["removed", "changedIn"],
];

const RECORDS: readonly Entry[] = [
  read(
    'changed webhooks: select id as "webhookId", app_id as "appId"',
    (tables, [since]) =>
      tables.list("webhooks", ({ changedIn }) => Number(changedIn) > Number(since)).sort(by("createdAt")),
  ),
  write("write a webhook: insert into webhooks (id, app_id", (tables, params) => {
    const row = Object.fromEntries(WEBHOOK_COLUMNS.map((name, place) => [name, params[place] ?? null]));
    const [before] = tables.list("webhooks", ({ webhookId }) => webhookId === params[0]);
    const isEnabled = before?.disabled === true && row.disabled === false;
    const failingSince = isEnabled ? null : before?.failingSince ?? null;
    const createdAt = before?.createdAt ?? row.createdAt as number;
    tables.put("webhooks", String(params[0]), {
      lastSuccessAt: null,
      ...before,
      ...row,
      createdAt,
      failingSince,
    });
    return [];
  }),
  write("write statuses: update webhooks w set last_success_at_ms", (tables, [ids, succeeded, failed]) => {
    const succeededAt = textsOf(succeeded);
    const failedAt = textsOf(failed);
    return textsOf(ids).flatMap((id, place): Fields[] => {
      const [row] = tables.list("webhooks", ({ webhookId }) => webhookId === id);
      if (row === undefined) return [];
      const [success, failure] = [succeededAt, failedAt].map((list) => list[place] ?? null);
      const failureAt = failure == null ? null : Number(failure);
      const failingSince = success == null ? row.failingSince ?? failureAt : failureAt;
      const lastSuccessAt = success == null ? row.lastSuccessAt as number | null : Number(success);
      tables.update("webhooks", ({ webhookId }) => webhookId === id, { failingSince, lastSuccessAt });
      return [{ webhookId: id as string, failingSince }];
    });
  }),
];

const STANDINGS: readonly Entry[] = [
  read(
    'statuses of webhooks: select w.id as "webhookId", w.last_success_at_ms',
    (tables, [ids, limit]) =>
      tables.list("webhooks", ({ webhookId }) => textsOf(ids).includes(webhookId as string)).map((
        row,
      ): Fields => ({
        webhookId: row.webhookId as string,
        lastSuccessAt: row.lastSuccessAt as number | null,
        failingSince: row.failingSince as number | null,
        pending: Math.min(pendingOf(tables, row.webhookId as string).length, Number(limit)),
      })),
  ),
];

const LOOKS: readonly Entry[] = [
  read("pending users: with recursive lanes(user_key, place) as", (tables, [webhookId, after, limit]) => {
    const keys = pendingOf(tables, webhookId).flatMap(({ user_key: key }) =>
      key === null || Number(key) <= Number(after) ? [] : [Number(key)]
    );
    return [...new Set(keys)].sort((a, b) => a - b).slice(0, Number(limit)).map((key) => ({ key }));
  }),
  read(
    "next message of each user: with lanes as ( select distinct coalesce(u.merged_into, u.key)",
    (tables, [webhookId, users]) => {
      const heads = headsIn(tables, webhookId);
      const lanes = new Set(numbersOf(users).map((key) => canonicalOf(tables, key)));
      return [...lanes].flatMap((lane) => {
        const head = lane === null ? undefined : heads.get(lane);
        return head === undefined ? [] : [shown(head)];
      }).sort(by("id"));
    },
  ),
  read(
    `pending messages without a user: ${COLUMNS} where m.webhook_id = $1 and m.user_key is null`,
    (tables, [webhookId, after, limit]) =>
      pendingOf(tables, webhookId).filter(({ id, user_key: key }) =>
        key === null && String(id) > String(after)
      )
        .slice(0, Number(limit)).map(shown),
  ),
  read(
    `failed messages that are pending: ${COLUMNS} where m.webhook_id = $1 and m.status = 'pending' and m.failures > 0`,
    (tables, [webhookId, limit]) =>
      pendingOf(tables, webhookId).filter(({ failures }) => Number(failures) > 0)
        .sort(by("next_attempt_at_ms")).slice(0, Number(limit)).map(shown),
  ),
  read(
    `messages by id: ${COLUMNS} where m.id = any`,
    (tables, [ids]) => messagesWhere(tables, ({ id }) => textsOf(ids).includes(id as string)).map(shown),
  ),
];

const OUTCOMES: readonly Entry[] = [
  write("record a message: insert into webhook_messages (id, webhook_id", (tables, [id, ...values]) => {
    const names = ["webhook_id", "user_key", "realm", "type", "body", "created_at_ms", "caused_by"];
    const row = Object.fromEntries(names.map((name, place) => [name, values[place] ?? null]));
    tables.put("webhook_messages", String(id), { id: id as string, ...row });
    return [];
  }),
  write("lock messages: select 1 from webhook_messages where id = any", () => []),
  write(
    "write the outcome of attempts: update webhook_messages m set attempts = m.attempts + 1",
    (tables, [ids, statuses, failures, nexts, lastStatuses, lastErrors, endedAts]) => {
      const [status, failed, next, lastStatus, lastError, endedAt] = [
        ...[statuses, failures, nexts, lastStatuses, lastErrors, endedAts],
      ].map(textsOf) as [Texts, Texts, Texts, Texts, Texts, Texts];
      textsOf(ids).forEach((id, place) => {
        const [before] = messagesWhere(tables, (row) => row.id === id);
        if (before === undefined) return;
        const isPending = before.status === "pending";
        const to = status[place] ?? null;
        const ends = isPending && to !== null || before.status === "failed" && to === "delivered";
        tables.update("webhook_messages", (row) => row.id === id, {
          attempts: Number(before.attempts) + 1,
          status: ends ? to : before.status as string,
          ended_at_ms: ends ? Number(endedAt[place]) : before.ended_at_ms as number | null,
          failures: Number((isPending ? failed[place] : null) ?? before.failures),
          next_attempt_at_ms: Number((isPending ? next[place] : null) ?? before.next_attempt_at_ms),
          last_status: lastStatus[place] == null ? null : Number(lastStatus[place]),
          last_error: lastError[place] ?? null,
        });
      });
      return [];
    },
  ),
  write("send messages of a webhook again: update webhook_messages set status = 'pending'", () => []),
  write(
    "retry messages of a webhook: update webhook_messages set next_attempt_at_ms = $2",
    (tables, [webhookId, now, limit]) => {
      const waiting = pendingOf(tables, webhookId).filter((row) =>
        Number(row.failures) > 0 && Number(row.next_attempt_at_ms) > Number(now)
      ).sort(by("next_attempt_at_ms")).slice(0, Number(limit)).map(({ id }) => id as string);
      const values = { next_attempt_at_ms: Number(now) };
      return touched(tables.update("webhook_messages", ({ id }) => waiting.includes(id as string), values));
    },
  ),
];

type Texts = (string | null)[];

const REMOVALS: readonly Entry[] = [
  write(
    "remove old messages: delete from webhook_messages where id = any(array( select id from webhook_messages where realm",
    (tables, [realm, status, before, limit]) => {
      const isOld = (row: Fields) =>
        row.realm === realm && row.status === status && Number(row.ended_at_ms) <= Number(before);
      return touched(tables.remove("webhook_messages", isOld, Number(limit)));
    },
  ),
  write(
    "remove messages of deleted webhooks: delete from webhook_messages where id = any(array( select m.id from webhooks w",
    (tables, [realms, limit]) => {
      const mine = tables.list("realms", ({ realm }) => numbersOf(realms).includes(realm as number));
      const removed = tables.list("webhooks", (row) => row.removed === true)
        .filter((row) => mine.some(({ appId, mode }) => appId === row.appId && mode === row.mode))
        .map(({ webhookId }) => webhookId);
      const isGone = (row: Fields) => removed.includes(row.webhook_id as string);
      return touched(tables.remove("webhook_messages", isGone, Number(limit)));
    },
  ),
  write(
    "remove messages of erased users: delete from webhook_messages where id = any(array( select id from webhook_messages where user_key",
    (tables, [keys, limit]) => {
      const isMine = (row: Fields) => numbersOf(keys).includes(row.user_key as number);
      return touched(tables.remove("webhook_messages", isMine, Number(limit)));
    },
  ),
];

export const WEBHOOKS: readonly Entry[] = [...RECORDS, ...STANDINGS, ...LOOKS, ...OUTCOMES, ...REMOVALS];
