// Subscriptions, users and plans.

import { CallGroup } from "./call_group.ts";
import type { CallOptions } from "./transport.ts";
import { pathMember } from "./wire.ts";
import type {
  CanceledSubscription,
  CancelInput,
  Plan,
  Rate,
  Subscription,
  SubscriptionInput,
  User,
} from "./wire_types.ts";

/** Names a subscription: by `provider` and `externalId`, or without both the user's default subscription. */
export type SubscriptionKey = Pick<CancelInput, "userId" | "provider" | "externalId">;

/** `client.subscriptions`. */
export class Subscriptions extends CallGroup {
  /**
   * Writes a subscription: creates it, changes its plan, or reactivates it. Repeating a call changes nothing, so you can
   * make it on each webhook of your payment provider. `quantity` is the number of seats: the quotas of the plan are
   * multiplied by it. `trial: true` begins the trial of the plan, once for each user. With `at`, the plan changes then:
   * give a time, or `period_end`.
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
    return this.send("POST", "/subscriptions", "secret", call, input);
  }

  /**
   * Drops the change of plan that was asked for with `at`. Without one the call rejects with `not_found`.
   *
   * @example
   * ```ts
   * await client.subscriptions.upsert({ userId: "user_1", planId: "free", at: "period_end" });
   * const { scheduled } = await client.subscriptions.unschedule({ userId: "user_1" });
   * console.log(scheduled); // null
   * ```
   */
  unschedule(input: SubscriptionKey, call?: CallOptions): Promise<Subscription> {
    return this.send("DELETE", "/subscriptions/scheduled", "secret", call, input);
  }

  /**
   * Ends a subscription, now or at a later time. If it has already ended, the call rejects with `already_canceled`.
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
    return this.send("DELETE", "/subscriptions", "secret", call, input);
  }
}

/** `client.users`. */
export class Users extends CallGroup {
  /**
   * Reads everything about a user. An unknown user has empty values.
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
    return await this.send("GET", path, "secret", call);
  }
}

/** `client.plans`. */
export class Plans extends CallGroup {
  /**
   * Lists the plans on offer, oldest first: for your pricing page, with a public key too.
   *
   * @example
   * ```ts
   * const plans = await client.plans.list();
   * console.log(plans.map(({ name }) => name)); // ["Free", "Pro", "Team", "Organisation", "Trial"]
   * ```
   */
  list(call?: CallOptions): Promise<Plan[]> {
    return this.send("GET", "/plans", "any", call);
  }

  /**
   * Lists what calls cost in credits: for your pricing page, with a public key too. The first rate that covers an event
   * is its rate. Empty for a catalog without rates.
   *
   * @example
   * ```ts
   * const rates = await client.plans.rates();
   * console.log(rates); // []
   * ```
   */
  async rates(call?: CallOptions): Promise<Rate[]> {
    const { rates } = await this.send<{ rates: Rate[] }>("GET", "/rates", "any", call);
    return rates;
  }
}
