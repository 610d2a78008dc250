// Aliases: makes one user of two ids, one pair or many, and finds the user behind an id.

import { CallGroup } from "./call_group.ts";
import { type CallOptions, requireWhole } from "./transport.ts";
import { pathMember } from "./wire.ts";
import type {
  AliasInput,
  AliasManyAnswer,
  AliasPair,
  AliasReport,
  AliasResult,
  Customer,
} from "./wire_types.ts";

/** Options of a merge. */
export type MergeOptions = Pick<AliasInput, "dryRun" | "consentGiven">;

/** The progress of `aliasMany`. */
export interface AliasProgress {
  readonly done: number;
  readonly total: number;
  /** The sum over the pairs done so far. */
  readonly billableOperations: number;
  /** The pairs that the last request settled. */
  readonly results: readonly AliasResult[];
}

/** Options of a merge of many pairs. */
export interface AliasManyOptions extends MergeOptions {
  /** Pairs in one request: 1 to 500, 500 by default. */
  readonly chunkSize?: number | undefined;
  /** Called after each request. */
  readonly onProgress?: ((progress: AliasProgress) => void) | undefined;
}

const CHUNK_PAIRS_MAX = 500;
/** The service works on a batch for up to 25 s, and then finishes the current pair. */
const BATCH_TIMEOUT_MS = 90_000;

/** `client.customers`. */
export class Customers extends CallGroup {
  /**
   * Makes one user of two ids. Their usage adds up, and subscriptions, credits and history belong to one user. From
   * then on both ids name that user.
   *
   * @example
   * ```ts
   * await client.track("anon_7", "image.render");
   * const report = await client.customers.alias({ from: "anon_7", to: "user_1", consentGiven: true });
   * console.log(report.alreadyMerged); // false
   * console.log((await client.usage("anon_7")).userId); // "user_1"
   * ```
   */
  alias(input: AliasInput, call?: CallOptions): Promise<AliasReport> {
    return this.transport.send({
      method: "POST",
      path: "/customers/alias",
      access: "secret",
      body: input,
      isRead: input.dryRun === true,
    }, call);
  }

  /**
   * Merges any number of pairs, one request at a time. A failed pair has its error in its result, and the others
   * continue. Pairs for which the service had no time are sent again. If a request itself fails, the call rejects; repeat
   * the whole call then: merged pairs return the same report again and cost nothing.
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
      // Without progress the same request would be sent forever, so its pairs remain `not_processed`.
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
    return this.transport.send({
      method: "POST",
      path: "/customers/alias/batch",
      access: "secret",
      body: { pairs, dryRun, consentGiven },
      isRead: dryRun === true,
      timeoutMinMs: BATCH_TIMEOUT_MS,
    }, call);
  }

  /**
   * Finds the user behind an id.
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
    return await this.send("GET", path, "secret", call);
  }
}
