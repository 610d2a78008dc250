// Shapes that several calls share, with the service's own field names. Times are ISO 8601 text in UTC.

/** What a limit group or balance counts in. */
export type Unit = "count" | "tokens" | "seconds" | "cents";

/** A key's mode; the two share plans and nothing else. */
export type Mode = "live" | "test";

/** A moment that you give: ISO 8601 text with its offset from UTC, or a Date. */
export type Moment = string | Date;

/** What you want to remember of an event: any JSON object of up to 16 KiB. Rules may ask for its members. */
export type Metadata = Readonly<Record<string, unknown>>;

/** Which events a limit group or balance is for. */
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
  /** Settled and held. */
  readonly count: number;
  readonly remaining: number;
  /** What the window's counted events cost. */
  readonly costCents: number;
  /** Values that the group's rules ask for, by metadata member. */
  readonly filters: Readonly<Record<string, readonly string[]>>;
}

/** A running window; a lifetime plan's has no end. */
export interface Period {
  readonly start: string;
  readonly end: string | null;
}

/** Credits of one pack item. */
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
  /** null: never. */
  readonly expiresAt: string | null;
  readonly status: "active" | "expired" | "depleted" | "revoked";
  readonly matches: readonly MatchRule[];
  /** Higher ones are spent first. */
  readonly priority: number;
}

/** A subscription as reports name it. */
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
