// The shape of an explanation: what it shows of groups and balances beside what can-use would say. Section 1 of beyond.md,
// "Explain".

import type { Amount } from "../values/amount.ts";
import type { CreditBalance } from "../state/credit.ts";
import type { Difference } from "../values/match.ts";
import type { NamedSubscription } from "../plans/entitlement.ts";
import type { ReserveReason } from "../state/refused_call.ts";
import type { GroupReading } from "./availability.ts";

/** How a group's rules met the call; the differing keys of its nearest rule where one names the event. */
export type Meeting =
  | { readonly why: "matched" | "event" }
  | { readonly why: "metadata"; readonly metadata: ReadonlyMap<string, Difference> };

/** What a call asks of a group that covers it, by the group and the plan alone. */
export interface Fit {
  readonly need: Amount;
  /** What a reserve could take, headroom included. */
  readonly room: Amount;
  readonly fits: boolean;
}

/** A limit group of the plan in force, as an explanation shows it. */
export interface ExplainedGroup extends GroupReading {
  /** Whether the subscription has a quota of its own in place of the plan's. */
  readonly isCustom: boolean;
  /** What would come back to the counter, were every open reservation released. */
  readonly held: Amount;
  readonly meeting: Meeting;
  /** null where the group does not cover the call. */
  readonly fit: Fit | null;
}

/** A balance that has something to spend, and its part in the call. */
export interface ExplainedBalance {
  readonly row: CreditBalance;
  readonly packName: string;
  /** Whether a rule of it covers the call. */
  readonly matches: boolean;
  /** What a reserve would take from it now; 0 where the call is refused. */
  readonly wouldPay: Amount;
}

export interface ExplainAnswer {
  readonly allowed: boolean;
  readonly matched: boolean;
  readonly reasons: readonly ReserveReason[];
  /** One or two sentences for a support person. */
  readonly text: string;
  /** The one that the plan in force comes from. */
  readonly subscription: NamedSubscription | null;
  /** Every group of that plan, in its order. */
  readonly groups: readonly ExplainedGroup[];
  /** In the order of consumption. */
  readonly credits: readonly ExplainedBalance[];
}
