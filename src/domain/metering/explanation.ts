// The shape of an explanation: groups and balances beside the answer of can-use.

import type { Amount } from "../values/amount.ts";
import type { CreditBalance } from "../state/credit.ts";
import type { Difference } from "../values/match.ts";
import type { Subscription } from "../state/subscription.ts";
import type { NamedSubscription } from "../plans/entitlement.ts";
import type { Run } from "../state/run.ts";
import type { ReserveReason } from "../state/refused_call.ts";
import type { GroupReading } from "./availability.ts";
import type { RateRow } from "../catalog/rate_row.ts";
import type { CreditCost, RatedPart } from "../pricing/credits.ts";
import type { Retry } from "./guards.ts";

/** How a group's rules match a call: "event" if no rule names the event, "metadata" with the nearest rule's differences. */
export type Meeting =
  | { readonly why: "matched" | "event" }
  | { readonly why: "metadata"; readonly metadata: ReadonlyMap<string, Difference> };

/** Whether a call fits into a group that covers it, without other groups and credits. */
export interface Fit {
  readonly need: Amount;
  /** What is left for a reserve, headroom included. */
  readonly room: Amount;
  readonly fits: boolean;
}

/** What a quota is made of. */
export interface QuotaParts {
  /** The custom limit, else the plan's quota for each seat. */
  readonly own: Amount;
  /** The seats of the primary subscription. */
  readonly quantity: number;
  /** What add-ons add, each with its subscription. */
  readonly addOns: readonly { readonly row: Subscription; readonly quota: Amount }[];
}

/** A limit group of the active plan, as an explanation shows it. */
export interface ExplainedGroup extends GroupReading {
  /** Whether the subscription has a quota of its own in place of the plan's. */
  readonly isCustom: boolean;
  /** What the quota is made of; null for a single seat without add-ons. */
  readonly parts: QuotaParts | null;
  /** The part of the count that open reservations hold. */
  readonly held: Amount;
  readonly meeting: Meeting;
  /** null where the group does not cover the call. */
  readonly fit: Fit | null;
}

/** An active balance, and what it would pay of the call. */
export interface ExplainedBalance {
  readonly row: CreditBalance;
  readonly packName: string;
  /** Whether one of its rules covers the call. */
  readonly matches: boolean;
  /** What a reserve would take from it now; 0 if the call is refused. */
  readonly wouldPay: Amount;
}

/** A user above: every group of its plan, and its balances. */
export interface ExplainedLevel {
  readonly userId: string;
  readonly groups: readonly ExplainedGroup[];
  readonly credits: readonly ExplainedBalance[];
}

/** What a call costs in credits at most, and how that adds up. */
export interface ExplainedRate extends CreditCost {
  /** null for an event that no rate covers. */
  readonly row: RateRow | null;
  /** Empty for a call that is not rated. */
  readonly parts: readonly RatedPart[];
}

export interface ExplainAnswer extends Retry {
  readonly allowed: boolean;
  readonly matched: boolean;
  readonly reasons: readonly ReserveReason[];
  /** The ids of the users that refuse, in the order of the path, then those of runs, innermost first. */
  readonly refusedBy: readonly string[];
  /** The run of the call and those around it, innermost first; empty for a call without one. */
  readonly runs: readonly Run[];
  /** One or two sentences for a support person. */
  readonly text: string;
  /** The primary subscription; null for none. */
  readonly subscription: NamedSubscription | null;
  /** Every group of that plan, in its order. */
  readonly groups: readonly ExplainedGroup[];
  /** In the order of consumption. */
  readonly credits: readonly ExplainedBalance[];
  /** The users above, nearest first; null for a user without a parent. */
  readonly levels: readonly ExplainedLevel[] | null;
  /** What the call costs in credits; null for a catalog without rates. */
  readonly rate: ExplainedRate | null;
}
