// What credit balances can pay, and every movement of one with its ledger row. The status of a balance
// follows from its amounts and the moment; nothing is written when one expires. The sum of a balance's
// ledger rows is what it has left.

import type { Unit, WireData } from "./document.ts";
import { fromNumber, type Micros, smaller, toNumber, ZERO } from "./decimal.ts";
import { type Metadata, ruleMatches } from "./rules.ts";
import { refundToRollover } from "./includes.ts";
import type {
  Balance,
  CreditLine,
  EventRow,
  LedgerReason,
  LedgerRow,
  Named,
  Reservation,
  World,
} from "./state.ts";

type BalanceStatus = "active" | "expired" | "depleted" | "revoked";

/** What a call has to pay for. */
export interface Purchase {
  user: { id: string };
  event: string;
  metadata: Metadata | null;
}

/** What a ledger row says beside its balance and its amount. */
export interface Movement {
  reason: LedgerReason;
  at: number;
  event?: EventRow;
  reservation?: Reservation;
  notes?: string | null;
}

export function statusOf(balance: Balance, now: number): BalanceStatus {
  if (balance.revoked) return "revoked";
  if (balance.endedAt !== null) return "expired";
  if (balance.expiresAt !== null && balance.expiresAt <= now) return "expired";
  return balance.remaining === ZERO ? "depleted" : "active";
}

/** Consumption order: by priority, then what expires first (evergreen last), then rollovers, then the oldest, then by id. */
export function inOrder(balances: Balance[]): Balance[] {
  const rank = ({ origin }: Balance) => origin === "rollover" ? 0 : 1;
  const end = (balance: Balance) => balance.expiresAt ?? Number.MAX_SAFE_INTEGER;
  return balances.toSorted((a, b) =>
    b.priority - a.priority || end(a) - end(b) || rank(a) - rank(b) || a.grantedAt - b.grantedAt ||
    (isBefore(a, b) ? -1 : 1)
  );
}

/** By id; by its making where an id is not known yet. */
function isBefore(a: Balance, b: Balance): boolean {
  return a.id.startsWith("«") || b.id.startsWith("«") ? a.no < b.no : a.id < b.id;
}

/** The balances that can pay for something now, in consumption order; of every unit when none is named. */
export function walletOf(world: World, purchase: Purchase, now: number, unit?: Unit): Balance[] {
  const { user, event, metadata } = purchase;
  return inOrder(
    world.balances.filter((balance) =>
      balance.userId === user.id && statusOf(balance, now) === "active" &&
      (unit === undefined || balance.unit === unit) &&
      balance.matches.some((rule) => ruleMatches(rule, event, metadata))
    ),
  );
}

export function sumOf(balances: Balance[]): Micros {
  return balances.reduce((sum, balance) => sum + balance.remaining, ZERO);
}

export function sumTaken(lines: CreditLine[]): Micros {
  return lines.reduce((sum, line) => sum + line.taken, ZERO);
}

/** Takes an amount from a wallet, or all that it has. The caller writes the ledger rows. */
export function drain(world: World, wallet: Balance[], amount: Micros, at: number): CreditLine[] {
  const lines: CreditLine[] = [];
  let left = amount;
  for (const balance of wallet) {
    const taken = smaller(left, balance.remaining);
    if (taken === ZERO) continue;
    const before = balance.remaining;
    balance.remaining -= taken;
    tellOfLittle(world, balance, before, at);
    left -= taken;
    lines.push({ balance, taken });
  }
  if (lines.length > 1) world.note("credits: several balances drained for one need");
  if (lines.some(({ balance }) => balance.remaining > ZERO)) world.note("credits: part of a balance taken");
  return lines;
}

/** Once for each balance, as what is left comes down to it: that it is little, and that it is nothing. */
function tellOfLittle(world: World, balance: Balance, before: Micros, at: number): void {
  if (balance.origin !== null) return;
  const lowAt = lowAtOf(world, balance);
  const limits = [
    ...(lowAt === undefined ? [] : [["low", fromNumber(lowAt)] as const]),
    ["depleted", ZERO] as const,
  ];
  for (const [what, limit] of limits) {
    if (before <= limit || balance.remaining > limit) continue;
    if (balance.told.has(what)) {
      world.note(`messages: ${what} again`);
      continue;
    }
    balance.told.add(what);
    const { data, ids } = creditsData(balance);
    world.tell(balance.userId, `credits.${what}`, at, data, ids);
  }
}

/** Choice: `lowAt` is that of the catalog in force, not that of the grant. */
function lowAtOf({ catalog }: World, { pack: { id }, packItemId }: Balance): number | undefined {
  const pack = catalog.packs?.find((each) => each.id === id);
  return packItemId === null ? pack?.lowAt : pack?.items.find((item) => item.id === packItemId)?.lowAt;
}

/** What messages say of a balance. */
export function creditsData(balance: Balance): { data: WireData; ids: Record<string, Named> } {
  const { pack, packItemId, remaining, externalRef } = balance;
  const data = { packId: pack.id, packItemId, remaining: toNumber(remaining), externalRef };
  return { data, ids: { balanceId: balance } };
}

/**
 * Gives an amount back to a balance, with its row. A second row takes away what does not stay: all of it in
 * a revoked balance, else what the overage of a merge swallows.
 */
export function giveBack(world: World, balance: Balance, amount: Micros, movement: Movement): void {
  writeRow(world, balance, amount, movement);
  if (amount === ZERO) return;
  world.note(`credits: refund to a balance that is ${statusOf(balance, movement.at)}`);
  const swallowed = balance.revoked ? amount : smaller(amount, balance.overage);
  if (!balance.revoked && swallowed > ZERO) {
    world.note("merges: refund to a balance with overage");
    balance.overage -= swallowed;
  }
  if (balance.revoked) balance.taken += swallowed;
  if (swallowed > ZERO) {
    writeRow(world, balance, -swallowed, { ...movement, reason: "admin_adjust", notes: null });
  }
  balance.remaining += amount - swallowed;
  refundToRollover(world, balance, amount - swallowed, movement.at);
}

export function writeRow(world: World, balance: Balance, delta: Micros, movement: Movement): void {
  const { event = null, reservation = null, notes = null, reason, at } = movement;
  const made = { balance, delta, reason, event, reservation, notes, at, ...world.written(balance.userId) };
  world.ledger.push(world.name<LedgerRow>("cle_", made));
}
