// Credit balances and their ledger. Every movement of credits writes both, so their encodings are written out by hand.

import { decimalOf } from "../../domain/values/amount.ts";
import type { CreditBalance, Included, LedgerEntry } from "../../domain/state/credit.ts";
import type { MatchRule } from "../../domain/values/match.ts";
import { copyText, NULL } from "../database.ts";
import { amount, column, type Later, mapped, spread, table } from "./columns.ts";

/** What rows of older versions have for a column of included credits. */
const NONE_BEFORE: Later = { since: 34, value: null };

export const CREDIT_BALANCES = table<CreditBalance>("credit_balances", 1, {
  id: column("id"),
  userKey: column("user_key", { mutable: true }),
  realm: column("realm"),
  packId: column("pack_id"),
  packName: column("pack_name"),
  packItemId: column("pack_item_id"),
  kind: column("kind"),
  unit: column("unit"),
  matches: mapped("matches", textOfRules, (value) => JSON.parse(value as string)),
  priority: column("priority"),
  initial: amount("initial", { mutable: true }),
  grantedAt: column("granted_at_ms"),
  expiresAt: column("expires_at_ms", { mutable: true }),
  externalRef: column("external_ref", { mutable: true }),
  source: column("source"),
  notes: column("notes"),
  remaining: amount("remaining", { mutable: true }),
  held: amount("held", { mutable: true }),
  revokedAmount: amount("revoked_amount", { mutable: true }),
  revokedAt: column("revoked_at_ms", { mutable: true }),
  overage: amount("overage", { mutable: true, later: { since: 3, value: 0 } }),
  notified: column("told", { mutable: true, later: { since: 14, value: 0 } }),
  origin: column("origin", { later: NONE_BEFORE }),
  ownRef: column("own_ref", { mutable: true, later: NONE_BEFORE }),
  included: spread<Included | null>(
    {
      included: { of: textOfIncluded, later: NONE_BEFORE },
      window_end_ms: { of: (included) => included?.windowEnd ?? null, later: NONE_BEFORE },
    },
    ({ included, window_end_ms: end }) => includedOf(included as string | null, end as number | null),
  ),
}, lineOfBalance);

function lineOfBalance(row: CreditBalance): string {
  return `${copyText(row.id)}\t${row.userKey}\t${row.realm}\t${copyText(row.packId)}\t${
    copyText(row.packName)
  }\t${copyText(row.packItemId)}\t${row.kind}\t${row.unit}\t${
    copyText(textOfRules(row.matches))
  }\t${row.priority}\t${decimalOf(row.initial)}\t${row.grantedAt}\t${row.expiresAt ?? NULL}\t${
    copyText(row.externalRef)
  }\t${row.source}\t${copyText(row.notes)}\t${decimalOf(row.remaining)}\t${decimalOf(row.held)}\t${
    decimalOf(row.revokedAmount)
  }\t${row.revokedAt ?? NULL}\t${decimalOf(row.overage)}\t${row.notified}\t${row.origin ?? NULL}\t${
    copyText(row.ownRef)
  }\t${copyText(textOfIncluded(row.included))}\t${row.included?.windowEnd ?? NULL}`;
}

/** Encodes a window of included credits, all but its end, as JSON; null for none. */
function textOfIncluded(included: Included | null): string | null {
  if (included === null) return null;
  const { planId, subscriptionId, isAddOn, windowStart, state, rollsUntil } = included;
  return JSON.stringify([planId, subscriptionId, isAddOn, windowStart, state, rollsUntil]);
}

function includedOf(text: string | null, windowEnd: number | null): Included | null {
  if (text === null) return null;
  const [planId, subscriptionId, isAddOn, windowStart, state, rollsUntil] = JSON.parse(text);
  return { planId, subscriptionId, isAddOn, windowStart, windowEnd, state, rollsUntil };
}

/** Cache of the JSON text of each balance's rules: they never change, and every movement writes the balance. */
const rulesText = new WeakMap<readonly MatchRule[], string>();

function textOfRules(rules: readonly MatchRule[]): string {
  let text = rulesText.get(rules);
  if (text === undefined) rulesText.set(rules, text = JSON.stringify(rules));
  return text;
}

export const CREDIT_LEDGER = table<LedgerEntry>("credit_ledger", 1, {
  id: column("id"),
  userKey: column("user_key"),
  balanceId: column("balance_id"),
  packId: column("pack_id"),
  delta: amount("delta"),
  reason: column("reason"),
  eventId: column("event_id"),
  reservationId: column("reservation_id"),
  notes: column("notes"),
  at: column("at_ms"),
}, lineOfEntry);

function lineOfEntry(row: LedgerEntry): string {
  return `${copyText(row.id)}\t${row.userKey}\t${copyText(row.balanceId)}\t${copyText(row.packId)}\t${
    decimalOf(row.delta)
  }\t${row.reason}\t${copyText(row.eventId)}\t${copyText(row.reservationId)}\t${
    copyText(row.notes)
  }\t${row.at}`;
}
