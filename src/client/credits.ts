// Credit packs: granting and revoking, a user's balances, and the ledger. Specification, "Credits"; section 6 of the
// decisions.

import { pagesByCursor } from "./pages.ts";
import type { CreditBalance, Moment } from "./shapes.ts";
import type { CallOptions, Transport } from "./transport.ts";

/** Credits to grant. */
export interface GrantInput {
  readonly userId: string;
  /** Id or name of the pack. */
  readonly packId: string;
  /** Needed for a pack without items; ignored for others. */
  readonly quantity?: number | undefined;
  /** Your order's id, say. A second grant with it grants nothing and answers the balances of the first. */
  readonly externalRef?: string | undefined;
  /** The pack's default when left out; null for never. */
  readonly expiresAt?: Moment | null | undefined;
  /** `purchase` by default. */
  readonly source?: "purchase" | "grant" | "refund" | "manual" | undefined;
  readonly notes?: string | undefined;
}

/** A balance that a grant issued. */
export interface GrantedBalance {
  readonly balanceId: string;
  readonly packItemId: string | null;
  readonly remaining: number;
  readonly expiresAt: string | null;
}

/** The answer to a grant. */
export interface GrantAnswer {
  /** One for each item of the pack, or one for a pack without items. */
  readonly balances: readonly GrantedBalance[];
  /** This and the next two members are those of the first balance. */
  readonly balanceId: string;
  readonly remaining: number;
  readonly expiresAt: string | null;
}

/** A balance with its new expiry. */
export interface ExtendInput {
  readonly balanceId: string;
  /** Not before the expiry that it has; null for never. */
  readonly expiresAt: Moment | null;
  readonly reason?: string | undefined;
}

/** The answer to an extension. */
export interface ExtendAnswer {
  readonly balanceId: string;
  readonly remaining: number;
  readonly expiresAt: string | null;
}

/** A balance to revoke. */
export interface RevokeInput {
  readonly balanceId: string;
  readonly reason?: string | undefined;
}

/** The answer to a revoke. */
export interface RevokeAnswer {
  readonly balanceId: string;
  readonly remaining: 0;
}

/** Which balances to list. */
export interface CreditQuery {
  readonly userId: string;
  /** An event's name or pattern: lists only balances that could pay for it. */
  readonly event?: string | undefined;
  /** Whether to list expired and revoked balances too. */
  readonly includeExpired?: boolean | undefined;
}

/** A user's balances in the order in which they are spent. */
export interface CreditList {
  readonly credits: readonly CreditBalance[];
}

/** Which ledger entries to list. */
export interface LedgerQuery {
  readonly userId: string;
  readonly balanceId?: string | undefined;
  /** 1 to 500, 50 by default. */
  readonly limit?: number | undefined;
  /** `nextCursor` of the page before. */
  readonly cursor?: string | undefined;
}

/** A movement of credits. */
export interface LedgerEntry {
  readonly id: string;
  readonly balanceId: string;
  readonly packId: string;
  /** Below 0 for credits spent or held, above 0 for credits granted or given back. */
  readonly delta: number;
  readonly reason:
    | "event_committed"
    | "reservation_held"
    | "reservation_released"
    | "reservation_expired"
    | "grant"
    | "admin_adjust"
    | "merged_from_alias"
    | "merge_dedupe";
  readonly eventId: string | null;
  readonly reservationId: string | null;
  readonly occurredAt: string;
  readonly notes: string | null;
}

/** A page of the ledger, newest first. */
export interface LedgerPage {
  readonly entries: readonly LedgerEntry[];
  /** null on the last page. */
  readonly nextCursor: string | null;
}

const LEDGER_PAGE_MAX = 500;

/** `client.credits`. */
export class Credits {
  readonly #transport: Transport;

  /** Called by the client. */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

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
    return this.#transport.send(
      { method: "POST", path: "/credits/grant", access: "credit_write", body: input },
      call,
    );
  }

  /**
   * Gives a balance a later expiry. One that has expired can be spent again.
   *
   * @example
   * ```ts
   * const { balanceId } = await client.credits.grant({ userId: "user_1", packId: "Creator Bundle" });
   * const extended = await client.credits.extend({ balanceId, expiresAt: null });
   * console.log(extended.expiresAt); // null
   * ```
   */
  extend(input: ExtendInput, call?: CallOptions): Promise<ExtendAnswer> {
    return this.#transport.send(
      { method: "POST", path: "/credits/extend", access: "credit_write", body: input },
      call,
    );
  }

  /**
   * Revokes a balance: what is left of it is gone, what was spent stays spent.
   *
   * @example
   * ```ts
   * const { balanceId } = await client.credits.grant({ userId: "user_1", packId: "Image Top-Up" });
   * const revoked = await client.credits.revoke({ balanceId, reason: "refunded" });
   * console.log(revoked.remaining); // 0
   * ```
   */
  revoke(input: RevokeInput, call?: CallOptions): Promise<RevokeAnswer> {
    return this.#transport.send(
      { method: "POST", path: "/credits/revoke", access: "credit_write", body: input },
      call,
    );
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
    return this.#transport.send({ method: "GET", path: "/credits", access: "any", query }, call);
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
    return this.#transport.send(
      { method: "GET", path: "/credits/history", access: "secret", query },
      call,
    );
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
