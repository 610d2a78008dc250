// An organisation whose members call at once, so that many of their turns are in one batch of the journal: what they add up to
// at its account is written once. The model is not asked about these users.

import type { Random } from "../model/random.ts";
import { eventOf } from "../model/workload_inputs.ts";
import type { MatchRule, Plan } from "../model/document.ts";
import type { SimRequest } from "./history.ts";
import type { Tenant } from "./tenants.ts";

const ACCOUNT = "crew-account";
const MEMBERS = ["crew-1", "crew-2", "crew-3"];

/** Bursts of calls of one organisation. */
export class Crew {
  readonly tenant: Tenant;
  readonly #random: Random;
  readonly #plan: Plan;
  constructor(random: Random, tenant: Tenant) {
    this.#random = random;
    this.tenant = tenant;
    this.#plan = random.pick(tenant.catalog.plans);
  }

  /** One in the first workspace without a cap, which calls that the model is not asked about would fill; null for none. */
  static of(random: Random, tenants: readonly Tenant[]): Crew | null {
    const tenant = tenants.find(({ isCanary, caps }) => !isCanary && caps.operationCap === null);
    return tenant === undefined ? null : new Crew(random, tenant);
  }

  /** What makes the organisation. */
  get first(): SimRequest[] {
    return [...[ACCOUNT, ...MEMBERS].map((userId) => this.#subscribe(userId)), ...MEMBERS.map(joins)];
  }

  /** Calls that clients make at the same moment. */
  burst(): SimRequest[] {
    const { matches } = this.#random.pick(this.#plan.limits);
    const [rule] = matches as [MatchRule];
    return Array.from({ length: this.#random.whole(6, 14) }, () => this.#call(rule));
  }

  #call(rule: MatchRule): SimRequest {
    const random = this.#random;
    const userId = random.pick(MEMBERS);
    const op = random.weighted({ track: 10, reserve: 8, own: 1, subscribe: 1, parent: 0.5 });
    switch (op) {
      case "track":
      case "reserve":
        return { op, input: { userId, ...eventOf(rule), count: random.whole(1, 3) } };
      case "own":
        return { op: "track", input: { userId: ACCOUNT, ...eventOf(rule) } };
      case "subscribe":
        return this.#subscribe(random.pick([ACCOUNT, userId]));
      case "parent":
        return joins(userId);
    }
  }

  /** The account has room for all, a member for a few calls. */
  #subscribe(userId: string): SimRequest {
    const { id: planId, limits } = this.#plan;
    const quota = userId === ACCOUNT ? 10_000 : this.#random.whole(1, 30);
    const customLimits = Object.fromEntries(limits.map(({ id }) => [id, { quota }]));
    return { op: "subscribe", input: { userId, planId, customLimits } };
  }
}

function joins(userId: string): SimRequest {
  return { op: "parent", input: { userId, parentId: ACCOUNT } };
}
