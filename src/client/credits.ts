// Credit packs: granting, extending and revoking, a user's balances, and the ledger.

import { CallGroup } from "./call_group.ts";
import { pagesByCursor } from "./pages.ts";
import type { CallOptions } from "./transport.ts";
import type {
  CreditList,
  CreditQuery,
  ExtendAnswer,
  ExtendInput,
  GrantAnswer,
  GrantInput,
  LedgerEntry,
  LedgerPage,
  LedgerQuery,
  RevokeAnswer,
  RevokeInput,
} from "./wire_types.ts";

const LEDGER_PAGE_MAX = 500;

/** `client.credits`. */
export class Credits extends CallGroup {
  /**
   * Grants a user the credits of a pack.
   *
   * @example
   * ```ts
   * const order = { userId: "user_1", packId: "Image Top-Up", externalRef: "order_1" };
   * const first = await client.credits.grant(order);
   * const again = await client.credits.grant(order);
   * console.log(first.remaining); // 50
   * console.log(again.balanceId === first.balanceId); // true
   * ```
   */
  grant(input: GrantInput, call?: CallOptions): Promise<GrantAnswer> {
    return this.send("POST", "/credits/grant", "credit_write", call, input);
  }

  /**
   * Gives a balance a later expiry. Credits that had expired can be spent again.
   *
   * @example
   * ```ts
   * const { balanceId } = await client.credits.grant({ userId: "user_1", packId: "Creator Bundle" });
   * const extended = await client.credits.extend({ balanceId, expiresAt: null });
   * console.log(extended.expiresAt); // null
   * ```
   */
  extend(input: ExtendInput, call?: CallOptions): Promise<ExtendAnswer> {
    return this.send("POST", "/credits/extend", "credit_write", call, input);
  }

  /**
   * Revokes a balance: the remaining credits are removed, spent ones stay spent.
   *
   * @example
   * ```ts
   * const { balanceId } = await client.credits.grant({ userId: "user_1", packId: "Image Top-Up" });
   * const revoked = await client.credits.revoke({ balanceId, reason: "refunded" });
   * console.log(revoked.remaining); // 0
   * ```
   */
  revoke(input: RevokeInput, call?: CallOptions): Promise<RevokeAnswer> {
    return this.send("POST", "/credits/revoke", "credit_write", call, input);
  }

  /**
   * Lists a user's balances. With a public key it needs an end-user token of that user.
   *
   * @example
   * ```ts
   * await client.credits.grant({ userId: "user_1", packId: "Image Top-Up" });
   * const { credits } = await client.credits.list({ userId: "user_1", event: "image.render" });
   * console.log(credits.map(({ packName, remaining }) => [packName, remaining])); // [["Image Top-Up", 50]]
   * ```
   */
  list(query: CreditQuery, call?: CallOptions): Promise<CreditList> {
    return this.send("GET", "/credits", "any", call, query);
  }

  /**
   * Reads a page of a user's ledger, newest first.
   *
   * @example
   * ```ts
   * await client.credits.grant({ userId: "user_1", packId: "Image Top-Up", notes: "launch gift" });
   * const { entries, nextCursor } = await client.credits.history({ userId: "user_1", limit: 10 });
   * console.log(entries[0]?.delta); // 50
   * console.log(entries[0]?.notes); // "launch gift"
   * console.log(nextCursor); // null
   * ```
   */
  history(query: LedgerQuery, call?: CallOptions): Promise<LedgerPage> {
    return this.send("GET", "/credits/history", "secret", call, query);
  }

  /**
   * Reads a user's whole ledger, newest first, page by page as you go. `limit` is the size of a page.
   *
   * @example
   * ```ts
   * await client.credits.grant({ userId: "user_1", packId: "Image Top-Up" });
   * let sum = 0;
   * for await (const { delta } of client.credits.historyAll({ userId: "user_1" })) sum += delta;
   * console.log(sum); // 50
   * ```
   */
  historyAll(query: Omit<LedgerQuery, "cursor">, call?: CallOptions): AsyncGenerator<LedgerEntry, void> {
    return pagesByCursor(async (cursor) => {
      const page = await this.history({ limit: LEDGER_PAGE_MAX, ...query, cursor }, call);
      return { rows: page.entries, next: page.nextCursor };
    });
  }
}
