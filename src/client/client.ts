// The client of the service: every call under /api/v1, typed, retried where that is safe, and never counted twice. It
// has no dependency and runs on Deno, Node from 20 on, browsers and workers. This folder imports only its
// own files, because it is used on its own: by address, or as the package that `deno task client:pack` makes.

import { Accounts } from "./accounts.ts";
import { Analytics } from "./analytics.ts";
import { type ComposeAnswer, composeCall, type ComposeOptions } from "./compose.ts";
import { Credits } from "./credits.ts";
import { Customers } from "./customers.ts";
import { Events } from "./events.ts";
import { Features } from "./features.ts";
import { Metering } from "./metering.ts";
import type { Unmetered } from "./metering_types.ts";
import { Refusals } from "./refusals.ts";
import { Runs, workInRun } from "./runs.ts";
import { Plans, Subscriptions, Users } from "./subscriptions.ts";
import type { Run, RunInput } from "./wire_types.ts";
import { TestClock } from "./test_clock.ts";
import { TopUps } from "./top_ups.ts";
import { UserKeys } from "./user_keys.ts";
import { type CallOptions, type ClientOptions, Transport } from "./transport.ts";

/** A client of one service, with one key. `Allowed` is `Unmetered` for a client with `onUnavailable: "allow"`. */
export class HoldfastClient<Allowed extends Unmetered = never> extends Metering<Allowed> {
  /** Writes and ends subscriptions. */
  readonly subscriptions: Subscriptions = new Subscriptions(this.transport);
  /** Reads everything about a user. */
  readonly users: Users = new Users(this.transport);
  /** Puts users under organisations and teams. */
  readonly accounts: Accounts = new Accounts(this.transport);
  /** Makes one user of several ids. */
  readonly customers: Customers = new Customers(this.transport);
  /** Grants, extends, revokes and lists credits. */
  readonly credits: Credits = new Credits(this.transport);
  /** Lists the plans on offer. */
  readonly plans: Plans = new Plans(this.transport);
  /** Opens, reads and ends runs: tasks with limits of their own. */
  readonly runs: Runs = new Runs(this.transport);
  /** Reads the features of users. */
  readonly features: Features = new Features(this.transport);
  /** Reads metered events. */
  readonly events: Events = new Events(this.transport);
  /** Reads users who hit a limit. */
  readonly refusals: Refusals = new Refusals(this.transport);
  /** Analytics of people, their consent, export and erasure. */
  readonly analytics: Analytics = new Analytics(this.transport);
  /** Creates, lists and revokes keys of users. */
  readonly userKeys: UserKeys = new UserKeys(this.transport);
  /** Lets users buy credits automatically. */
  readonly topUps: TopUps = new TopUps(this.transport);
  /** Reads and moves the clock of test mode. */
  readonly testClock: TestClock = new TestClock(this.transport);

  /**
   * Asks a model for a structured answer about a user, by a compose type of the catalog, and meters its cost. This may
   * take a minute.
   *
   * @example
   * ```ts
   * const vars = { name: "Ada", language: "English" };
   * const recap = await client.compose<{ headline: string; body: string }>("usage-recap", "user_1", vars);
   * if (recap.status === "generated") {
   *   console.log(recap.output.headline); // "A sample headline"
   *   console.log(recap.usage.costCents); // 0.045
   * }
   * ```
   */
  compose<Output = Readonly<Record<string, unknown>>>(
    type: string,
    userId: string,
    vars?: Readonly<Record<string, unknown>>,
    { runId, ...call }: ComposeOptions = {},
  ): Promise<ComposeAnswer<Output>> {
    return this.transport.send(composeCall(type, userId, vars, runId), call);
  }

  /**
   * Opens a run, does the work in it and returns the result of the work. The run ends when the work ends, also when it
   * throws; without a connection to the service it ends by itself after `ttlSeconds`. Pass `run.runId` to the calls of the
   * work, and as `parentRunId` to the runs of sub-agents.
   *
   * @example
   * ```ts
   * const budget = { userId: "user_1", limits: [{ unit: "cents", quota: 50 }], name: "Research" } as const;
   * const answer = await client.withRun(budget, async ({ runId }) => {
   *   await client.track("user_1", "chat.reply", 1, {}, { inputCostCents: 4.2, runId });
   *   return "done";
   * });
   * console.log(answer); // "done"
   * ```
   */
  withRun<Value>(
    input: RunInput,
    work: (run: Run) => Promise<Value> | Value,
    call?: CallOptions,
  ): Promise<Value> {
    return workInRun(this.runs, input, work, call);
  }
}

/**
 * Creates a client.
 *
 * @example
 * ```ts
 * const holdfast = createClient({
 *   apiKey: "sk_live_...",
 *   baseUrl: "https://holdfast.example.com",
 *   retries: { maxRetries: 3 },
 *   onRetry: ({ path, retry, delayMs, error }) => console.warn(path, retry, delayMs, error.code),
 * });
 * const { allowed } = await holdfast.reserve("user_1", "image.render");
 * console.log(allowed); // true
 * ```
 */
export function createClient(
  options: ClientOptions & { readonly onUnavailable: "allow" },
): HoldfastClient<Unmetered>;
export function createClient(options: ClientOptions): HoldfastClient;
export function createClient(options: ClientOptions): HoldfastClient | HoldfastClient<Unmetered> {
  return new HoldfastClient(new Transport(options));
}

export { HoldfastError } from "./errors.ts";
export { TrackError } from "./track_later.ts";
export { signEndUserToken } from "./end_user_token.ts";
export { verifyWebhook } from "./webhooks.ts";
export type { Accounts } from "./accounts.ts";
export type { Analytics } from "./analytics.ts";
export type { ComposeAnswer, ComposeOptions } from "./compose.ts";
export type { Credits } from "./credits.ts";
export type { AliasManyOptions, AliasProgress, Customers, MergeOptions } from "./customers.ts";
export type { EndUserTokenInput } from "./end_user_token.ts";
export type { ClientErrorCode, ErrorParts } from "./errors.ts";
export type { Events } from "./events.ts";
export type { Features } from "./features.ts";
export type {
  CallSize,
  DecisionOptions,
  FailedCommit,
  GroupStanding,
  Held,
  LaterEvent,
  LimitReachedDetails,
  NotHeld,
  OnAllowedUnmetered,
  OnCommitError,
  OnTrackError,
  ReportedUsage,
  ReserveAnswer,
  TrackErrorInfo,
  Unmetered,
  WaitOptions,
} from "./metering_types.ts";
export type { Metering } from "./metering.ts";
export type { Refusals } from "./refusals.ts";
export type { Runs } from "./runs.ts";
export type { RetryPolicy } from "./retry.ts";
export type { Plans, SubscriptionKey, Subscriptions, Users } from "./subscriptions.ts";
export type { TestClock } from "./test_clock.ts";
export type { UserKeys } from "./user_keys.ts";
export type { CallOptions, ClientOptions, Fetch, RetryNotice } from "./transport.ts";
export type { UsageCalls, UsageOptions, WatchConnection, WatchEnd, WatchOptions } from "./usage_calls.ts";
export type { WebhookHeaders, WebhookMessage, WebhookRequest, WebhookType } from "./webhooks.ts";
export type * from "./wire_types.ts";
export type { Done, Outcome, ReservedWork, Settled } from "./with_reservation.ts";
