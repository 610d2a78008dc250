// What a merge does to credits: balances change hands with a ledger row each, and two copies of one grant become
// one with the usage of both.

import { atLeastZero, type Micros, toNumber, ZERO } from "./decimal.ts";
import type { Balance, User, World } from "./state.ts";
import { statusOf, writeRow } from "./wallet.ts";

interface CreditReport {
  /** How many `merged_from_alias` rows were written. */
  moved: number;
  /** How many pairs of copies became one. */
  dedupes: number;
  conflicts: {
    externalRef: string | null;
    survivorId: string;
    droppedId: string;
    remaining: number;
    overage: number;
  }[];
}

/** Moves all balances of `from`, which is an alias of `to` already. */
export function mergeCredits(world: World, from: User, to: User, now: number): CreditReport {
  const report: CreditReport = { moved: 0, dedupes: 0, conflicts: [] };
  const moving = world.balances.filter((balance) => balance.userId === from.id);
  const own = world.balances.filter((balance) => balance.userId === to.id);
  for (const balance of moving.sort((a, b) => (a.id < b.id ? -1 : 1))) {
    balance.userId = to.id;
    const twin = own.find((each) => isCopy(each, balance));
    const isOver = ["expired", "revoked"].includes(statusOf(balance, now));
    const takesOver = twin !== undefined && statusOf(twin, now) === "expired" && !isOver;
    if (!twin || takesOver) {
      writeRow(world, balance, ZERO, { reason: "merged_from_alias", at: now });
      report.moved += 1;
    }
    if (!twin) continue;
    if (takesOver) world.note("merges: dedupe, the survivor of to is expired");
    if (takesOver && balance.remaining === ZERO) world.note("merges: dedupe, nothing left but not expired");
    const [survivor, dropped] = takesOver ? [balance, twin] : [twin, balance];
    const { externalRef } = dropped;
    becomeOne(world, survivor, dropped, now);
    report.dedupes += 1;
    report.conflicts.push({
      externalRef,
      survivorId: survivor.id,
      droppedId: dropped.id,
      remaining: toNumber(survivor.remaining),
      overage: toNumber(survivor.overage),
    });
  }
  return report;
}

// In a dry run's copy of the world packs are copies too, so their ids are compared.
function isCopy(a: Balance, b: Balance): boolean {
  return a.externalRef !== null && a.externalRef === b.externalRef && a.pack.id === b.pack.id &&
    a.packItemId === b.packItemId;
}

/** What has been used of a balance, holds included. */
function usedOf({ initial, remaining, taken, overage }: Balance): Micros {
  return initial - remaining - taken + overage;
}

function becomeOne(world: World, survivor: Balance, dropped: Balance, now: number): void {
  const isRevoked = survivor.revoked || dropped.revoked;
  const combined = usedOf(survivor) + usedOf(dropped);
  const before = survivor.remaining;
  // Choice: a message about either copy is about the grant and is not repeated. Each copy reports its own expiry.
  for (const what of dropped.told) if (what !== "expired") survivor.told.add(what);
  survivor.revoked = isRevoked;
  survivor.taken = isRevoked ? atLeastZero(survivor.initial - combined) : ZERO;
  survivor.remaining = isRevoked ? ZERO : atLeastZero(survivor.initial - combined);
  survivor.overage = isRevoked ? ZERO : atLeastZero(combined - survivor.initial);
  const movement = { reason: "merge_dedupe", at: now } as const;
  writeRow(world, survivor, survivor.remaining - before, movement);
  writeRow(world, dropped, -dropped.remaining, movement);
  Object.assign(dropped, { revoked: true, remaining: ZERO, overage: ZERO, externalRef: null });
  const kind = isRevoked ? "revoked" : survivor.overage > ZERO ? "with overage" : "plain";
  world.note(`merges: dedupe, ${kind}`);
  for (const hold of world.reservations) {
    for (const line of hold.credits) {
      if (line.balance !== dropped || hold.state !== "held") continue;
      line.balance = survivor;
      world.note("merges: held part of a closed copy");
    }
  }
}
