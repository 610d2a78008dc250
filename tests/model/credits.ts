// The calls of credits alone: grant and revoke, the list of balances and the ledger. What balances pay is
// in wallet.ts, what a payment provider does in stripe.ts.

import {
  ANYTHING,
  type Input,
  type ModelReply,
  type Pack,
  type PackItem,
  refusal,
  success,
  type WireData,
} from "./document.ts";
import { atLeastZero, fromNumber, type Micros, toNumber, ZERO } from "./decimal.ts";
import { includesAny } from "./includes.ts";
import { covers } from "./rules.ts";
import { type Balance, iso, isoOrNull, type LedgerRow, type World } from "./state.ts";
import { followOrder } from "./ties.ts";
import { creditsData, inOrder, statusOf, writeRow } from "./wallet.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
/** A pack's own time ends no balance later than this. */
const LATEST = Date.parse("9999-12-31T23:59:59.999Z");
const QUANTITY_MAX = fromNumber(1e12);
const DEFAULT_PRIORITY = { per_type: 100, generic: 0 };
const DEFAULT_LEDGER_LIMIT = 50;

/** What a grant makes one balance of. */
interface Part extends Pick<PackItem, "unit" | "matches"> {
  itemId: string | null;
  amount: Micros;
}

/** @param paidPacks How many packs were paid for; such a grant may be of an archived pack. */
export function grant(world: World, input: Input, now: number, paidPacks: number | null = null): ModelReply {
  const userId = world.user(String(input["userId"])).id;
  const pack = findPack(world, String(input["packId"]));
  const externalRef = textOrNull(input["externalRef"]);
  const known = world.balances.filter((balance) =>
    externalRef !== null && balance.userId === userId && balance.pack === pack &&
    balance.externalRef === externalRef
  );
  if (known.length > 0) {
    world.note("credits: known externalRef");
    // Choice: in the order of the pack's items, also where a merge kept copies of two grants.
    const place = ({ packItemId }: Balance) => pack?.items.findIndex(({ id }) => id === packItemId) ?? 0;
    return granted(known.toSorted((a, b) => place(a) - place(b)));
  }
  if (!pack || (pack.archived && paidPacks === null)) return refusal("credit_pack_not_found");
  const parts = partsOf(pack, input["quantity"], paidPacks ?? 1);
  if (!Array.isArray(parts)) return refusal(parts);
  const expiresAt = expiryOf(pack, input["expiresAt"], now);
  if (expiresAt !== null && expiresAt <= now) return refusal("invalid_request");
  const { mode = "live", testCreditBalanceCap: cap = null } = world.options;
  if (mode === "test" && cap !== null && world.balances.length + parts.length > cap) {
    return refusal("test_quota_exceeded");
  }
  const notes = textOrNull(input["notes"]);
  const priority = pack.priority ?? DEFAULT_PRIORITY[pack.kind];
  return granted(parts.map(({ itemId: packItemId, amount: initial, unit, matches }) => {
    const terms = { userId, pack, packItemId, unit, matches, priority, externalRef, initial, expiresAt };
    return issue(world, terms, now, notes);
  }));
}

/** The terms of a new balance. */
type Terms = Pick<
  Balance,
  | ("userId" | "pack" | "packItemId" | "unit" | "matches" | "priority")
  | ("externalRef" | "initial" | "expiresAt")
>;

/** Gives a user a new balance. */
export function issue(
  world: World,
  terms: Terms,
  now: number,
  notes: string | null,
  held: Micros = ZERO,
): Balance {
  const { userId, initial } = terms;
  const balance = world.name<Balance>("crb_", {
    ...terms,
    notes,
    remaining: atLeastZero(initial - held),
    grantedAt: now,
    revoked: false,
    taken: ZERO,
    overage: atLeastZero(held - initial),
    told: new Set(),
    origin: null,
    record: null,
    endedAt: null,
    rolled: null,
  });
  world.balances.push(balance);
  writeRow(world, balance, balance.remaining, { reason: "grant", at: now, notes });
  if (balance.remaining === ZERO) return balance;
  const { data, ids } = creditsData(balance);
  world.tell(userId, "credits.granted", now, data, ids);
  return balance;
}

/** By exact id, else by name without regard to case; archived ones too. */
function findPack(world: World, packId: string): Pack | undefined {
  const { packs = [] } = world.catalog;
  return packs.find((pack) => pack.id === packId) ??
    packs.find((pack) => pack.name.toLowerCase() === packId.toLowerCase());
}

/** A pack with items ignores the quantity and counts how many were paid for; one without is the other way round. */
function partsOf(
  pack: Pack,
  quantity: unknown,
  packs: number,
): Part[] | "invalid_request" | "invalid_quantity" {
  if (pack.items.length > 0) {
    const parts = pack.items.map(({ id, unit, amount, matches }) => ({
      itemId: id,
      unit,
      amount: fromNumber(amount) * BigInt(packs),
      matches,
    }));
    return parts.some(({ amount }) => amount > QUANTITY_MAX) ? "invalid_quantity" : parts;
  }
  if (quantity === undefined || quantity === null) return "invalid_quantity";
  // Choice: a wrong type and a number that is too large are of the general code.
  if (typeof quantity !== "number" || !Number.isFinite(quantity)) return "invalid_request";
  const amount = fromNumber(quantity);
  if (amount <= ZERO) return "invalid_quantity";
  if (amount > QUANTITY_MAX) return "invalid_request";
  if (!pack.unit || !pack.matches) throw new Error(`pack ${pack.id} has neither items nor a unit`);
  return [{ itemId: null, unit: pack.unit, amount, matches: pack.matches }];
}

function expiryOf(pack: Pack, expiresAt: unknown, now: number): number | null {
  if (expiresAt === null) return null;
  if (typeof expiresAt === "string") return Date.parse(expiresAt);
  const days = pack.defaultExpiryDays ?? null;
  return days === null ? null : Math.min(Math.round(now + days * DAY_MS), LATEST);
}

function granted(balances: Balance[]): ModelReply {
  const shown = balances.map((balance) => ({
    balanceId: balance.id,
    packItemId: balance.packItemId,
    remaining: toNumber(balance.remaining),
    expiresAt: isoOrNull(balance.expiresAt),
  }));
  const { balanceId, remaining, expiresAt } = shown[0]!;
  return success({ balances: shown, balanceId, remaining, expiresAt });
}

export function revoke(world: World, input: Input, now: number): ModelReply {
  const balance = world.balances.find((each) => each.id === input["balanceId"]);
  if (!balance) return refusal("credit_balance_not_found");
  world.note(`credits: revoke of a balance that is ${statusOf(balance, now)}`);
  if (balance.remaining > ZERO && balance.remaining < balance.initial) {
    world.note("credits: revoke of a partly used balance");
  }
  if (isValid(world, balance)) world.note("credits: revoke of a held balance");
  takeAway(world, balance, now, textOrNull(input["reason"]));
  return success({ balanceId: balance.id, remaining: 0 });
}

/** Takes what a balance has left. */
export function takeAway(world: World, balance: Balance, now: number, notes: string | null): void {
  writeRow(world, balance, -balance.remaining, { reason: "admin_adjust", at: now, notes });
  const wasRevoked = balance.revoked;
  balance.taken += balance.remaining;
  balance.remaining = ZERO;
  balance.revoked = true;
  const { data, ids } = creditsData(balance);
  // Choice: a second revoke revokes nothing.
  if (!wasRevoked) world.tell(balance.userId, "credits.revoked", now, data, ids);
}

export function extend(world: World, input: Input, now: number): ModelReply {
  const balance = world.balances.find((each) => each.id === input["balanceId"]);
  if (!balance) return refusal("credit_balance_not_found");
  const status = statusOf(balance, now);
  const at = input["expiresAt"] === null ? null : Date.parse(String(input["expiresAt"]));
  const isSame = at === balance.expiresAt;
  const isLater = at === null || (balance.expiresAt !== null && at > now && at > balance.expiresAt);
  if (balance.revoked || !(isSame || isLater)) return refusal("invalid_request");
  world.note(`credits: extension of a balance that is ${status}`);
  if (!isSame) {
    writeRow(world, balance, ZERO, { reason: "admin_adjust", at: now, notes: textOrNull(input["reason"]) });
    // Choice: a balance that expires again is reported again.
    balance.told.delete("expired");
  }
  // A new expiry is reported like the first one.
  if (!isSame) balance.told.delete("expired");
  balance.expiresAt = at;
  const { id, remaining } = balance;
  return success({ balanceId: id, remaining: toNumber(remaining), expiresAt: isoOrNull(at) });
}

function isValid(world: World, balance: Balance): boolean {
  return world.reservations.some((hold) =>
    hold.state === "held" && hold.credits.some((line) => line.balance === balance)
  );
}

export function credits(world: World, input: Input, now: number): ModelReply {
  const event = textOrNull(input["event"]);
  const includeExpired = String(input["includeExpired"]) === "true";
  const { id } = world.user(String(input["userId"]));
  return success({ credits: balancesShown(world, id, now, { event, includeExpired }) });
}

/** A user's balances as lists, usage and users show them. An event filter looks at names only. */
export function balancesShown(
  world: World,
  userId: string,
  now: number,
  { event, includeExpired = false }: { event: string | null; includeExpired?: boolean },
) {
  const wanted = world.balances.filter((balance) =>
    balance.userId === userId &&
    (includeExpired || ["active", "depleted"].includes(statusOf(balance, now))) &&
    (event === null || balance.matches.some((rule) => covers(rule.event, event)))
  );
  const hasOrigins = includesAny(world);
  return inOrder(wanted).map((balance) => ({
    ...(hasOrigins ? { origin: balance.origin } : {}),
    balanceId: shownId(balance),
    packId: balance.pack.id,
    packName: balance.pack.name,
    packItemId: balance.packItemId,
    kind: balance.pack.kind,
    unit: balance.unit,
    remaining: toNumber(balance.remaining),
    initial: toNumber(balance.initial),
    grantedAt: iso(balance.grantedAt),
    expiresAt: isoOrNull(balance.expiresAt),
    status: statusOf(balance, now),
    matches: balance.matches,
    priority: balance.priority,
  }));
}

/** Choice: whether a balance that came with a plan has a new id after a change is not predicted. */
export function shownId({ id, origin }: Balance): string {
  return origin === null ? id : ANYTHING;
}

export function ledger(world: World, input: Input, observed?: ModelReply): ModelReply {
  // Choice: rows of balances that come and go by themselves are not predicted.
  if (includesAny(world) && observed) return observed;
  const { balanceId, cursor } = input;
  const userId = world.user(String(input["userId"])).id;
  const after = typeof cursor === "string" ? world.cursors.get(cursor) : null;
  if (after === undefined) return refusal("invalid_request");
  const known = world.balances.some((each) => each.id === balanceId && each.userId === userId);
  if (balanceId !== undefined && !known) return refusal("credit_balance_not_found");
  const limit = typeof input["limit"] === "number" ? input["limit"] : DEFAULT_LEDGER_LIMIT;
  const isWanted = ({ balance }: LedgerRow) =>
    balance.userId === userId && (balanceId === undefined || balance.id === balanceId);
  if (observed?.data) {
    const shown = observed.data["entries"] as WireData[] | undefined ?? [];
    followOrder(world.ledger, isWanted, after, shown, entryAnswer);
  }
  // Rows are written in the order of their times, so the newest first is the list turned round.
  const older = after === null ? world.ledger : world.ledger.slice(0, world.ledger.indexOf(after));
  const rows = older.toReversed().filter(isWanted);
  const page = rows.slice(0, limit);
  // Choice: no cursor where nothing is left, also when the page is full.
  const nextCursor = rows.length > limit ? world.nameCursor(page.at(-1)!) : null;
  return success({ entries: page.map(entryAnswer), nextCursor });
}

function entryAnswer(row: LedgerRow) {
  return {
    id: row.id,
    balanceId: row.balance.id,
    packId: row.balance.pack.id,
    delta: toNumber(row.delta),
    reason: row.reason,
    eventId: row.event?.id ?? null,
    reservationId: row.reservation?.id ?? null,
    occurredAt: iso(row.at),
    notes: row.notes,
  };
}

function textOrNull(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
