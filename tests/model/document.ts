// The shapes that the model speaks: the catalog document as an administrator sends it, the requests
// and replies at the level of the wire, and the options of a model. Declarations only.

export type Unit = "count" | "tokens" | "seconds" | "cents" | "credits";
export const UNITS: readonly Unit[] = ["count", "tokens", "seconds", "cents", "credits"];

export interface MatchRule {
  event: string;
  metadata?: Record<string, string>;
}

export interface Headroom {
  mode: "percent" | "multiplier";
  value: number;
}

export interface LimitGroup {
  id: string;
  label: string;
  unit: Unit;
  quota: number;
  matches: MatchRule[];
  headroom?: Headroom | null;
  /** Percents of the quota, ascending, and the pace. */
  alerts?: (number | "pace")[];
  /** Absent: the plan's. */
  period?: GroupPeriod;
  /** The most that each user below may use of it. */
  perMember?: { quota: number };
  /** What is sold past the quota; null for any amount. */
  overage?: { max: number | null };
}

export interface Period {
  type: "hourly" | "daily" | "weekly" | "monthly" | "yearly" | "lifetime";
  anchor: "subscription_start" | "calendar";
}

/** A period that begins with its first use. */
interface SessionPeriod {
  type: "session";
  seconds: number;
}

/** Limits what was counted within the last seconds. */
interface RatePeriod {
  type: "rolling";
  seconds: number;
}

/** Limits what open holds have. */
interface ConcurrencyPeriod {
  type: "concurrent";
}

export type GroupPeriod = Period | SessionPeriod | RatePeriod | ConcurrencyPeriod;

/** A pack that comes with a plan, in each window of the period. */
export interface Include {
  packId: string;
  /** Of a pack without items. */
  quantity?: number;
  /** Absent: the plan's. */
  period?: Period;
  rollover?: { max: number; periods: number };
}

export interface Plan {
  id: string;
  name: string;
  rank: number;
  period: Period;
  onPlanChange?: "carry" | "reset" | "block";
  headroom?: Headroom | null;
  limits: LimitGroup[];
  features?: FeatureValues;
  archived?: boolean;
  perSeat?: boolean;
  includes?: Include[];
  addon?: boolean;
  trial?: { days: number; thenPlanId?: string | null };
}

export type FeatureValue = boolean | number | string | string[];
export type FeatureValues = Record<string, FeatureValue>;

/** Prices of tokens, in cents a million. */
export interface TokenPrices {
  inputCentsPerMillionTokens?: number;
  cachedInputCentsPerMillionTokens?: number;
  cacheWriteCentsPerMillionTokens?: number;
  cacheWrite1hCentsPerMillionTokens?: number;
  outputCentsPerMillionTokens?: number;
  reasoningCentsPerMillionTokens?: number;
}

export interface ModelRow extends TokenPrices {
  id: string;
  aliases?: string[];
  modality: "text" | "image" | "audio" | "video";
  amountMode: "per_token" | "per_call" | "per_unit";
  tiers?: ({ aboveInputTokens: number } & TokenPrices)[];
  centsPerCall?: number;
  centsPerImage?: number;
  centsPerSecond?: number;
}

/** What an event costs in credits. */
export interface RateRow extends MatchRule {
  perCall?: number;
  perImage?: number;
  perMillionInputTokens?: number;
  perMillionCachedInputTokens?: number;
  perMillionOutputTokens?: number;
  perSecond?: number;
  perCent?: number;
  minimum?: number;
}

export interface PackItem {
  id: string;
  label: string;
  unit: Unit;
  amount: number;
  matches: MatchRule[];
  lowAt?: number;
}

/** A credit pack; one without items has `unit` and `matches` of its own. */
export interface Pack {
  id: string;
  name: string;
  kind: "per_type" | "generic";
  priority?: number;
  defaultExpiryDays?: number | null;
  archived?: boolean;
  unit?: Unit;
  matches?: MatchRule[];
  lowAt?: number;
  items: PackItem[];
}

/** The catalog document. Compose types are carried along unread. */
export interface CatalogDocument {
  settings?: {
    promptLogging?: boolean;
    promptLogRetentionDays?: number;
    reservationTtlSeconds?: number;
    unpricedModels?: "warn" | "refuse";
  };
  models?: ModelRow[];
  rates?: RateRow[];
  plans: Plan[];
  featureDefaults?: FeatureValues;
  packs?: Pack[];
  composeTypes?: unknown[];
}

export type Operation =
  | "reserve"
  | "commit"
  | "release"
  | "track"
  | "canUse"
  | "usage"
  | "users"
  | "subscribe"
  | "cancel"
  | "unschedule"
  | "grant"
  | "extend"
  | "revoke"
  | "credits"
  | "ledger"
  | "alias"
  | "aliasBatch"
  | "customer"
  | "events"
  | "event"
  | RunOperation
  | "parent"
  | "spendCap"
  | "overage"
  | ProviderOperation;

/** Calls of runs; reserve, can-use and track take a `runId`. */
export type RunOperation = "createRun" | "endRun" | "getRun" | "listRuns";

/** What a payment provider does to a user: commands behind its messages, which no call of the API names. */
export const PROVIDER_OPERATIONS = ["mirror", "paidGrant", "refund", "reinstate"] as const;

export type ProviderOperation = (typeof PROVIDER_OPERATIONS)[number];

/**
 * The members of a wire body or query, flat. `users` and `customer` take `userId`, `event` takes `eventId`;
 * `credits` and `ledger` are the balances and the ledger of a user.
 */
export type Input = Record<string, unknown>;

export interface ModelRequest {
  /** No workload picks explain, which goes with each can-use, or features, which usage shows too. */
  op: Operation | "explain" | "features";
  input: Input;
}

export type WireData = Record<string, unknown>;

/** Predicts either truth value. */
export const EITHER = "«true or false»";

/** Predicts any value, which other tests look at. */
export const ANYTHING = "«anything»";

/** Predicts either of two numbers. */
export function oneOf(first: number, second: number): number | string {
  return first === second ? first : `«${first} or ${second}»`;
}

/** The numbers that a prediction made by `oneOf` allows; null for any other prediction. */
export function allowedBy(predicted: unknown): number[] | null {
  const parts = typeof predicted === "string" ? /^«(\d+) or (\d+)»$/.exec(predicted) : null;
  return parts === null ? null : [Number(parts[1]), Number(parts[2])];
}

/** Predicts any text that contains some names. */
export function naming(names: string[]): string {
  return `«a text with ${JSON.stringify(names)}»`;
}

/** The names that a prediction made by `naming` asks for; null for any other prediction. */
export function namesIn(predicted: unknown): string[] | null {
  const parts = typeof predicted === "string" ? /^«a text with (\[.*\])»$/.exec(predicted) : null;
  return parts?.[1] === undefined ? null : JSON.parse(parts[1]);
}

/** An answer without envelope: `data` of a success; `code` and `details` of an error. */
export interface ModelReply {
  status: number;
  code?: string;
  data?: WireData;
  details?: WireData;
}

export interface ModelOptions {
  /** Decides which code a spent operation cap answers with. Default live. */
  mode?: "live" | "test";
  /** The cap that applies to this mode, in operations a UTC month. Null or absent: none. */
  operationCap?: number | null;
  /** How many credit balances the app may ever issue in test mode. Null or absent: no limit. */
  testCreditBalanceCap?: number | null;
  /** Whether calls overlap: a merge that is asked for again may still be moving any history. Default false. */
  isConcurrent?: boolean;
}

const STATUS_OF_CODE = {
  invalid_request: 400,
  invalid_quantity: 400,
  not_found: 404,
  credit_pack_not_found: 404,
  credit_balance_not_found: 404,
  reservation_not_pending: 409,
  run_ended: 409,
  already_canceled: 409,
  trial_used: 409,
  alias_conflict: 409,
  alias_cycle: 409,
  parent_cycle: 409,
  path_too_long: 409,
  no_subscription: 429,
  unpriced_model: 429,
  limit_reached: 429,
  member_limit_reached: 429,
  run_limit_reached: 429,
  rate_limit_reached: 429,
  concurrency_limit_reached: 429,
  unmatched_event: 429,
  reservation_headroom_exceeded: 429,
  workspace_limit_reached: 429,
  test_quota_exceeded: 429,
} as const;

export type RefusalCode = keyof typeof STATUS_OF_CODE;

/** A refusal as the wire shows it. */
export function refusal(code: RefusalCode, details?: WireData): ModelReply {
  return { status: STATUS_OF_CODE[code], code, ...(details ? { details } : {}) };
}

export function success(data: WireData): ModelReply {
  return { status: 200, data };
}

/** Reads a real HTTP answer into the shape that `compare` takes. */
export function replyFromWire(status: number, body: unknown): ModelReply {
  const envelope = body as { data?: WireData; error?: { code: string; details?: WireData } };
  if (!envelope.error) return { status, ...(envelope.data ? { data: envelope.data } : {}) };
  const { code, details } = envelope.error;
  return { status, code, ...(details ? { details } : {}) };
}
