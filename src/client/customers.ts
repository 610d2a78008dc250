// Aliases: making one user of two ids, many pairs at a time, and the user behind an id. Specification, "Alias and
// customers"; section 8 of the decisions.

import type { DuplicateActiveSubscriptions, Mode, SubscriptionRef } from "./shapes.ts";
import { type CallOptions, requireWhole, type Transport } from "./transport.ts";
import { pathMember } from "./wire.ts";

/** Two ids of one user. */
export interface AliasPair {
  /** Becomes the alias. */
  readonly from: string;
  /** Stays. */
  readonly to: string;
}

/** How to merge. */
export interface MergeOptions {
  /** Says what would happen and writes nothing. */
  readonly dryRun?: boolean | undefined;
  /** Needed to link the analytics of an `anon_` session. */
  readonly consentGiven?: boolean | undefined;
}

/** What a merge moved and met. */
export interface AliasReport extends AliasPair {
  /** null on a dry run. */
  readonly mergeId: string | null;
  readonly mode: Mode;
  readonly dryRun: boolean;
  /** Whether the pair was merged before; this is the report of that time. */
  readonly alreadyMerged: boolean;
  /** Whether history still moves; reads by either id are complete all the same. */
  readonly historyPending: boolean;
  /** Metering operations that the merge costs. */
  readonly billableOperations: number;
  /** Rows that belong to `to` now. */
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
  };
  readonly conflicts: {
    readonly counters: {
      readonly summed: number;
      /** Usage of the plan that did not survive, carried onto matching groups. */
      readonly carried: readonly { readonly fromGroupId: string; readonly toGroupId: string }[];
      /** Groups without a match: history, not counted. */
      readonly unpaired: readonly string[];
    };
    readonly subscriptions: DuplicateActiveSubscriptions | null;
    /** Default ones that a paid one replaces. */
    readonly endedSubscriptions: readonly SubscriptionRef[];
    /** Grants that both sides had. */
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

/** What became of one pair of many. */
export type AliasResult =
  & {
    /** As sent; null where the pair had none. */
    readonly from: string | null;
    readonly to: string | null;
    readonly billableOperations: number;
  }
  & (
    | { readonly ok: true; readonly report: AliasReport; readonly error?: undefined }
    | {
      readonly ok: false;
      readonly error: { readonly code: AliasErrorCode; readonly message: string };
      readonly report?: undefined;
    }
  );

/** Why a pair of many was not merged. */
export type AliasErrorCode =
  | "alias_conflict"
  | "alias_cycle"
  | "invalid_request"
  | "workspace_limit_reached"
  | "test_quota_exceeded"
  | "unavailable"
  | "internal_error"
  | "not_processed"
  | (string & Record<never, never>);

/** The results of many pairs, in the order of the pairs. */
export interface AliasManyAnswer {
  readonly results: readonly AliasResult[];
  /** Over all pairs. */
  readonly billableOperations: number;
}

/** How far a batch is. */
export interface AliasProgress {
  readonly done: number;
  readonly total: number;
  /** Of the pairs that are done. */
  readonly billableOperations: number;
  /** Those that this request settled. */
  readonly results: readonly AliasResult[];
}

/** How to merge many pairs. */
export interface AliasManyOptions extends MergeOptions {
  /** Pairs in one request: 1 to 500, 500 by default. */
  readonly chunkSize?: number | undefined;
  /** Told after each request. */
  readonly onProgress?: ((progress: AliasProgress) => void) | undefined;
}

/** The user behind an id. */
export interface Customer {
  readonly canonicalId: string;
  readonly aliases: readonly string[];
  readonly duplicateActiveSubscriptions: DuplicateActiveSubscriptions | null;
}

const CHUNK_PAIRS_MAX = 500;
/** A batch works up to 25 s on pairs and ends the one it is at. */
const BATCH_TIMEOUT_MS = 90_000;

/** `client.customers`. */
export class Customers {
  readonly #transport: Transport;

  /** A client makes it. */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Makes one user of two ids: usage adds up, subscriptions, credits and history become one user's. Both ids name
   * that user from then on.
   *
   * @example
   * ```ts
   * await client.track("anon_7", "image.render");
   * const report = await client.customers.alias({ from: "anon_7", to: "user_1", consentGiven: true });
   * console.log(report.alreadyMerged); // false
   * console.log((await client.usage("anon_7")).userId); // "user_1"
   * ```
   */
  alias(input: AliasPair & MergeOptions, call?: CallOptions): Promise<AliasReport> {
    return this.#transport.send({
      method: "POST",
      path: "/customers/alias",
      access: "secret",
      body: input,
      isRead: input.dryRun === true,
    }, call);
  }

  /**
   * Merges any number of pairs, one request at a time. A pair that fails says so in its result and stops no other;
   * pairs that a request had no time for are sent again. When a request itself fails the call rejects: repeat it
   * whole, since merged pairs answer their report again and cost nothing.
   *
   * @example
   * ```ts
   * const pairs = [{ from: "old_1", to: "new_1" }, { from: "old_2", to: "old_2" }];
   * const { results } = await client.customers.aliasMany(pairs, {
   *   chunkSize: 1,
   *   onProgress: ({ done, total }) => void `${done} of ${total}`,
   * });
   * console.log(results[0]?.ok); // true
   * console.log(results[1]?.error?.code); // "alias_cycle"
   * ```
   */
  async aliasMany(
    pairs: readonly AliasPair[],
    { chunkSize = CHUNK_PAIRS_MAX, onProgress, dryRun, consentGiven }: AliasManyOptions = {},
    call: Omit<CallOptions, "idempotencyKey"> = {},
  ): Promise<AliasManyAnswer> {
    requireWhole("chunkSize", chunkSize, 1, CHUNK_PAIRS_MAX);
    const results = new Array<AliasResult>(pairs.length);
    let left = pairs.map((_, place) => place);
    let billableOperations = 0;
    let settledPairs = 0;
    while (left.length > 0) {
      const chunk = left.slice(0, chunkSize);
      const answer = await this.#sendChunk(
        chunk.map((place) => pairs[place]),
        { dryRun, consentGiven },
        call,
      );
      const open: number[] = [];
      const settled: AliasResult[] = [];
      for (const [index, place] of chunk.entries()) {
        const result = answer.results[index] as AliasResult;
        results[place] = result;
        if (result.error?.code === "not_processed") open.push(place);
        else settled.push(result);
      }
      // A request without any progress would be sent for ever; its pairs stay `not_processed`.
      const isStuck = settled.length === 0;
      left = [...(isStuck ? [] : open), ...left.slice(chunk.length)];
      settledPairs += isStuck ? chunk.length : settled.length;
      billableOperations += settled.reduce((sum, result) => sum + result.billableOperations, 0);
      onProgress?.({ done: settledPairs, total: pairs.length, billableOperations, results: settled });
    }
    return { results, billableOperations };
  }

  #sendChunk(
    pairs: readonly (AliasPair | undefined)[],
    { dryRun, consentGiven }: MergeOptions,
    call: Omit<CallOptions, "idempotencyKey">,
  ): Promise<AliasManyAnswer> {
    return this.#transport.send({
      method: "POST",
      path: "/customers/alias/batch",
      access: "secret",
      body: { pairs, dryRun, consentGiven },
      isRead: dryRun === true,
      timeoutMinMs: BATCH_TIMEOUT_MS,
    }, call);
  }

  /**
   * The user that an id stands for.
   *
   * @example
   * ```ts
   * await client.customers.alias({ from: "old_id", to: "user_1" });
   * const customer = await client.customers.get("old_id");
   * console.log(customer.canonicalId); // "user_1"
   * console.log(customer.aliases); // ["old_id"]
   * ```
   */
  async get(id: string, call?: CallOptions): Promise<Customer> {
    const path = `/customers/${pathMember("id", id)}`;
    return await this.#transport.send({ method: "GET", path, access: "secret" }, call);
  }
}
