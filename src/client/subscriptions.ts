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

/** Names a subscription. Give both `provider` and `externalId`, or neither for the user's default subscription. */
export interface SubscriptionKey {
  readonly userId: string;
  /** Your payment provider, `stripe` say. */
  readonly provider?: string | undefined;
  /** The subscription's id at the provider. */
  readonly externalId?: string | undefined;
}

/** A subscription to write. */
export interface SubscriptionInput extends SubscriptionKey {
  /** Id or name of the plan. */
  readonly planId: string;
  /** Quotas in place of the plan's, by group id. Left out they stay as they are; null brings back the plan's. */
  readonly customLimits?: Readonly<Record<string, { readonly quota: number }>> | null | undefined;
  /** Not in the future; read only when the subscription is new. */
  readonly startsAt?: Moment | undefined;
  /** In the future; no end by default. */
  readonly endsAt?: Moment | undefined;
  /** The time from which windows are counted. Left out it stays as it is; null brings back the plan's anchor. */
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

/** The answer to a cancel. */
export type CanceledSubscription = Pick<Subscription, "subscriptionId" | "userId" | "planId"> & {
  readonly endsAt: string;
};

/** An entry of a user's subscription history. */
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

  /** Called by the client. */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Writes a subscription: makes it, changes it to another plan, or brings an ended one back. The same call again
   * changes nothing, so you can send it from each webhook of your payment provider.
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
   * Ends a subscription, now or at a later time. One that has ended already rejects with `already_canceled`.
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

  /** Called by the client. */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Reads everything about a user. A user whom the service does not know yet has empty values.
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

  /** Called by the client. */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Lists the plans on offer, oldest first: for your pricing page, with a public key too.
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
