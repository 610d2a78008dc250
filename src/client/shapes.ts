// Types that several calls share, with the service's own field names. Times in answers are ISO 8601 text in UTC.

/** The unit of a limit group or credit balance. */
export type Unit = "count" | "tokens" | "seconds" | "cents";

/** The mode of a key. Live and test share the catalog and no data. */
export type Mode = "live" | "test";

/** A time in an input: ISO 8601 text with its offset from UTC, or a Date. */
export type Moment = string | Date;

/** Metadata of an event: any JSON object of up to 16 KiB. Rules of limit groups may ask for its members. */
export type Metadata = Readonly<Record<string, unknown>>;

/** Which events a limit group or credit balance covers. */
export interface MatchRule {
  /** A name, a prefix followed by `*`, or `*`. */
  readonly event: string;
  readonly metadata?: Readonly<Record<string, string>>;
}

/** The usage of a limit group in its running window. */
export interface Counter {
  readonly groupId: string;
  /** The group's first event pattern. */
  readonly event: string;
  readonly label: string;
  readonly unit: Unit;
  readonly quota: number;
  /** Used and held. */
  readonly count: number;
  readonly remaining: number;
  /** The cost of the events counted in the window, in cents. */
  readonly costCents: number;
  /** The metadata values that the group's rules ask for, by member. */
  readonly filters: Readonly<Record<string, readonly string[]>>;
}

/** The running window of a plan; `end` is null for a lifetime plan. */
export interface Period {
  readonly start: string;
  readonly end: string | null;
}

/** A balance of credits. */
export interface CreditBalance {
  readonly balanceId: string;
  readonly packId: string;
  readonly packName: string;
  /** null for a pack without items. */
  readonly packItemId: string | null;
  readonly kind: "per_type" | "generic";
  readonly unit: Unit;
  readonly remaining: number;
  readonly initial: number;
  readonly grantedAt: string;
  /** null for never. */
  readonly expiresAt: string | null;
  readonly status: "active" | "expired" | "depleted" | "revoked";
  readonly matches: readonly MatchRule[];
  /** Higher ones are spent first. */
  readonly priority: number;
}

/** A subscription in a report. */
export interface SubscriptionRef {
  readonly subscriptionId: string;
  readonly planId: string;
  readonly planName: string;
  readonly provider: string | null;
  readonly externalId: string | null;
  readonly startedAt: string;
  readonly endsAt: string | null;
}

/** Several active subscriptions of one user. */
export interface DuplicateActiveSubscriptions {
  /** The one that grants entitlement. */
  readonly primary: SubscriptionRef;
  readonly duplicates: readonly SubscriptionRef[];
}
