// Credit balances and their ledger, rows to domain and back, side by side.

import { decimalOf, parseAmount } from "../../domain/amount.ts";
import type { CreditBalance, CreditSource, LedgerEntry, LedgerReason } from "../../domain/credits/credit.ts";
import type { MatchRule } from "../../domain/match.ts";
import type { PackKind } from "../../domain/plans/catalog.ts";
import type { Unit } from "../../domain/plans/plan.ts";
import type { Cell } from "../database.ts";

export interface BalanceRecord {
  id: string;
  user_key: number;
  realm: number;
  pack_id: string;
  pack_name: string;
  pack_item_id: string | null;
  kind: PackKind;
  unit: Unit;
  matches: string;
  priority: number;
  initial: string;
  granted_at_ms: number;
  expires_at_ms: number | null;
  external_ref: string | null;
  source: CreditSource;
  notes: string | null;
  remaining: string;
  held: string;
  revoked_amount: string;
  revoked_at_ms: number | null;
  overage: string;
}

/** Rules as JSON text. Rows never change theirs, and a balance is written at every movement. */
const rulesText = new WeakMap<readonly MatchRule[], string>();

function textOfRules(rules: readonly MatchRule[]): string {
  let text = rulesText.get(rules);
  if (text === undefined) rulesText.set(rules, text = JSON.stringify(rules));
  return text;
}

export function encodeBalance(row: CreditBalance): Cell[] {
  return [
    row.id,
    row.userKey,
    row.realm,
    row.packId,
    row.packName,
    row.packItemId,
    row.kind,
    row.unit,
    textOfRules(row.matches),
    row.priority,
    decimalOf(row.initial),
    row.grantedAt,
    row.expiresAt,
    row.externalRef,
    row.source,
    row.notes,
    decimalOf(row.remaining),
    decimalOf(row.held),
    decimalOf(row.revokedAmount),
    row.revokedAt,
    decimalOf(row.overage),
  ];
}

export function decodeBalance(record: BalanceRecord): CreditBalance {
  return {
    id: record.id,
    userKey: record.user_key,
    realm: record.realm,
    packId: record.pack_id,
    packName: record.pack_name,
    packItemId: record.pack_item_id,
    kind: record.kind,
    unit: record.unit,
    matches: JSON.parse(record.matches) as MatchRule[],
    priority: record.priority,
    initial: parseAmount(record.initial),
    grantedAt: record.granted_at_ms,
    expiresAt: record.expires_at_ms,
    externalRef: record.external_ref,
    source: record.source,
    notes: record.notes,
    remaining: parseAmount(record.remaining),
    held: parseAmount(record.held),
    revokedAmount: parseAmount(record.revoked_amount),
    revokedAt: record.revoked_at_ms,
    overage: parseAmount(record.overage),
  };
}

export interface LedgerRecord {
  id: string;
  user_key: number;
  balance_id: string;
  pack_id: string;
  delta: string;
  reason: LedgerReason;
  event_id: string | null;
  reservation_id: string | null;
  notes: string | null;
  at_ms: number;
}

export function encodeLedgerEntry(row: LedgerEntry): Cell[] {
  return [
    row.id,
    row.userKey,
    row.balanceId,
    row.packId,
    decimalOf(row.delta),
    row.reason,
    row.eventId,
    row.reservationId,
    row.notes,
    row.at,
  ];
}

export function decodeLedgerEntry(record: LedgerRecord): LedgerEntry {
  return {
    id: record.id,
    userKey: record.user_key,
    balanceId: record.balance_id,
    packId: record.pack_id,
    delta: parseAmount(record.delta),
    reason: record.reason,
    eventId: record.event_id,
    reservationId: record.reservation_id,
    notes: record.notes,
    at: record.at_ms,
  };
}
