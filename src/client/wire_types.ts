// The inputs and answers of the API as types. Written by `deno task client:types` from the API's OpenAPI document:
// change the document's schemas, not this file. Times in answers are ISO 8601 text in UTC.
// deno-fmt-ignore-file

/** A time in an input: ISO 8601 text with its offset from UTC, or a Date. */
export type Moment = string | Date;

/** Every error code of the service. */
export type ServiceErrorCode = "unavailable" | "invalid_key" | "invalid_or_expired_token" | "not_found"
  | "method_not_allowed" | "requires_secret_key" | "forbidden" | "rate_limited"
  | "payload_too_large" | "invalid_request" | "idempotency_conflict" | "not_implemented"
  | "workspace_limit_reached" | "test_quota_exceeded" | "credit_pack_not_found"
  | "invalid_quantity" | "credit_balance_not_found" | "alias_conflict" | "alias_cycle"
  | "parent_cycle" | "path_too_long" | "consent_required" | "reservation_not_pending"
  | "run_ended" | "already_canceled" | "trial_used" | "catalog_in_use"
  | "no_subscription" | "unmatched_event" | "unpriced_model" | "limit_reached"
  | "reservation_headroom_exceeded" | "member_limit_reached" | "run_limit_reached"
  | "rate_limit_reached" | "concurrency_limit_reached" | "ai_budget_exceeded"
  | "generation_failed" | "not_processed" | "internal_error";

/** The mode of a key. Live and test share the catalog and no data. */
export type Mode = "live" | "test";

/** The unit of a limit group or credit balance. */
export type Unit = "count" | "tokens" | "seconds" | "cents" | "credits";

/** Metadata of an event: any JSON object of up to 16 KiB. Limit groups can match its members. */
export type Metadata = Readonly<Record<string, unknown>>;

/** Which events a limit group or a credit balance covers. */
export interface MatchRule {
  /** An event type, a prefix with a final "*", or "*". */
  readonly event: string;
  /** Values that the call's metadata must have. */
  readonly metadata?: Readonly<Record<string, string>>;
}

/** The current window of a plan. */
export interface Period {
  readonly start: string;
  /** null for a lifetime period. */
  readonly end: string | null;
}

/** The usage of a limit group in its current window. */
export interface Counter {
  readonly groupId: string;
  /** The pattern of the first rule of the group. */
  readonly event: string;
  readonly label: string;
  readonly unit: Unit;
  readonly quota: number;
  /** Used and held. */
  readonly count: number;
  readonly remaining: number;
  /** The cost of the counted events, without open holds. */
  readonly costCents: number;
  /** The distinct metadata values in the rules of the group. */
  readonly filters: Readonly<Record<string, readonly string[]>>;
  /**
   * Present where the group has overage: the part of the count that was sold past the quota. It uses up
   * none of the quota.
   */
  readonly overage?: number;
  /**
   * Present where the group has overage: the most in force, of the catalog or the user's own cap; null
   * for no limit.
   */
  readonly overageMax?: number | null;
  /**
   * Present where the group has a period of its own: its running window; null where none runs, and for a
   * guard.
   */
  readonly period?: Period | null;
  /** Present for a guard: a rate or a concurrency limit. count is what counts now. */
  readonly window?: CounterWindow;
}

/** Of a rate or a concurrency limit: what counts now. */
export interface CounterWindow {
  readonly type: "rolling" | "concurrent";
  /** Of a rate. */
  readonly seconds?: number;
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
  /** null: never. */
  readonly expiresAt: string | null;
  readonly status: "active" | "expired" | "depleted" | "revoked";
  readonly matches: readonly MatchRule[];
  /** Balances with a higher priority are used first. */
  readonly priority: number;
  /**
   * Present where the catalog has plans that include packs, or packs with a price. plan: included in the
   * plan for its running window; rollover: left of an earlier window; topup: bought by itself; null: any
   * other grant.
   */
  readonly origin?: "plan" | "rollover" | "topup" | null;
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

/** The value of a feature. */
export type FeatureValue = boolean | number | string | readonly string[];

/** A feature in force. */
export interface Feature {
  readonly value: FeatureValue;
  /** custom: the customFeatures of a subscription; default: the catalog's featureDefaults. */
  readonly from: "custom" | "plan" | "addon" | "default";
  /** The canonical id of the user whose subscription gives it; null for a default. */
  readonly of: string | null;
}

/** Several active subscriptions of one user. */
export interface DuplicateActiveSubscriptions {
  /** The subscription that grants the plan. */
  readonly primary: SubscriptionRef;
  readonly duplicates: readonly SubscriptionRef[];
}

/** Size of future work. Which member counts depends on each group's unit. */
export interface HeldSize {
  /** How many: units in limit groups that count; also multiplies the price of a call or image. Default 1. */
  readonly count?: number | undefined;
  /** Tokens in limit groups in tokens; also priced in cents by the model's price. */
  readonly inputTokens?: number | undefined;
  /** Cents in limit groups in cents, instead of the model's price of the input. */
  readonly inputCostCents?: number | undefined;
  /**
   * A run of the user: the call is refused where a limit of the run, or of a run around it, leaves no
   * room.
   */
  readonly runId?: string | undefined;
  /** Maximum output tokens: reserved together with inputTokens, and priced in cents by the model's price. */
  readonly maxOutputTokens?: number | undefined;
}

/**
 * Usage as the model server reported it: final tokens, priced in cents and credits by the catalog. Cached
 * tokens and cache writes are parts of inputTokens, reasoningTokens is a part of outputTokens. Not
 * together with costCents or with other amounts of tokens, cents or credits.
 */
export interface ModelUsage {
  /** The whole input, cached tokens and cache writes included. */
  readonly inputTokens?: number | undefined;
  /** The part of the input read from the cache of the provider. */
  readonly cachedInputTokens?: number | undefined;
  /** The part of the input written to the cache of the provider. */
  readonly cacheWriteTokens?: number | undefined;
  /** The part of cacheWriteTokens that is kept for an hour. */
  readonly cacheWrite1hTokens?: number | undefined;
  /** The whole output, reasoning included. */
  readonly outputTokens?: number | undefined;
  /** The part of the output spent on reasoning. */
  readonly reasoningTokens?: number | undefined;
  /** Default: the held seconds; in a track the quantity. */
  readonly seconds?: number | undefined;
  /** Calls, or images, of a model with a price per call. Default: the count of the call. */
  readonly calls?: number | undefined;
}

/** How a call may be made smaller until it is allowed. */
export interface Fit {
  /** The fewest output tokens that are of use; at most maxOutputTokens. */
  readonly minOutputTokens: number;
  /** Models to try after metadata.model, in order of preference; at most 20, each once. */
  readonly models?: readonly string[] | undefined;
}

/** What a call was made to fit to. */
export interface Fitted { readonly model: string | null; readonly maxOutputTokens: number }

/** Options of a reserve. */
export interface ReserveOptions extends HeldSize {
  /**
   * Makes the call smaller until it is allowed: the first model that passes with minOutputTokens, with
   * the most output tokens up to maxOutputTokens.
   */
  readonly fit?: Fit | undefined;
  /** How long the reservation lasts. Default: the app's reservationTtlSeconds. */
  readonly ttlSeconds?: number | undefined;
  /** Stored while prompt logging is on, unless the user opted out of it. */
  readonly prompt?: string | undefined;
}

/** Why a reserve is not allowed. */
export type ReserveReason = "limit_reached" | "reservation_headroom_exceeded" | "unmatched_event"
  | "no_subscription" | "unpriced_model" | "member_limit_reached" | "run_limit_reached"
  | "rate_limit_reached" | "concurrency_limit_reached";

/** A limit group in a reserve's answer. */
export interface ReservedGroup {
  readonly groupId: string;
  readonly unit: Unit;
  readonly quota: number;
  readonly current: number;
  /** The effective limit, where headroom is configured. */
  readonly headroomGate?: number;
  /**
   * Present where the group has overage: the part of the count that was sold past the quota. It uses up
   * none of the quota.
   */
  readonly overage?: number;
  /** Present, like resetsAt, if the group has no room for a refused call. */
  readonly label?: string;
  /** When the window ends; null for a lifetime, a guard, and a session that has not begun. */
  readonly resetsAt?: string | null;
}

/** The limit groups of a user above. */
export interface LevelGroups { readonly userId: string; readonly groups: readonly ReservedGroup[] }

/** The limits of a run after the call. */
export interface RunState { readonly runId: string; readonly limits: readonly RunLimit[] }

/** The answer to a reserve as the service writes it. */
export interface ReserveReply {
  readonly allowed: boolean;
  /** false if no limit group and no credits cover the event, or the user has no subscription. */
  readonly matched: boolean;
  /** Present if allowed. */
  readonly reservationId?: string;
  readonly expiresAt?: string;
  readonly reasons?: readonly ReserveReason[];
  readonly groups?: readonly ReservedGroup[];
  /**
   * Of a refused call with a runId, or of a user with a parent: the ids of the users that refuse, in the
   * order of the path, then those of runs, innermost first.
   */
  readonly refusedBy?: readonly string[];
  /**
   * Present where rates and concurrency limits alone refuse: how long until the same call passes them,
   * unless another call or a settlement comes first; null where it never does.
   */
  readonly retryAfterMs?: number | null;
  /** Present if the user has a parent: the users above, nearest first. */
  readonly levels?: readonly LevelGroups[];
  /** With a runId: the run and those around it, innermost first, after the call. */
  readonly runs?: readonly RunState[];
  /** What the call costs in credits, of a hold at most; present if the catalog has rates. */
  readonly credits?: CreditCost;
  /** With fit, if allowed: the model and the output tokens that are held. */
  readonly fitted?: Fitted;
  /**
   * "unknown_member: metdata": the call has no such member and was answered without it. unpriced_model: a
   * limit group in cents covers the event, but the call has no price. unrated_event: credits are counted
   * for the event, but no rate says how many. tier_unpriced: the usage names another service tier than the
   * standard one, and was priced as the standard one. quantity_not_counted: quantity is above 1, but no
   * matched limit group or balance counts it; use count.
   */
  readonly warnings?: readonly Warning[];
}

/** Amounts to add to what was held; negative ones subtract. */
export interface Extra {
  readonly count?: number | undefined;
  readonly tokens?: number | undefined;
  readonly outputTokens?: number | undefined;
  readonly cents?: number | undefined;
  readonly outputCostCents?: number | undefined;
  readonly seconds?: number | undefined;
  readonly credits?: number | undefined;
}

/** Final amounts, in place of what was held. */
export interface Actual {
  readonly count?: number | undefined;
  readonly tokens?: number | undefined;
  readonly cents?: number | undefined;
  readonly seconds?: number | undefined;
  readonly credits?: number | undefined;
}

/** Options of a commit: what the work used. */
export interface CommitOptions {
  /** Added to the reserved amounts; not for a unit that actual has. */
  readonly extra?: Extra | undefined;
  /** Replaces the reserved amounts. */
  readonly actual?: Actual | undefined;
  /**
   * The total cost of the event, for reports; not together with cents in extra or actual. Limit groups in
   * cents count it only if the model is priced per second.
   */
  readonly costCents?: number | undefined;
  /**
   * Usage as the model server reported it: final tokens, priced in cents and credits by the catalog.
   * Cached tokens and cache writes are parts of inputTokens, reasoningTokens is a part of outputTokens.
   * Not together with costCents or with other amounts of tokens, cents or credits.
   */
  readonly usage?: ModelUsage | undefined;
  /**
   * The usage object of OpenAI and servers compatible with it, Anthropic, Gemini (usageMetadata), Bedrock
   * or the AI SDK, unchanged, instead of usage. A part larger than its whole is added to it, and what a
   * total has above input and output is output.
   */
  readonly providerUsage?: object | null | undefined;
  /** Cut after 32768 bytes of UTF-8. */
  readonly response?: string | undefined;
}

/** What an event cost. */
export interface Cost {
  readonly cents: number;
  /** Whether the model has a price. */
  readonly priced: boolean;
  /** The id of the price. */
  readonly model: string | null;
}

/** What a call costs in credits. */
export interface CreditCost {
  readonly total: number;
  /** Whether a rate of the catalog gives the credits. */
  readonly rated: boolean;
}

/** A warning of an answer, such as `unpriced_model`. */
export type Warning = string;

/** A limit group after a commit. */
export interface CommittedGroup {
  readonly groupId: string;
  readonly unit: Unit;
  readonly quota: number;
  readonly current: number;
  /** Whether this commit took the counter above its quota, beyond what is sold. */
  readonly overflow: boolean;
  /**
   * Present where the group has overage: the part of the count that was sold past the quota. It uses up
   * none of the quota.
   */
  readonly overage?: number;
}

/** By unit, the amount that neither plan nor credits could cover. */
export interface Uncovered {
  readonly count?: number;
  readonly tokens?: number;
  readonly seconds?: number;
  readonly cents?: number;
  readonly credits?: number;
}

/** The answer to a commit. */
export interface CommitAnswer {
  readonly eventId: string;
  readonly groups: readonly CommittedGroup[];
  /** Present if the user has a parent: the users above, nearest first. */
  readonly levels?: readonly {
    readonly userId: string;
    readonly groups: readonly CommittedGroup[];
    readonly uncovered: Uncovered;
  }[];
  /** Whether the reservation had expired and was charged again. */
  readonly recharged: boolean;
  readonly cost: Cost;
  /** What the call costs in credits, of a hold at most; present if the catalog has rates. */
  readonly credits?: CreditCost;
  /**
   * "unknown_member: metdata": the call has no such member and was answered without it. unpriced_model: a
   * limit group in cents covers the event, but the call has no price. unrated_event: credits are counted
   * for the event, but no rate says how many. tier_unpriced: the usage names another service tier than the
   * standard one, and was priced as the standard one. quantity_not_counted: quantity is above 1, but no
   * matched limit group or balance counts it; use count.
   */
  readonly warnings?: readonly Warning[];
}

/** Options of a release. */
export interface ReleaseOptions {
  /** Cut after 500 characters. */
  readonly reason?: string | undefined;
  /** Cut after 100 characters. */
  readonly errorCode?: string | undefined;
  /** Cut after 32768 bytes of UTF-8. */
  readonly response?: string | undefined;
}

/** Options of a track. */
export interface TrackOptions {
  /** How many: units in limit groups that count; also multiplies the price of a call or image. Default 1. */
  readonly count?: number | undefined;
  /** Tokens in limit groups in tokens; also priced in cents by the model's price. */
  readonly inputTokens?: number | undefined;
  /** Cents in limit groups in cents, instead of the model's price of the input. */
  readonly inputCostCents?: number | undefined;
  /**
   * A run of the user: the call is refused where a limit of the run, or of a run around it, leaves no
   * room.
   */
  readonly runId?: string | undefined;
  /**
   * The cost of the event, for reports. Limit groups in cents count it only if the model is priced per
   * second.
   */
  readonly costCents?: number | undefined;
  /**
   * Usage as the model server reported it: final tokens, priced in cents and credits by the catalog.
   * Cached tokens and cache writes are parts of inputTokens, reasoningTokens is a part of outputTokens.
   * Not together with costCents or with other amounts of tokens, cents or credits.
   */
  readonly usage?: ModelUsage | undefined;
  /**
   * The usage object of OpenAI and servers compatible with it, Anthropic, Gemini (usageMetadata), Bedrock
   * or the AI SDK, unchanged, instead of usage. A part larger than its whole is added to it, and what a
   * total has above input and output is output.
   */
  readonly providerUsage?: object | null | undefined;
  /** Cut after 32768 bytes of UTF-8. */
  readonly prompt?: string | undefined;
  /** Cut after 32768 bytes of UTF-8. */
  readonly response?: string | undefined;
}

/** The user's own share of a limit group of a user above. */
export interface OwnShare {
  /** What the user used and holds of the group. */
  readonly count: number;
  /** The most that it may use; null for no limit. */
  readonly quota: number | null;
}

/** The usage of a limit group of a user above. */
export interface LevelCounter extends Counter {
  /** Absent for a guard: it has no shares. */
  readonly member?: OwnShare;
}

/** The answer to a track. */
export interface TrackAnswer {
  readonly eventId: string;
  readonly matchStatus: "matched" | "matched_credits_only" | "unmatched" | "no_subscription";
  readonly matchedGroupIds: readonly string[];
  readonly counters: readonly Counter[];
  /** Present if the user has a parent: the users above, nearest first. */
  readonly levels?: readonly { readonly userId: string; readonly counters: readonly LevelCounter[] }[];
  /** With a runId: the run and those around it, innermost first, after the call. */
  readonly runs?: readonly RunState[];
  readonly cost: Cost;
  /** What the call costs in credits, of a hold at most; present if the catalog has rates. */
  readonly credits?: CreditCost;
  /**
   * "unknown_member: metdata": the call has no such member and was answered without it. unpriced_model: a
   * limit group in cents covers the event, but the call has no price. unrated_event: credits are counted
   * for the event, but no rate says how many. tier_unpriced: the usage names another service tier than the
   * standard one, and was priced as the standard one. quantity_not_counted: quantity is above 1, but no
   * matched limit group or balance counts it; use count.
   */
  readonly warnings?: readonly Warning[];
}

/** The result of one event of a batch. */
export type BatchResult =
  | { readonly ok: true; readonly data: TrackAnswer; readonly error?: undefined }
  | {
    readonly ok: false;
    /** The error of `POST /v1/track` for this event. */
    readonly error: { readonly code: string; readonly message: string; readonly details?: unknown };
    readonly data?: undefined;
  };

/** Credits of a pack that could pay. */
export interface CreditOffer { readonly packId: string; readonly packName: string; readonly available: number }

/** A limit group in the answer to a can-use. */
export interface UseDetail {
  readonly groupId: string;
  readonly current: number;
  readonly quota: number;
  /**
   * Present where the group has overage: the part of the count that was sold past the quota. It uses up
   * none of the quota.
   */
  readonly overage?: number;
  readonly resetsAt: string | null;
  readonly creditAvailable: number;
  readonly creditPacks: readonly CreditOffer[];
}

/** The answer to a can-use: what a reserve would answer now. */
export interface CanUseAnswer {
  readonly allowed: boolean;
  readonly matched: boolean;
  readonly reasons: readonly ReserveReason[];
  readonly details: readonly UseDetail[];
  /**
   * Of a refused call with a runId, or of a user with a parent: the ids of the users that refuse, in the
   * order of the path, then those of runs, innermost first.
   */
  readonly refusedBy?: readonly string[];
  /**
   * Present where rates and concurrency limits alone refuse: how long until the same call passes them,
   * unless another call or a settlement comes first; null where it never does.
   */
  readonly retryAfterMs?: number | null;
  /** Present if the user has a parent: the users above, nearest first. */
  readonly levels?: readonly { readonly userId: string; readonly details: readonly UseDetail[] }[];
  /** With a runId: the run and those around it, innermost first, after the call. */
  readonly runs?: readonly RunState[];
  /** What the call costs in credits, of a hold at most; present if the catalog has rates. */
  readonly credits?: CreditCost;
  /**
   * "unknown_member: metdata": the call has no such member and was answered without it. unpriced_model: a
   * limit group in cents covers the event, but the call has no price. unrated_event: credits are counted
   * for the event, but no rate says how many. tier_unpriced: the usage names another service tier than the
   * standard one, and was priced as the standard one. quantity_not_counted: quantity is above 1, but no
   * matched limit group or balance counts it; use count.
   */
  readonly warnings?: readonly Warning[];
}

/** A limit group of the current plan in an explanation. */
export interface ExplainedGroup {
  readonly groupId: string;
  readonly label: string;
  readonly unit: Unit;
  /** Whether a rule of the group matches the call. */
  readonly covers: boolean;
  /** event: no rule matches the event; metadata: a rule matches the event, but requires other metadata. */
  readonly why: "matched" | "event" | "metadata";
  /** If why is metadata: the keys with other values than the closest rule requires. */
  readonly metadata?: Readonly<Record<string, { readonly wanted: string; readonly given: string | null }>>;
  readonly quota: number;
  /** Whether the quota comes from the customLimits of the subscription. */
  readonly isCustom: boolean;
  /** What the quota is made of; absent for one seat without add-ons. */
  readonly quotaParts?: {
    /** The custom limit, else the plan's quota times quantity. */
    readonly own: number;
    readonly quantity: number;
    readonly addOns: readonly {
      readonly subscriptionId: string;
      readonly planId: string;
      readonly quantity: number;
      /** What it adds: its quota times its quantity. */
      readonly quota: number;
    }[];
  };
  /** Of the group, else of the plan. */
  readonly headroom: { readonly mode: "percent" | "multiplier"; readonly value: number } | null;
  /** The effective limit of reserves: the quota, less the headroom where it is configured. */
  readonly gate: number;
  readonly current: number;
  /**
   * Present where the group has overage: the part of the count that was sold past the quota. It uses up
   * none of the quota.
   */
  readonly overage?: number;
  /** The part of current that open reservations hold. */
  readonly held: number;
  /** null, like room and fits, if the group does not cover the call. */
  readonly need: number | null;
  /** What remains under the effective limit, without credits. */
  readonly room: number | null;
  /** Whether need fits into room, or with overage is sold past it. */
  readonly fits: boolean | null;
}

/** A balance in an explanation. */
export interface ExplainedCredit {
  readonly balanceId: string;
  readonly packId: string;
  readonly packName: string;
  readonly unit: Unit;
  readonly remaining: number;
  readonly expiresAt: string | null;
  /** Whether a rule of the balance matches the call. */
  readonly matches: boolean;
  /** Amount that a reserve would take now; 0 if the call is refused. */
  readonly wouldPay: number;
}

/** What a call costs in credits, and how that adds up. */
export interface ExplainedRate {
  readonly total: number;
  /** Whether a rate of the catalog gives the credits. */
  readonly rated: boolean;
  /** The pattern of the rate; null if none covers the event. */
  readonly event: string | null;
  /** The least that the call costs; the sum of the parts may be lower. */
  readonly minimum: number;
  readonly parts: readonly {
    /** The member of the rate. */
    readonly part: "perCall" | "perImage" | "perMillionInputTokens" | "perMillionCachedInputTokens"
      | "perMillionOutputTokens" | "perSecond" | "perCent";
    /** The calls, tokens, seconds or cents. */
    readonly amount: number;
    readonly rate: number;
    readonly credits: number;
  }[];
}

/** The answer to an explain: what a reserve would answer now, and why. */
export interface Explanation {
  readonly allowed: boolean;
  readonly matched: boolean;
  readonly reasons: readonly ReserveReason[];
  /** One or two sentences for a support person. */
  readonly text: string;
  /** The subscription that grants the plan in force. */
  readonly subscription: { readonly subscriptionId: string; readonly planId: string; readonly planName: string } | null;
  /** Every limit group of the plan, in its order. */
  readonly groups: readonly ExplainedGroup[];
  /** Every balance with remaining credits, in the order of use. */
  readonly credits: readonly ExplainedCredit[];
  /**
   * Of a refused call with a runId, or of a user with a parent: the ids of the users that refuse, in the
   * order of the path, then those of runs, innermost first.
   */
  readonly refusedBy?: readonly string[];
  /**
   * Present where rates and concurrency limits alone refuse: how long until the same call passes them,
   * unless another call or a settlement comes first; null where it never does.
   */
  readonly retryAfterMs?: number | null;
  /** Present if the user has a parent: the users above, nearest first. */
  readonly levels?: readonly {
    readonly userId: string;
    readonly groups: readonly ExplainedGroup[];
    readonly credits: readonly ExplainedCredit[];
  }[];
  /** With a runId: the run and those around it, innermost first, after the call. */
  readonly runs?: readonly RunState[];
  /** The most that the call costs in credits, and how that adds up; present if the catalog has rates. */
  readonly rate?: ExplainedRate;
  /**
   * "unknown_member: metdata": the call has no such member and was answered without it. unpriced_model: a
   * limit group in cents covers the event, but the call has no price. unrated_event: credits are counted
   * for the event, but no rate says how many. tier_unpriced: the usage names another service tier than the
   * standard one, and was priced as the standard one. quantity_not_counted: quantity is above 1, but no
   * matched limit group or balance counts it; use count.
   */
  readonly warnings?: readonly Warning[];
}

/** The counters and credits of a user. */
export interface Usage {
  readonly userId: string;
  /** null without a plan. */
  readonly period: Period | null;
  readonly counters: readonly Counter[];
  readonly credits: readonly CreditBalance[];
  /** Present if the catalog has features: those in force, by key. */
  readonly features?: Readonly<Record<string, Feature>>;
  /** With levels: the users above, nearest first; less with a public key. */
  readonly levels?: readonly {
    /** Only with a secret key. */
    readonly userId?: string;
    /** Only with a secret key. */
    readonly period?: Period | null;
    readonly counters: readonly {
      readonly groupId: string;
      readonly event?: string;
      readonly label: string;
      readonly unit: Unit;
      readonly quota: number;
      readonly count: number;
      readonly remaining: number;
      /**
       * Present where the group has overage: the part of the count that was sold past the quota. It uses
       * up none of the quota.
       */
      readonly overage?: number;
      /**
       * Present where the group has overage: the most in force, of the catalog or the user's own cap;
       * null for no limit.
       */
      readonly overageMax?: number | null;
      readonly costCents?: number;
      readonly filters?: Readonly<Record<string, readonly string[]>>;
      readonly period?: Period | null;
      /** Present for a guard: a rate or a concurrency limit. count is what counts now. */
      readonly window?: CounterWindow;
      /** Absent for a guard: it has no shares. */
      readonly member?: OwnShare;
    }[];
  }[];
  /** Only with a secret key. */
  readonly duplicateActiveSubscriptions?: DuplicateActiveSubscriptions | null;
}

/** Which hours of overage to list. */
export interface OverageQuery {
  readonly userId: string;
  /** Hours that begin at this time or later; 92 days before to by default. */
  readonly from?: Moment | undefined;
  /** Hours that begin before this time; the end of the running hour by default. */
  readonly to?: Moment | undefined;
}

/** What a limit group sold past its quota in an hour. */
export interface OverageHour {
  readonly userId: string;
  readonly groupId: string;
  readonly unit: Unit;
  /** The beginning of the hour. */
  readonly hour: string;
  readonly amount: number;
  /** All of the window, up to and with this hour. */
  readonly total: number;
}

/** What limit groups sold to a user past their quotas. */
export interface OverageList { readonly overage: readonly OverageHour[] }

/** A user's own cap to set. */
export interface SpendCapInput {
  readonly userId?: string | undefined;
  readonly groupId: string;
  /** From 0 to the max of the catalog; null for no cap of the user's own. */
  readonly max: number | null;
}

/** A user's own cap on overage. */
export interface SpendCap { readonly userId: string; readonly groupId: string; readonly max: number | null }

/** The features of a user. */
export interface UserFeatures {
  /** The canonical id. */
  readonly userId: string;
  readonly features: Readonly<Record<string, Feature>>;
}

/** One feature of a user. */
export interface UserFeature {
  /** The canonical id. */
  readonly userId: string;
  readonly key: string;
  /** null if neither plans nor defaults give the user a value. */
  readonly value: FeatureValue | null;
  /** custom: the customFeatures of a subscription; default: the catalog's featureDefaults. */
  readonly from: "custom" | "plan" | "addon" | "default";
  /** The canonical id of the user whose subscription gives it; null for a default. */
  readonly of: string | null;
}

/** A key of a user to create. */
export interface UserKeyInput {
  /** For you: where the key is used. */
  readonly name?: string | undefined;
  /** Real time, also in test mode; null: never. */
  readonly expiresAt?: Moment | undefined;
}

/** A new key of a user. */
export interface CreatedUserKey {
  readonly userKeyId: string;
  /** Begins with "uk_live_" or "uk_test_". Only a hash of it is stored. */
  readonly key: string;
}

/** A key of a user, without the key itself. */
export interface UserKey {
  readonly userKeyId: string;
  readonly name: string | null;
  /** The beginning of the key. */
  readonly prefix: string;
  readonly createdAt: string;
  readonly expiresAt: string | null;
  /** The first use of the last day (UTC) with any; null before it. */
  readonly lastUsedAt: string | null;
}

/** A subscription to write. */
export interface SubscriptionInput {
  readonly userId: string;
  /** The id or the name of the plan. */
  readonly planId: string;
  /** Your payment provider, such as stripe. */
  readonly provider?: string | undefined;
  /** The id of the subscription at the provider. */
  readonly externalId?: string | undefined;
  /** Quotas by group id, instead of those of the plan. Left out: unchanged; null: those of the plan. */
  readonly customLimits?: Readonly<Record<string, { readonly quota: number }>> | null | undefined;
  /** Features by key, instead of those of the plan. Left out: unchanged; null: those of the plan. */
  readonly customFeatures?: Readonly<Record<string, FeatureValue>> | null | undefined;
  /** Not in the future; counts only at creation. */
  readonly startsAt?: Moment | undefined;
  /** In the future. Left out: no end. */
  readonly endsAt?: Moment | undefined;
  /** The start of the windows. Left out: unchanged; null: the anchor of the plan. */
  readonly cycleStart?: Moment | null | undefined;
  /** Seats: the quotas of the plan are multiplied by it. Left out: unchanged; at first 1. */
  readonly quantity?: number | undefined;
  /** true begins the trial of the plan, false ends it and keeps the plan. Left out: unchanged. */
  readonly trial?: boolean | undefined;
  /** When to change to the plan, as a later time or period_end. Left out: now. */
  readonly at?: Moment | "period_end" | undefined;
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
  /** Quotas that replace those of the plan, by group id; null if there are none. */
  readonly customLimits: Readonly<Record<string, { readonly quota: number }>> | null;
  /** Seats; absent for 1. */
  readonly quantity?: number;
  /** null where no trial runs; present if any plan of the app has a trial. */
  readonly trialEndsAt?: string | null;
  /** The change of plan that was asked for ahead; absent or null for none. */
  readonly scheduled?: ScheduledChange | null;
  /** Present if the catalog has features: those that replace the plan's, by key; null if there are none. */
  readonly customFeatures?: Readonly<Record<string, FeatureValue>> | null;
}

/** A change of plan that was asked for ahead. */
export interface ScheduledChange { readonly at: string; readonly planId: string }

/** A subscription to end. */
export interface CancelInput {
  readonly userId: string;
  /** Your payment provider, such as stripe. */
  readonly provider?: string | undefined;
  /** The id of the subscription at the provider. */
  readonly externalId?: string | undefined;
  readonly endsAt?: Moment | undefined;
  /** Cut after 500 characters. */
  readonly reason?: string | undefined;
}

/** The answer to a cancel. */
export interface CanceledSubscription {
  readonly subscriptionId: string;
  readonly userId: string;
  readonly planId: string;
  readonly endsAt: string;
}

/** An entry of a user's subscription history. */
export interface SubscriptionEvent {
  readonly id: string;
  readonly type: "created" | "plan_changed" | "canceled" | "reactivated" | "ended" | "merged"
    | "promoted";
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
  readonly subscription: Subscription | null;
  /** Present if the catalog has add-ons: those in force. */
  readonly addOns?: readonly Subscription[];
  /** Newest first, at most 50. */
  readonly history: readonly SubscriptionEvent[];
  /** null without a plan. */
  readonly period: Period | null;
  readonly counters: readonly Counter[];
  readonly credits: readonly CreditBalance[];
  /** Present if the catalog has features: those in force, by key. */
  readonly features?: Readonly<Record<string, Feature>>;
  readonly duplicateActiveSubscriptions: DuplicateActiveSubscriptions | null;
  /** Present, like path, if the user has a parent or children. */
  readonly parentId?: string | null;
  /** The user, its parent, and so on. */
  readonly path?: readonly string[];
  /** Present if limits are set for the user under its parent. */
  readonly memberLimits?: Readonly<Record<string, { readonly quota: number }>>;
  /** Present if the user has caps of its own on overage. */
  readonly spendCaps?: Readonly<Record<string, { readonly max: number }>>;
}

/** The parent of a user, and the shares of its pools. */
export interface ParentInput {
  /** null: the user has no parent any more. */
  readonly parentId: string | null;
  /**
   * The most that the user may use of limit groups of the users above, by group id. Left out: unchanged
   * under the same parent.
   */
  readonly memberLimits?: Readonly<Record<string, { readonly quota: number }>> | null | undefined;
}

/** A user with its path. */
export interface ParentAnswer {
  readonly userId: string;
  readonly parentId: string | null;
  /** The user, its parent, and so on. */
  readonly path: readonly string[];
  readonly memberLimits: Readonly<Record<string, { readonly quota: number }>> | null;
}

/** Which children to list. */
export interface ChildrenQuery {
  /** 1 to 100, default 20. */
  readonly limit?: number | undefined;
  /** The cursor of the previous page. */
  readonly cursor?: string | undefined;
}

/** A user directly below another one. */
export interface Child { readonly userId: string; readonly children: number }

/** A page of children. */
export interface ChildrenPage { readonly children: readonly Child[]; readonly cursor: string | null }

/** Which members to list. */
export interface MembersQuery {
  /** A limit group of the user's plan in force. */
  readonly groupId: string;
  /** 1 to 100, default 20. */
  readonly limit?: number | undefined;
  /** The cursor of the previous page. */
  readonly cursor?: string | undefined;
}

/** What a user below used of a limit group. */
export interface Member {
  readonly userId: string;
  /** Used and held: whole calls, paid by the plan or by credits. */
  readonly count: number;
  /** The most that it may use: of its memberLimits, else the group's perMember; null for no limit. */
  readonly quota: number | null;
  /** The cost of the counted events. */
  readonly costCents: number;
}

/** A page of members. */
export interface MembersPage { readonly members: readonly Member[]; readonly cursor: string | null }

/** A limit of a plan. */
export interface LimitGroup {
  readonly id: string;
  readonly label: string;
  readonly unit: Unit;
  readonly quota: number;
  /** The pattern of the first rule. */
  readonly event: string;
  readonly matches: readonly MatchRule[];
  /** What it sells past its quota, null for no limit; absent for nothing. */
  readonly overage?: { readonly max: number | null };
  /** The most that each user below may use of it; absent for no such limit. */
  readonly perMember?: { readonly quota: number };
  /** When the group counts; absent for the period of the plan. */
  readonly period?: {
    readonly type: "hourly" | "daily" | "weekly" | "monthly" | "yearly" | "lifetime" | "session"
      | "rolling" | "concurrent";
    readonly anchor?: "subscription_start" | "calendar";
    readonly seconds?: number;
  };
}

/** A plan on offer. */
export interface Plan {
  readonly id: string;
  readonly name: string;
  readonly period: {
    readonly type: "hourly" | "daily" | "weekly" | "monthly" | "yearly" | "lifetime";
    readonly anchor: "subscription_start" | "calendar";
  };
  /** true for an add-on, which adds to another plan; else absent. */
  readonly addon?: boolean;
  /** Absent for a plan without a trial. */
  readonly trial?: { readonly days: number };
  readonly limits: readonly LimitGroup[];
  /** Packs whose credits come with the plan in each window; absent for none. */
  readonly includes?: readonly {
    readonly packId: string;
    /** How many packs, or the amount of a pack without items; absent for one pack. */
    readonly quantity?: number;
    /** How often the credits come; absent for the period of the plan. */
    readonly period?: {
      readonly type: "hourly" | "daily" | "weekly" | "monthly" | "yearly" | "lifetime";
      readonly anchor: "subscription_start" | "calendar";
    };
    /** How much of what is left at the end of a window goes on, for how many windows more. */
    readonly rollover?: { readonly max: number; readonly periods: number };
  }[];
  /** By key; absent for a plan without features. */
  readonly features?: Readonly<Record<string, FeatureValue>>;
}

/** A row of the rate card: what the calls of an event cost in credits. */
export interface Rate {
  readonly event: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly perCall?: number;
  readonly perImage?: number;
  readonly perMillionInputTokens?: number;
  readonly perMillionCachedInputTokens?: number;
  readonly perMillionOutputTokens?: number;
  readonly perSecond?: number;
  readonly perCent?: number;
  readonly minimum?: number;
}

/** A limit of a run. */
export interface RunLimit {
  readonly limitId: string;
  readonly unit: Unit;
  /** The pattern of the events that count. */
  readonly event: string;
  readonly quota: number;
  /** Used and held. */
  readonly count: number;
  /** The part of count that open reservations hold. */
  readonly held: number;
}

/** A run to open. */
export interface RunInput {
  readonly userId: string;
  readonly limits: readonly {
    readonly unit: Unit;
    readonly quota: number;
    /** The pattern of the events that count. Default: *. */
    readonly event?: string | undefined;
  }[];
  readonly name?: string | undefined;
  /** When the run ends by itself. Default: 3600; with parentRunId not after that run. */
  readonly ttlSeconds?: number | undefined;
  /** An open run of the same user: calls count there too. Runs nest at most 4 deep. */
  readonly parentRunId?: string | undefined;
  /** A free-form object of at most 16384 bytes as JSON. */
  readonly metadata?: Metadata | undefined;
}

/** A run: a task with limits that its calls share. */
export interface Run {
  readonly runId: string;
  readonly userId: string;
  /** The run around it. */
  readonly parentRunId: string | null;
  readonly name: string | null;
  readonly status: "active" | "ended";
  readonly createdAt: string;
  readonly expiresAt: string;
  readonly endedAt: string | null;
  /** The reason of the call that ended it. */
  readonly reason: string | null;
  readonly limits: readonly RunLimit[];
}

/** A run with its metadata. */
export interface RunDetail extends Run { readonly metadata: Readonly<Record<string, unknown>> | null }

/** Which runs to list. */
export interface RunQuery {
  readonly userId: string;
  readonly status?: "active" | "ended" | undefined;
  /** 1 to 100, default 20. */
  readonly limit?: number | undefined;
  /** The cursor of the previous page. */
  readonly cursor?: string | undefined;
}

/** A page of runs. */
export interface RunPage { readonly runs: readonly RunDetail[]; readonly cursor: string | null }

/** Credits to grant. */
export interface GrantInput {
  readonly userId: string;
  /** The id or the name of the pack. */
  readonly packId: string;
  /** Required for a pack without items, otherwise ignored. */
  readonly quantity?: number | undefined;
  /** Your own reference, such as an order id: a second grant with it returns the balances of the first. */
  readonly externalRef?: string | undefined;
  /** Default: the expiry of the pack; null: never. */
  readonly expiresAt?: Moment | null | undefined;
  /** Default purchase. */
  readonly source?: "purchase" | "grant" | "refund" | "manual" | undefined;
  readonly notes?: string | undefined;
}

/** A balance that a grant issued. */
export interface GrantedBalance {
  readonly balanceId: string;
  readonly remaining: number;
  readonly expiresAt: string | null;
  readonly packItemId: string | null;
}

/** balanceId, remaining and expiresAt are those of the first balance. */
export interface GrantAnswer {
  /** One for each item of the pack. */
  readonly balances: readonly GrantedBalance[];
  readonly balanceId: string;
  readonly remaining: number;
  readonly expiresAt: string | null;
}

/** A balance with its new expiry. */
export interface ExtendInput {
  readonly balanceId: string;
  /** Not before the current expiry; null: never. */
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
export interface RevokeInput { readonly balanceId: string; readonly reason?: string | undefined }

/** The answer to a revoke. */
export interface RevokeAnswer { readonly balanceId: string; readonly remaining: 0 }

/** Which balances to list. */
export interface CreditQuery {
  readonly userId: string;
  /** An event type or pattern: selects balances that cover it. */
  readonly event?: string | undefined;
  /** Whether to list expired and revoked balances too. */
  readonly includeExpired?: boolean | undefined;
}

/** A user's balances. */
export interface CreditList {
  /** In the order of use. */
  readonly credits: readonly CreditBalance[];
}

/** Which ledger entries to list. */
export interface LedgerQuery {
  readonly userId: string;
  /** 1 to 500, default 50. */
  readonly limit?: number | undefined;
  /** nextCursor of the previous page. */
  readonly cursor?: string | undefined;
  readonly balanceId?: string | undefined;
}

/** A movement of credits. */
export interface LedgerEntry {
  readonly id: string;
  readonly balanceId: string;
  readonly packId: string;
  /** Negative: consumed; positive: granted or refunded. */
  readonly delta: number;
  readonly reason: "event_committed" | "reservation_held" | "reservation_released"
    | "reservation_expired" | "grant" | "admin_adjust" | "merged_from_alias"
    | "merge_dedupe";
  readonly eventId: string | null;
  readonly reservationId: string | null;
  readonly occurredAt: string;
  readonly notes: string | null;
}

/** A page of the ledger. */
export interface LedgerPage {
  /** Newest first. */
  readonly entries: readonly LedgerEntry[];
  /** null on the last page. */
  readonly nextCursor: string | null;
}

/** What a user buys automatically, and when. */
export interface TopUpInput {
  /** The id or the name of a pack with a price, and one item or none. */
  readonly packId: string;
  /** Buys when less than this is left of active balances with the pack's unit and rules. */
  readonly below: number;
  /** Packs, default 1; units of a pack without items, where it is required. */
  readonly quantity?: number | undefined;
  /** The most that may be paid in a UTC month, in the smallest unit of the currency. */
  readonly maxPerMonth: number;
  /** Required the first time. Only your backend may set it. */
  readonly stripeCustomerId?: string | undefined;
  /** A saved card of the customer. Required the first time. Only your backend may set it. */
  readonly stripePaymentMethodId?: string | undefined;
  /** Default true. */
  readonly enabled?: boolean | undefined;
}

/** The top-up setting of a user. */
export interface TopUpSetting {
  readonly userId: string;
  readonly packId: string;
  readonly below: number;
  readonly quantity: number;
  /** In the smallest unit of the currency. */
  readonly maxPerMonth: number;
  /**
   * false also after three failures in a row, and after a change of the currency: your backend's next PUT
   * enables it.
   */
  readonly enabled: boolean;
  /** Left out in answers to a user. */
  readonly stripeCustomerId?: string;
  /** Left out in answers to a user. */
  readonly stripePaymentMethodId?: string;
  /** The top-up that is under way. */
  readonly openIntentId: string | null;
  /** No top-up is made before. */
  readonly nextTryAt: string | null;
  /** Failed top-ups since the last paid one. */
  readonly failures: number;
}

/** A removed top-up setting. */
export interface DeletedTopUp {
  readonly userId: string;
  /** Whether a top-up is still being called off or paid. */
  readonly underWay: boolean;
}

/** Which top-ups to list. */
export interface TopUpQuery {
  /** 1 to 100, default 20. */
  readonly limit?: number | undefined;
  /** The cursor of the previous page. */
  readonly cursor?: string | undefined;
}

/** A purchase of credits that a setting made. */
export interface TopUp {
  readonly topUpId: string;
  readonly status: "open" | "processing" | "paid" | "failed" | "canceled";
  readonly packId: string;
  readonly quantity: number;
  /** In the smallest unit of the currency. */
  readonly amount: number;
  readonly currency: string;
  /** Of Stripe. */
  readonly paymentIntentId: string | null;
  /** Why it failed: a text for the customer. */
  readonly reason: string | null;
  readonly createdAt: string;
  readonly settledAt: string | null;
}

/** A page of top-ups. */
export interface TopUpPage { readonly topUps: readonly TopUp[]; readonly cursor: string | null }

/** Two ids of one user. */
export interface AliasPair { readonly from: string; readonly to: string }

/** Two ids to merge. */
export interface AliasInput extends AliasPair {
  /** Whether the person agreed to link analytics; required for ids that start with anon_. */
  readonly consentGiven?: boolean | undefined;
  /** Whether to only report the result, and merge nothing. */
  readonly dryRun?: boolean | undefined;
}

/** The report of a merge. */
export interface AliasReport {
  /** null on a dry run. */
  readonly mergeId: string | null;
  readonly from: string;
  readonly to: string;
  readonly mode: Mode;
  readonly dryRun: boolean;
  /** Whether the pair was merged before; this is then the first report. */
  readonly alreadyMerged: boolean;
  /** Whether history is still moving in the background. */
  readonly historyPending: boolean;
  /** How much the merge counts towards the monthly cap. */
  readonly billableOperations: number;
  /** Rows that now belong to the remaining user. */
  readonly moved: {
    readonly events: number;
    readonly eventLogs: number;
    readonly counters: number;
    readonly reservations: number;
    readonly subscriptions: number;
    readonly subscriptionEvents: number;
    readonly creditBalances: number;
    readonly creditLedger: number;
    readonly mediaAssets: number;
    readonly composeGenerations: number;
    readonly aliasesRepointed: number;
    /** If one of the users has a parent or children: users directly below from, now below to. */
    readonly movedChildren?: number;
  };
  readonly conflicts: {
    readonly counters: {
      readonly summed: number;
      /** Groups with their usage moved to a group of the remaining plan. */
      readonly carried: readonly { readonly fromGroupId: string; readonly toGroupId: string }[];
      /** Groups without a match in that plan: kept as history, not counted. */
      readonly unpaired: readonly string[];
    };
    readonly subscriptions: DuplicateActiveSubscriptions | null;
    /**
     * Subscriptions without provider that ended, because of a paid one or of a better one without
     * provider.
     */
    readonly endedSubscriptions: readonly SubscriptionRef[];
    /** Grants that both ids had, by their externalRef. */
    readonly credits: readonly {
      readonly externalRef: string;
      readonly survivorId: string;
      readonly droppedId: string;
      readonly remaining: number;
      readonly overage: number;
    }[];
  };
  readonly analytics: "linked" | "already_linked" | "skipped_consent_required";
}

/** Why a pair of many was not merged. */
export type AliasErrorCode = "invalid_request" | "idempotency_conflict" | "alias_conflict" | "alias_cycle"
  | "path_too_long" | "workspace_limit_reached" | "test_quota_exceeded" | "unavailable"
  | "internal_error" | "not_processed";

/** The result of one pair of many. */
export type AliasResult =
  | {
    /** As sent. */
    readonly from: string | null;
    /** As sent. */
    readonly to: string | null;
    readonly ok: true;
    readonly report: AliasReport;
    readonly billableOperations: number;
    readonly error?: undefined;
  }
  | {
    /** As sent. */
    readonly from: string | null;
    /** As sent. */
    readonly to: string | null;
    readonly ok: false;
    readonly error: { readonly code: AliasErrorCode; readonly message: string };
    readonly billableOperations: 0;
    readonly report?: undefined;
  };

/** The results of many pairs. */
export interface AliasManyAnswer {
  /** In the order of the pairs. */
  readonly results: readonly AliasResult[];
  readonly billableOperations: number;
}

/** The user behind an id. */
export interface Customer {
  readonly canonicalId: string;
  readonly aliases: readonly string[];
  readonly duplicateActiveSubscriptions: DuplicateActiveSubscriptions | null;
}

/** What a generation cost. */
export interface ComposeUsage {
  readonly model: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costCents: number;
  readonly eventId: string;
}

/** A generation. */
export interface Generated {
  readonly status: "generated";
  readonly generationId: string;
  /** Matches the output schema of the type. */
  readonly output: Readonly<Record<string, unknown>>;
  readonly usage: ComposeUsage;
  /** With a runId: the run and those around it, innermost first, after the call. */
  readonly runs?: readonly RunState[];
}

/** No generation: the user opted out of AI personalization. */
export interface OptedOut {
  readonly status: "opted_out";
  readonly generationId: null;
  readonly output: null;
  readonly usage: null;
  /** With a runId: the run and those around it, innermost first, after the call. */
  readonly runs?: readonly RunState[];
}

/** Properties by name, up to 16 KiB as JSON. */
export type Properties = Readonly<Record<string, string | number | boolean | null>>;

/** Something that a person did. */
export interface CaptureInput {
  /** Left out: an anonymous event, linked to no person. */
  readonly distinctId?: string | undefined;
  readonly event: string;
  /** A free-form object of at most 16384 bytes as JSON. */
  readonly properties?: Properties | undefined;
  /** Default: now. At most 24 hours in the future. */
  readonly timestamp?: Moment | undefined;
}

/** The answer to a capture. People who opted out get the same. */
export interface CaptureAnswer { readonly accepted: true }

/** What you know about the person behind an id. */
export interface IdentifyInput {
  readonly distinctId: string;
  /** Overwrite properties of the same name. */
  readonly properties?: Properties | undefined;
  /** Set only properties that the person does not have yet. */
  readonly propertiesOnce?: Properties | undefined;
  /** The id of an anonymous session of this person. */
  readonly mergeAnonymousId?: string | undefined;
  /** Whether the person agreed to the merge; required with mergeAnonymousId. */
  readonly consentGiven?: boolean | undefined;
}

/** The answer to an identify. */
export interface IdentifyAnswer { readonly personId: string; readonly merged: boolean }

/** Two ids of one person. */
export interface PersonAliasInput {
  readonly distinctId: string;
  readonly alias: string;
  /** Whether the person agreed; required for ids that start with anon_. */
  readonly consentGiven?: boolean | undefined;
}

/** The answer to an alias of two people. */
export interface PersonAliasAnswer { readonly personId: string }

/** What a person can opt out of. */
export type ConsentScope = "analytics" | "ai_personalization" | "prompt_logging";

/** A link to the export of a person. */
export interface PersonExportLink {
  readonly downloadUrl: string;
  /** 24 hours from now. */
  readonly expiresAt: string;
  readonly format: "json";
}

/** Everything known about a person. */
export interface PersonExport {
  readonly format: "json";
  readonly exportedAt: string;
  readonly appId: string;
  readonly mode: Mode;
  readonly distinctId: string;
  readonly person: {
    readonly personId: string;
    readonly distinctIds: readonly string[];
    readonly properties: Properties;
    readonly identifiedAt: string | null;
    readonly createdAt: string;
  } | null;
  readonly events: {
    readonly analytics: readonly {
      readonly id: string;
      readonly event: string;
      readonly properties: Properties;
      readonly timestamp: string;
    }[];
    readonly metering: readonly MeteredEvent[];
  };
  readonly consentLog: readonly {
    readonly id: string;
    readonly action: "opt_out" | "opt_in";
    readonly scope: "analytics" | "ai_personalization" | "all" | "prompt_logging";
    readonly consentGiven: boolean;
    readonly createdAt: string;
  }[];
  /** Absent for a person without runs. */
  readonly runs?: readonly {
    readonly runId: string;
    readonly parentRunId: string | null;
    readonly name: string | null;
    readonly metadata: Readonly<Record<string, unknown>> | null;
    readonly createdAt: string;
    readonly expiresAt: string;
    readonly endedAt: string | null;
    readonly reason: string | null;
    readonly limits: readonly RunLimit[];
  }[];
  /** Keys of the user that are not revoked. */
  readonly keys: readonly {
    readonly id: string;
    readonly name: string | null;
    readonly createdAt: string;
    readonly expiresAt: string | null;
    readonly lastUsedAt: string | null;
  }[];
  /** What the person used of limit groups of users above; absent for nothing. */
  readonly shares?: readonly {
    readonly groupId: string;
    readonly unit: Unit;
    readonly period: Period;
    readonly count: number;
    readonly costCents: number;
  }[];
  /** Absent for a person without top-ups. */
  readonly topUps?: readonly {
    readonly topUpId: string;
    readonly status: "open" | "processing" | "paid" | "failed" | "canceled";
    readonly packId: string;
    readonly quantity: number;
    readonly units: number;
    readonly amount: number;
    readonly currency: string;
    readonly reason: string | null;
    readonly stripeCustomerId: string;
    readonly paymentIntentId: string | null;
    readonly createdAt: string;
    readonly settledAt: string | null;
  }[];
  /** What was sold to the person past quotas, by hour; absent for nothing. */
  readonly overage?: readonly {
    readonly groupId: string;
    readonly unit: Unit;
    readonly hour: string;
    readonly amount: number;
    readonly total: number;
  }[];
  /** The person's own caps on that; absent for none. */
  readonly spendCaps?: readonly { readonly groupId: string; readonly max: number }[];
}

/** The state of an erasure. */
export interface DeletionStatus {
  readonly status: "queued" | "in_progress" | "completed" | "failed";
  readonly requestedAt: string;
  readonly startedAt: string | null;
  readonly completedAt: string | null;
  readonly errorMessage: string | null;
}

/** Which events to list. */
export interface EventQuery {
  readonly userId?: string | undefined;
  readonly eventType?: string | undefined;
  /** Only events of this status. */
  readonly status?: "matched_credits_only" | "unmatched" | "blocked" | "no_subscription" | "released"
    | undefined;
  /** Events of this run, without those of runs within it. */
  readonly runId?: string | undefined;
  /** Only events at and after this time. */
  readonly from?: Moment | undefined;
  /** Only events before this time. */
  readonly to?: Moment | undefined;
  /** 1 to 100, default 20. */
  readonly limit?: number | undefined;
  /** 0 to 10000, default 0. */
  readonly offset?: number | undefined;
}

/** An event in a list. */
export interface MeteredEvent {
  readonly id: string;
  readonly endUserId: string;
  readonly eventType: string;
  readonly quantity: number;
  readonly costCents: number;
  /** Absent for an event without a rate. */
  readonly costCredits?: number;
  readonly matchStatus: "matched" | "matched_credits_only" | "unmatched" | "blocked" | "no_subscription"
    | "released";
  readonly createdAt: string;
  readonly hasLog: boolean;
  /** The first 200 characters of the prompt. */
  readonly promptPreview: string | null;
  /** The run of the call; absent for none. */
  readonly runId?: string;
}

/** A page of events. */
export interface EventPage {
  /** Newest first. */
  readonly events: readonly MeteredEvent[];
  readonly limit: number;
  readonly offset: number;
  /** Whether prompts are logged now; if not, no event shows a log. */
  readonly logPromptsEnabled: boolean;
}

/** What an event took from one limit group or one credit balance. */
export type ChargedAmount =
  | {
    readonly groupId: string;
    readonly unit: Unit;
    readonly amount: number;
    /** The user above that was charged; absent for the event's own. */
    readonly userId?: string;
    readonly balanceId?: undefined;
  }
  | {
    readonly balanceId: string;
    readonly unit: Unit;
    readonly amount: number;
    /** The user above that was charged; absent for the event's own. */
    readonly userId?: string;
    readonly groupId?: undefined;
  };

/** An event with its details. */
export interface EventDetail extends MeteredEvent {
  readonly metadata: Readonly<Record<string, unknown>> | null;
  readonly matchedGroupIds: readonly string[];
  /** Charged amounts: of limit groups, and of the credit balances that paid. */
  readonly amounts: readonly ChargedAmount[];
  readonly prompt: string | null;
  readonly response: string | null;
  readonly errorCode: string | null;
  readonly reservationId: string | null;
  readonly reason: string | null;
  /** By unit, the amount that neither plan nor credits could cover; usually empty. */
  readonly uncovered: Uncovered;
}

/** Which refused calls to list. */
export interface RefusalQuery {
  readonly userId?: string | undefined;
  readonly event?: string | undefined;
  /** Only calls that this user refused, above their own user. */
  readonly refusedBy?: string | undefined;
  /** 1 to 100, default 20. */
  readonly limit?: number | undefined;
  /** 0 to 10000, default 0. */
  readonly offset?: number | undefined;
}

/** Refused calls of a user with the same event and reasons, within one hour (UTC). */
export interface Refusal {
  readonly userId: string;
  readonly event: string;
  readonly reasons: readonly ("limit_reached" | "reservation_headroom_exceeded" | "unmatched_event"
    | "no_subscription" | "unpriced_model" | "member_limit_reached"
    | "run_limit_reached" | "rate_limit_reached" | "concurrency_limit_reached"
    | "workspace_limit_reached" | "test_quota_exceeded" | "ai_budget_exceeded")[];
  /** Limit groups without room for the newest call, in the plan's order. */
  readonly groupIds: readonly string[];
  /** Of a user with a parent: the ids of the users that refused. */
  readonly refusedBy?: readonly string[];
  readonly count: number;
  readonly firstAt: string;
  readonly lastAt: string;
}

/** A page of refused calls. */
export interface RefusalPage {
  /** Newest first by lastAt. */
  readonly refusals: readonly Refusal[];
  readonly limit: number;
  readonly offset: number;
}

/** The time of test mode. */
export interface TestClockAnswer { readonly now: string }

/** The data of a message about a threshold. */
export interface ThresholdMessageData {
  readonly appId: string;
  readonly mode: Mode;
  readonly userId: string;
  readonly groupId: string;
  readonly label: string;
  readonly unit: Unit;
  readonly thresholdPercent: number;
  /** The quota in force. */
  readonly quota: number;
  /** Used and held. */
  readonly current: number;
  readonly period: Period;
  /** Present if a call of a user below userId caused the message: the id of that user. */
  readonly causedBy?: string;
}

/** The data of a message about a pace. */
export interface PaceMessageData {
  readonly appId: string;
  readonly mode: Mode;
  readonly userId: string;
  readonly groupId: string;
  readonly label: string;
  readonly unit: Unit;
  /** When the quota is used up, if usage goes on as since the start of the period. */
  readonly projectedAt: string;
  /** The quota in force. */
  readonly quota: number;
  /** Used and held. */
  readonly current: number;
  readonly period: Period;
  /** Present if a call of a user below userId caused the message: the id of that user. */
  readonly causedBy?: string;
}

/** The data of a message about a credit balance. */
export interface CreditsMessageData {
  readonly appId: string;
  readonly mode: Mode;
  readonly userId: string;
  readonly balanceId: string;
  readonly packId: string;
  /** null for a pack without items. */
  readonly packItemId: string | null;
  readonly remaining: number;
  readonly externalRef: string | null;
  /** Present if a call of a user below userId caused the message: the id of that user. */
  readonly causedBy?: string;
}

/** The data of a message about overage that begins, or reaches its cap. */
export interface OverageMessageData {
  readonly appId: string;
  readonly mode: Mode;
  readonly userId: string;
  readonly groupId: string;
  readonly unit: Unit;
  /** The window of the group. */
  readonly period: Period;
  /** The most in force; null for no limit. */
  readonly max: number | null;
  /** Sold so far, open holds included. */
  readonly overage: number;
  /** Present if a call of a user below userId caused the message: the id of that user. */
  readonly causedBy?: string;
}

/** The data of a message about an automatic top-up. */
export interface TopUpMessageData {
  readonly appId: string;
  readonly mode: Mode;
  readonly userId: string;
  /** null where the cap let none be made. */
  readonly topUpId: string | null;
  readonly packId: string;
  readonly quantity: number;
  /** In the smallest unit of the currency. */
  readonly amount: number;
  readonly currency: string;
  /** Of topup.failed: a text for the customer. Of topup.capped: max_per_month or currency_changed. */
  readonly reason: string | null;
  /** Present if a call of a user below userId caused the message: the id of that user. */
  readonly causedBy?: string;
}

/** The data of a message about a subscription. */
export interface SubscriptionMessageData {
  readonly appId: string;
  readonly mode: Mode;
  readonly userId: string;
  readonly subscriptionId: string;
  readonly planId: string;
  readonly previousPlanId: string | null;
  readonly reason: string | null;
  /** Of a change of plan, if the catalog has features: those in force after it, by key. */
  readonly features?: Readonly<Record<string, Feature>>;
}

/** The data of each type of webhook message. */
export interface WebhookData {
  readonly "usage.threshold_reached": ThresholdMessageData;
  readonly "usage.pace_exceeded": PaceMessageData;
  readonly "usage.overage": {
    readonly appId: string;
    readonly mode: Mode;
    readonly userId: string;
    readonly groupId: string;
    readonly unit: Unit;
    /** The window of the group. */
    readonly period: Period;
    /** The beginning of the UTC hour of settling, by the app's clock. */
    readonly hour: string;
    /** Settled in the hour and not reported before. */
    readonly amount: number;
    /** All settled overage of the window, up to and with this message. */
    readonly total: number;
  };
  readonly "usage.overage_started": OverageMessageData;
  readonly "usage.cap_reached": OverageMessageData;
  readonly "credits.granted": CreditsMessageData;
  readonly "credits.low": CreditsMessageData;
  readonly "credits.depleted": CreditsMessageData;
  readonly "credits.expired": CreditsMessageData;
  readonly "credits.revoked": CreditsMessageData;
  readonly "subscription.created": SubscriptionMessageData;
  readonly "subscription.plan_changed": SubscriptionMessageData;
  readonly "subscription.canceled": SubscriptionMessageData;
  readonly "subscription.reactivated": SubscriptionMessageData;
  readonly "subscription.ended": SubscriptionMessageData;
  readonly "subscription.merged": SubscriptionMessageData;
  readonly "subscription.promoted": SubscriptionMessageData;
  readonly "user.merged": {
    readonly appId: string;
    readonly mode: Mode;
    readonly from: string;
    readonly to: string;
    readonly mergeId: string;
  };
  readonly "reservation.expired": {
    readonly appId: string;
    readonly mode: Mode;
    readonly userId: string;
    readonly reservationId: string;
    readonly event: string;
  };
  readonly "topup.paid": TopUpMessageData;
  readonly "topup.failed": TopUpMessageData;
  readonly "topup.capped": TopUpMessageData;
  readonly "person.erased": {
    readonly appId: string;
    readonly mode: Mode;
    /** Id of the deletion job; not an id of the person. */
    readonly jobId: string;
  };
  readonly "ping": { readonly appId: string; readonly mode: Mode };
}
