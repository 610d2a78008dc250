// First answers that are kept by a transaction of their call, together with its effect. Those of turns go through the
// journal.

import { type IdempotencyRow, Unavailable } from "../../../actors/port.ts";
import { SWEEP_LIMITS } from "../../process/limits.ts";
import type { Session } from "../database.ts";

/**
 * Keeps a first answer in the transaction of its call.
 *
 * @throws Unavailable when the key has an answer: an earlier run of the call, which got no answer, has just been
 *   committed. The transaction must end; the next attempt gets that answer
 */
export async function insertAnswer(session: Session, row: IdempotencyRow): Promise<void> {
  const { realm, key, requestHash, status, body, userKey, at } = row;
  const kept = await session.query(
    `insert into idempotency as i (realm, key, request_hash, status, body, user_key, at_ms)
     values ($1::int, $2, $3, $4::int, $5, $6::bigint, $7::bigint)
     on conflict (realm, key) do update set request_hash = excluded.request_hash, status = excluded.status,
       body = excluded.body, user_key = excluded.user_key, at_ms = excluded.at_ms
     where i.at_ms <= $8::bigint returning 1`,
    [realm, key, requestHash, status, body, userKey, at, at - SWEEP_LIMITS.idempotencyKeptMs],
  );
  if (kept.length === 0) throw new Unavailable("The call has just been carried out");
}
