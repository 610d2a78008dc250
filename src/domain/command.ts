// Every command that can be put to a user, with what it is given and what it answers. The names and shapes are
// the specification's; amounts are exact and times are milliseconds until a route writes them out.

import type { Amount } from "./amount.ts";
import type { Catalog } from "./plans/catalog.ts";
import type { Counter } from "./metering/counter.ts";
import type { CreditBalance, CreditSource } from "./credits/credit.ts";
import type { MatchStatus } from "./metering/event.ts";
import type { IdSource, UserKey } from "./ids.ts";
import type { Metadata } from "./match.ts";
import type { HistoryCounts, MergeReport } from "./merging/merge_report.ts";
import type { Millis, Window } from "./plans/period.ts";
import type { LimitGroup, Plan, Unit } from "./plans/plan.ts";
import type { CallSize } from "./metering/pricing.ts";
import type { Refusal } from "./refusal.ts";
import type { Subscription } from "./plans/subscription.ts";
import type { Alias, Change, ConsentEntry } from "./user.ts";

/** What a decision knows beside the user's state: one moment, one catalog, new ids. */
export interface Context {
  readonly now: Millis;
  readonly catalog: Catalog;
  readonly ids: IdSource;
  /** How many more credit balances may be issued in the realm; null for no limit. */
  readonly balancesLeft: number | null;
}

export interface ReserveInput {
  readonly event: string;
  readonly metadata: Metadata | null;
  readonly size: CallSize;
  /** null for the catalog's hold time. */
  readonly ttlMs: number | null;
  readonly prompt?: string | null;
}

export type CanUseInput = Pick<ReserveInput, "event" | "metadata" | "size">;

/** Absolute or added final amounts of a commit, by unit; absent units keep what was reserved. */
export type Correction = Readonly<Partial<Record<Unit, Amount>>>;

export interface CommitInput {
  readonly reservationId: string;
  readonly extra: Correction;
  readonly actual: Correction;
  readonly costCents: Amount | null;
  readonly response?: string | null;
}

export interface ReleaseInput {
  readonly reservationId: string;
  readonly reason: string | null;
  readonly errorCode: string | null;
  readonly response?: string | null;
}

export interface TrackInput {
  readonly event: string;
  readonly metadata: Metadata | null;
  readonly size: CallSize;
  readonly costCents: Amount | null;
  readonly prompt?: string | null;
  readonly response?: string | null;
}

export interface SubscribeInput {
  /** A plan's id or name. */
  readonly plan: string;
  readonly provider: string | null;
  readonly externalId: string | null;
  /** undefined keeps, null or empty clears. */
  readonly customLimits: Readonly<Record<string, Amount>> | null | undefined;
  readonly startsAt: Millis | null;
  readonly endsAt: Millis | null;
  /** undefined keeps, null returns to the plan's anchor. */
  readonly cycleStart: Millis | null | undefined;
}

export interface CancelInput {
  readonly provider: string | null;
  readonly externalId: string | null;
  readonly endsAt: Millis | null;
  readonly reason: string | null;
}

export interface GrantInput {
  /** A pack's id or name. */
  readonly pack: string;
  /** Needed for a pack without items, ignored otherwise, whatever it is. */
  readonly quantity: Amount | "malformed" | null;
  readonly externalRef: string | null;
  /** undefined for the pack's default, null for evergreen. */
  readonly expiresAt: Millis | null | undefined;
  readonly source: CreditSource;
  readonly notes: string | null;
}

export interface RevokeInput {
  readonly balanceId: string;
  readonly reason: string | null;
}

export interface CreditsInput {
  /** Narrows to balances whose rules cover this name or glob; null for all. */
  readonly event: string | null;
}

export interface UsageInput {
  /** Narrows to the groups whose rules cover this name or glob; null for all. */
  readonly event: string | null;
}

/** Balances in the order in which a grant made them, or in consumption order; with the user they belong to. */
export interface CreditsAnswer {
  readonly userKey: UserKey;
  readonly balances: readonly ShownBalance[];
  /** The moment that their status is of. */
  readonly now: Millis;
}

/** A balance with the pack's present name, where the catalog still has the pack. */
export interface ShownBalance {
  readonly row: CreditBalance;
  readonly packName: string;
}

/** What a pack could give an event. */
export interface PackOffer {
  readonly packId: string;
  readonly packName: string;
  readonly available: Amount;
}

export type ReserveReason =
  | "limit_reached"
  | "reservation_headroom_exceeded"
  | "unmatched_event"
  | "no_subscription";

/** A matched group as a reserve answer shows it; `gate` is null without headroom. */
export interface GroupReading {
  readonly group: LimitGroup;
  readonly quota: Amount;
  /** The counter as the answer shows it. */
  readonly counter: Counter;
  readonly gate: Amount | null;
  readonly window: Window;
}

export interface ReserveAnswer {
  readonly allowed: boolean;
  readonly matched: boolean;
  readonly reasons: readonly ReserveReason[];
  readonly groups: readonly GroupReading[];
  readonly hold: { readonly reservationId: string; readonly expiresAt: Millis } | null;
}

/** A matched group with what credits of its unit could add, pack by pack in consumption order. */
export interface OfferedGroup extends GroupReading {
  readonly offers: readonly PackOffer[];
}

export interface CanUseAnswer extends Omit<ReserveAnswer, "hold" | "groups"> {
  readonly groups: readonly OfferedGroup[];
}

export interface CommitAnswer {
  readonly eventId: string;
  readonly recharged: boolean;
  readonly groups: readonly {
    readonly groupId: string;
    readonly unit: Unit;
    readonly quota: Amount;
    readonly current: Amount;
    readonly overflow: boolean;
  }[];
}

/** A group with its counter, as usage shows it. */
export interface CounterReading {
  readonly group: LimitGroup;
  readonly quota: Amount;
  readonly counter: Counter;
}

export interface TrackAnswer {
  readonly eventId: string;
  readonly matchStatus: MatchStatus;
  readonly counters: readonly CounterReading[];
}

export interface MergeInput {
  readonly isDryRun: boolean;
  readonly mode: "live" | "test";
  /** Rows of the ending user's history; null for more than move within the call. */
  readonly history: HistoryCounts | null;
  readonly analytics: MergeReport["analytics"];
}

export interface MergeAnswer {
  readonly report: MergeReport;
}

/** What identifies a subscription to a reader, with the plan's name where the catalog still has the plan. */
export interface NamedSubscription {
  readonly row: Pick<Subscription, "id" | "planId" | "provider" | "externalId" | "startedAt" | "endsAt">;
  readonly planName: string;
}

/** Active subscriptions beside the primary one; null where there is none. */
export interface Duplicates {
  readonly primary: NamedSubscription;
  readonly duplicates: readonly NamedSubscription[];
}

export interface UsageAnswer {
  readonly userId: string;
  readonly period: Window | null;
  readonly counters: readonly CounterReading[];
  /** Active and depleted balances. */
  readonly credits: CreditsAnswer;
  readonly duplicates: Duplicates | null;
}

export interface UserAnswer extends UsageAnswer {
  readonly userKey: number;
  readonly aliases: readonly Alias[];
  readonly subscription: Subscription | null;
}

export interface SubscriptionAnswer {
  readonly userId: string;
  readonly row: Subscription;
}

/** Scopes to opt out of or back in to, as a sum of SCOPE_BITS. */
export interface ConsentInput {
  readonly add: number;
  readonly remove: number;
  /** The audit entry of a change; null for none. */
  readonly entry: Pick<ConsentEntry, "distinctId" | "action" | "scope"> | null;
  /** Marks the user as one that is about to be erased; undefined keeps. */
  readonly isErasing?: boolean;
}

export interface ConsentAnswer {
  readonly userId: string;
  readonly userKey: UserKey;
  readonly optedOut: number;
  readonly hasChanged: boolean;
}

/** What a model generated for a user, by its own report and the catalog's prices. */
export interface GenerateInput {
  /** The compose type's name. */
  readonly type: string;
  /** The catalog's id of the model. */
  readonly model: string;
  /** The event that it is metered as. */
  readonly event: string;
  readonly metadata: Metadata;
  readonly inputTokens: Amount;
  readonly outputTokens: Amount;
  readonly costCents: Amount;
  /** Texts for the event's log. */
  readonly prompt: string | null;
  readonly response: string | null;
  /** The number of the user whose data the prompt holds. */
  readonly askedOf: UserKey;
}

export interface GenerateAnswer {
  readonly generationId: string;
  readonly eventId: string;
  readonly matchStatus: MatchStatus;
}

/** What fell due and was settled. */
export interface SettleAnswer {
  readonly holds: number;
  readonly subscriptions: number;
}

/** Commands by name: what each is given and what it answers. */
export interface Commands {
  reserve: { input: ReserveInput; answer: ReserveAnswer };
  commit: { input: CommitInput; answer: CommitAnswer };
  release: { input: ReleaseInput; answer: Record<never, never> };
  track: { input: TrackInput; answer: TrackAnswer };
  canUse: { input: CanUseInput; answer: CanUseAnswer };
  subscribe: { input: SubscribeInput; answer: SubscriptionAnswer };
  cancel: { input: CancelInput; answer: SubscriptionAnswer };
  grant: { input: GrantInput; answer: CreditsAnswer };
  revoke: { input: RevokeInput; answer: Record<never, never> };
  credits: { input: CreditsInput; answer: CreditsAnswer };
  usage: { input: UsageInput; answer: UsageAnswer };
  user: { input: Record<never, never>; answer: UserAnswer };
  consent: { input: ConsentInput; answer: ConsentAnswer };
  generate: { input: GenerateInput; answer: GenerateAnswer };
  settle: { input: Record<never, never>; answer: SettleAnswer };
}

export type CommandName = keyof Commands;

/** An answer, or the refusal in its place. */
export type Result<Answer> =
  | { readonly ok: true; readonly answer: Answer }
  | { readonly ok: false; readonly refusal: Refusal };

/** What a decision yields: the result, the changes that must be durable before it is told, and their cost. */
export interface Decision<Answer> {
  readonly result: Result<Answer>;
  readonly changes: readonly Change[];
  /** Metering operations. Section 7 of the decisions. */
  readonly operations: number;
  /** Credit balances issued. */
  readonly issued: number;
}

/** A result that carries an answer. */
export function answered<Answer>(answer: Answer): Result<Answer> {
  return { ok: true, answer };
}

/** A result that carries a refusal. */
export function refused(refusal: Refusal): Result<never> {
  return { ok: false, refusal };
}

/** The plan and window that decisions of a user go by. */
export interface Standing {
  readonly row: Subscription;
  readonly plan: Plan;
  readonly window: Window;
}
