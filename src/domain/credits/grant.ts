// Grant: credits of a pack for a user, a balance for each of its items. An external reference makes it idempotent: a known
// one returns the balances that it made, in their present state, before any other check. Without one, every call creates
// new balances.

import type { Amount } from "../values/amount.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import { type Catalog, findPack, foldName, type Pack, type PackItem } from "../catalog/catalog.ts";
import type { Millis } from "../values/period.ts";
import { invalidField, type Refusal, refusal } from "../values/refusal.ts";
import { answered, refused, type Result } from "../state/result.ts";
import { type CreditsAnswer, showBalances } from "./balances.ts";
import type { CreditBalance, CreditSource } from "../state/credit.ts";
import { AMOUNT_MAX, issueBalance } from "./issue.ts";

/** The input of `POST /v1/credits/grant`. */
export interface GrantInput {
  /** A pack's id or name. */
  readonly pack: string;
  /** Required for a pack without items, ignored for others. "malformed": the caller sent something else than an amount. */
  readonly quantity: Amount | "malformed" | null;
  /** Makes the grant idempotent; null for none. */
  readonly externalRef: string | null;
  /** undefined for the pack's default, null for evergreen. */
  readonly expiresAt: Millis | null | undefined;
  readonly source: CreditSource;
  readonly notes: string | null;
  /**
   * How many packs a payment provider was paid for; absent for any other grant. A paid pack is granted even if it is
   * archived.
   */
  readonly paidPacks?: number;
}

const DAY_MS = 86_400_000;
/** The last moment of the year 9999: no time has more digits. */
const LAST_MS = 253_402_300_799_999;

/** Refuses a pack that cannot be granted or bought. @param pack its id or name, as the caller sent it */
export function packNotFound(pack: string): Refusal {
  return refusal("credit_pack_not_found", `Credit pack not found or archived: ${pack}`);
}

/** Refuses a pack without items for which the caller sent no quantity. */
export function quantityMissing(): Refusal {
  return refusal("invalid_quantity", "quantity: is required for a pack without items");
}

/** Decides a grant. */
export function grant(draft: Draft, input: GrantInput, context: Context): Result<CreditsAnswer> {
  const known = knownGrant(draft, input, context.catalog);
  if (known.length > 0) return answered(showBalances(draft, known, context));

  const pack = findPack(context.catalog, input.pack);
  const isPaid = input.paidPacks !== undefined;
  if (pack === null || (pack.archived && !isPaid)) return refused(packNotFound(input.pack));
  const items = itemsOf(pack, input);
  if ("code" in items) return refused(items);
  if (typeof input.expiresAt === "number" && input.expiresAt <= context.now) {
    return refused(invalidField("expiresAt", "must be in the future"));
  }
  if (context.balancesLeft !== null && items.length > context.balancesLeft) {
    return refused(refusal("test_quota_exceeded", "Test-mode credit balance cap reached"));
  }
  const rows = items.map((item) => issue(draft, input, pack, item, context));
  return answered(showBalances(draft, rows, context));
}

/** Finds the balances that this external reference made of this pack, in the order of its items. */
function knownGrant(draft: Draft, input: GrantInput, catalog: Catalog): CreditBalance[] {
  const { externalRef } = input;
  if (externalRef === null) return [];
  const pack = findPack(catalog, input.pack);
  const name = foldName(input.pack);
  const isOfPack = (row: CreditBalance) =>
    pack === null ? row.packId === input.pack || foldName(row.packName) === name : row.packId === pack.id;
  return [...draft.balancesInOrder()]
    .filter((row) => row.externalRef === externalRef && isOfPack(row))
    .sort((a, b) => placeOf(pack, a) - placeOf(pack, b) || (a.id < b.id ? -1 : 1));
}

/** The place of a balance's item in its pack. */
function placeOf(pack: Pack | null, { packItemId }: CreditBalance): number {
  return pack?.items.findIndex(({ id }) => id === packItemId) ?? 0;
}

/** The items with their amounts, or the refusal of a missing or invalid quantity. */
function itemsOf(pack: Pack, { quantity, paidPacks = 1 }: GrantInput): readonly PackItem[] | Refusal {
  if (pack.bucket === null) {
    if (paidPacks === 1) return pack.items;
    const items = pack.items.map((item) => ({ ...item, amount: item.amount * BigInt(paidPacks) }));
    return items.some(({ amount }) => amount > AMOUNT_MAX)
      ? refusal("invalid_quantity", "quantity: a balance would be above 1e12")
      : items;
  }
  if (quantity === "malformed") return invalidField("quantity", "must be a number up to 1e12");
  if (quantity === null) return quantityMissing();
  if (quantity <= 0n) return refusal("invalid_quantity", "quantity: must be greater than 0");
  return [{ ...pack.bucket, amount: quantity }];
}

function issue(draft: Draft, input: GrantInput, pack: Pack, item: PackItem, context: Context): CreditBalance {
  return issueBalance(draft, {
    packId: pack.id,
    packName: pack.name,
    packItemId: item.id,
    kind: pack.kind,
    unit: item.unit,
    matches: item.matches,
    priority: pack.priority,
    initial: item.amount,
    expiresAt: input.expiresAt === undefined
      ? defaultExpiry(pack.defaultExpiryDays, context.now)
      : input.expiresAt,
    externalRef: input.externalRef,
    source: input.source,
    notes: input.notes,
    origin: null,
    ownRef: null,
    included: null,
  }, context);
}

/** When a grant of now expires; null for never. */
export function defaultExpiry(days: number | null, now: Millis): Millis | null {
  return days === null ? null : Math.min(Math.round(now + days * DAY_MS), LAST_MS);
}
