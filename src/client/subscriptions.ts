// Subscriptions, users and plans: who is entitled to what. Section 4 of the decisions.

import type {
  Counter,
  CreditBalance,
  DuplicateActiveSubscriptions,
  MatchRule,
  Moment,
  Period,
  Unit,
} from "./shapes.ts";
import type { CallOptions, Transport } from "./transport.ts";
import { pathMember } from "./wire.ts";

/** Which row of a user: both ids or neither, for the default row. */
export interface SubscriptionKey {
  readonly userId: string;
  /** Who sells it: `stripe`. */
  readonly provider?: string | undefined;
  /** Its id over there. */
  readonly externalId?: string | undefined;
}

/** A subscription to write. */
export interface SubscriptionInput extends SubscriptionKey {
  /** Id or name of the plan. */
  readonly planId: string;
  /** Quotas in place of the plan's, by group id. Left out: as they are; null: the plan's again. */
  readonly customLimits?: Readonly<Record<string, { readonly quota: number }>> | null | undefined;
  /** Not in the future; counts when the row is made. */
  readonly startsAt?: Moment | undefined;
  /** In the future. Left out: no end. */
  readonly endsAt?: Moment | undefined;
  /** What its windows are counted from. Left out: as it is; null: the plan's anchor again. */
  readonly cycleStart?: Moment | null | undefined;
}

/** A subscription to end. */
export interface CancelInput extends SubscriptionKey {
  /** Now by default. */
  readonly endsAt?: Moment | undefined;
  readonly reason?: string | undefined;
}

/** A subscription. */
export interface Subscription {
  readonly subscriptionId: string;
  readonly userId: string;
  readonly planId: string;
  readonly startedAt: string;
  readonly endsAt: string | null;
  readonly cycleAnchorAt: string | null;
  readonly provider: string | null;
  readonly externalId: string | null;
  /** Quotas in place of the plan's, by group id; null where there are none. */
  readonly customLimits: Readonly<Record<string, { readonly quota: number }>> | null;
}

/** A subscription that ends. */
export type CanceledSubscription = Pick<Subscription, "subscriptionId" | "userId" | "planId"> & {
  readonly endsAt: string;
};

/** A row of a user's subscription history. */
export interface SubscriptionEvent {
  readonly id: string;
  readonly type: "created" | "plan_changed" | "canceled" | "reactivated" | "ended" | "merged" | "promoted";
  readonly subscriptionId: string;
  readonly planId: string;
  readonly previousPlanId: string | null;
  readonly reason: string | null;
  readonly at: string;
}

/** Everything about a user. */
export interface User {
  /** The canonical id. */
  readonly userId: string;
  readonly aliases: readonly string[];
  /** The one that grants entitlement. */
  readonly subscription: Subscription | null;
  /** Newest first, at most 50. */
  readonly history: readonly SubscriptionEvent[];
  readonly period: Period | null;
  readonly counters: readonly Counter[];
  readonly credits: readonly CreditBalance[];
  readonly duplicateActiveSubscriptions: DuplicateActiveSubscriptions | null;
}

/** A plan on offer. */
export interface Plan {
  readonly id: string;
  readonly name: string;
  readonly period: {
    readonly type: "daily" | "weekly" | "monthly" | "lifetime";
    readonly anchor: "subscription_start" | "calendar";
  };
  readonly limits: readonly LimitGroup[];
}

/** A limit of a plan. */
export interface LimitGroup {
  readonly id: string;
  readonly label: string;
  readonly unit: Unit;
  readonly quota: number;
  /** The first event pattern of `matches`. */
  readonly event: string;
  readonly matches: readonly MatchRule[];
}

/** `client.subscriptions`. */
export class Subscriptions {
  readonly #transport: Transport;

  /** A client makes it. */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Writes the subscription of (user, provider, external id), or the user's default one: made, changed to another
   * plan, or brought back. Send it as often as you like, from each webhook of your payment provider.
   *
   * @example
   * ```ts
   * const row = await client.subscriptions.upsert({
   *   userId: "user_2",
   *   planId: "pro",
   *   provider: "stripe",
   *   externalId: "sub_1",
   * });
   * console.log(row.planId); // "plan_pro"
   * ```
   */
  upsert(input: SubscriptionInput, call?: CallOptions): Promise<Subscription> {
    return this.#transport.send(
      { method: "POST", path: "/subscriptions", access: "secret", body: input },
      call,
    );
  }

  /**
   * Ends a subscription now or later. One that has ended rejects with `already_canceled`.
   *
   * @example
   * ```ts
   * const { endsAt } = await client.subscriptions.cancel({
   *   userId: "user_1",
   *   endsAt: "2026-02-01T00:00:00Z",
   *   reason: "asked by mail",
   * });
   * console.log(endsAt); // "2026-02-01T00:00:00.000Z"
   * ```
   */
  cancel(input: CancelInput, call?: CallOptions): Promise<CanceledSubscription> {
    return this.#transport.send(
      { method: "DELETE", path: "/subscriptions", access: "secret", query: input },
      call,
    );
  }
}

/** `client.users`. */
export class Users {
  readonly #transport: Transport;

  /** A client makes it. */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Everything about a user. One that nobody has seen yet has empty values.
   *
   * @example
   * ```ts
   * const user = await client.users.get("user_1");
   * console.log(user.subscription?.planId); // "plan_pro"
   * console.log(user.history.map(({ type }) => type)); // ["created"]
   * ```
   */
  async get(userId: string, call?: CallOptions): Promise<User> {
    const path = `/users/${pathMember("userId", userId)}`;
    return await this.#transport.send({ method: "GET", path, access: "secret" }, call);
  }
}

/** `client.plans`. */
export class Plans {
  readonly #transport: Transport;

  /** A client makes it. */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * The plans on offer, oldest first: for your pricing page, also with a public key.
   *
   * @example
   * ```ts
   * const plans = await client.plans.list();
   * console.log(plans.map(({ name }) => name)); // ["Free", "Pro", "Team", "Trial"]
   * ```
   */
  list(call?: CallOptions): Promise<Plan[]> {
    return this.#transport.send({ method: "GET", path: "/plans", access: "any" }, call);
  }
}
