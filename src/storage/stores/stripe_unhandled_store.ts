// Messages of Stripe about something that was paid for and is not granted yet. They are kept for a while, to be shown and
// tried again.

import type { Millis } from "../../domain/values/period.ts";
import type { Money } from "../../domain/stripe/fields.ts";
import type { StripeMessage } from "../../domain/stripe/message.ts";
import { STRIPE_LIMITS } from "../../process/limits.ts";
import { arrayText, type Session } from "../database.ts";

type Reader = Pick<Session, "query">;

/** What the admin API shows of a message. */
export interface Unhandled {
  readonly eventId: string;
  readonly type: string;
  /** The session, invoice or subscription. */
  readonly objectId: string;
  readonly reason: string;
  readonly amount: number | null;
  readonly currency: string | null;
  /** When Stripe made the event. */
  readonly createdAt: Millis;
}

/** A message to keep. */
interface NewUnhandled {
  readonly message: StripeMessage;
  readonly objectId: string;
  readonly reason: string;
  readonly money: Money | null;
  /** Objects of Stripe that it names. */
  readonly links: readonly string[];
  /** Users that it names, or whose subscription it is about. */
  readonly userIds: readonly string[];
  readonly catalogVersion: number;
}

/** Keeps a message, or the new reason of one that is kept already, and the newest ones up to a bound. */
export async function keepUnhandled(
  session: Session,
  realm: number,
  row: NewUnhandled,
  at: Millis,
): Promise<void> {
  const { message, objectId, reason, money, links, userIds, catalogVersion } = row;
  const { eventId, type, created } = message.head;
  await session.query(
    `insert into stripe_unhandled (realm, event_id, type, object_id, reason, amount, currency, created_ms, at_ms,
       message, links, user_ids, catalog_version)
     values ($1::int, $2, $3, $4, $5, $6::bigint, $7, $8::bigint, $9::bigint, $10, $11, $12, $13::int)
     on conflict (realm, event_id) do update set reason = excluded.reason, amount = excluded.amount,
       currency = excluded.currency, message = excluded.message, links = excluded.links,
       user_ids = excluded.user_ids, catalog_version = excluded.catalog_version`,
    [
      ...[
        realm,
        eventId,
        type,
        objectId,
        reason,
        money?.amount ?? null,
        money?.currency ?? null,
        created,
        at,
      ],
      ...[JSON.stringify(message), JSON.stringify(links), JSON.stringify(userIds), catalogVersion],
    ],
  );
  await session.query(
    `delete from stripe_unhandled where realm = $1::int and event_id in (
       select event_id from stripe_unhandled where realm = $1::int order by at_ms desc, event_id desc offset $2::int)`,
    [realm, STRIPE_LIMITS.unhandledMax],
  );
}

/** Removes a message, because it was handled or nothing is owed for it any more. */
export async function forgetUnhandled(session: Session, realm: number, eventId: string): Promise<void> {
  await session.query("delete from stripe_unhandled where realm = $1::int and event_id = $2", [
    realm,
    eventId,
  ]);
}

/** Lists the messages of a realm, the newest first. */
export function listUnhandled(reader: Reader, realm: number, since: Millis): Promise<Unhandled[]> {
  return reader.query<Unhandled>(
    `select event_id as "eventId", type, object_id as "objectId", reason, amount, currency,
       created_ms as "createdAt"
     from stripe_unhandled where realm = $1::int and at_ms > $2::bigint order by created_ms desc, event_id desc`,
    [realm, since],
  );
}

/** Which messages to read again. */
export type UnhandledRef =
  | { readonly eventId: string }
  /** Messages that name one of these objects of Stripe. */
  | { readonly links: readonly string[] }
  /** Messages that were last tried with another version of the catalog. */
  | { readonly catalogVersion: number };

/** Reads kept messages, the oldest first. */
export async function readUnhandled(
  reader: Reader,
  realm: number,
  which: UnhandledRef,
): Promise<StripeMessage[]> {
  const [condition, value] = "eventId" in which
    ? ["event_id = $2", which.eventId]
    : "links" in which
    ? ["links::jsonb ?| $2::text::text[]", arrayText(which.links)]
    : ["catalog_version <> $2::int", which.catalogVersion];
  const rows = await reader.query<{ message: string }>(
    `select message from stripe_unhandled where realm = $1::int and ${condition} order by created_ms, event_id`,
    [realm, value],
  );
  return rows.map(({ message }) => JSON.parse(message));
}

/** Lists the realms with messages, each with the versions of the catalog with which they were tried. */
export function realmsOfUnhandled(reader: Reader): Promise<{ realm: number; catalogVersion: number }[]> {
  return reader.query(`select distinct realm, catalog_version as "catalogVersion" from stripe_unhandled`);
}

/** Removes the messages that name some users. */
export async function deleteUnhandledOf(
  session: Session,
  realm: number,
  ids: readonly string[],
): Promise<void> {
  await session.query(
    "delete from stripe_unhandled where realm = $1::int and user_ids::jsonb ?| $2::text::text[]",
    [realm, arrayText(ids)],
  );
}
