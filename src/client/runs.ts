// Runs: the tasks of agents, each with limits that all of its calls share.

import { CallGroup } from "./call_group.ts";
import { pagesByCursor } from "./pages.ts";
import { type CallOptions, requireWhole } from "./transport.ts";
import { pathMember } from "./wire.ts";
import type { Run, RunDetail, RunInput, RunPage, RunQuery } from "./wire_types.ts";

const PAGE_ROWS_MAX = 100;

/** `client.runs`. */
export class Runs extends CallGroup {
  /**
   * Opens a run. Calls with its id are refused where its limits leave no room. It ends by itself after `ttlSeconds`.
   *
   * @example
   * ```ts
   * const { runId } = await client.runs.create({ userId: "user_1", limits: [{ unit: "count", quota: 2 }] });
   * const hold = await client.reserve("user_1", "image.render", 1, {}, { count: 3, runId });
   * console.log(hold.reasons); // ["run_limit_reached"]
   * ```
   */
  create(input: RunInput, call?: CallOptions): Promise<Run> {
    return this.send("POST", "/runs", "secret", call, input);
  }

  /**
   * Reads a run. It is known for 30 days after its end.
   *
   * @example
   * ```ts
   * const { runId } = await client.runs.create({ userId: "user_1", limits: [{ unit: "cents", quota: 50 }] });
   * await client.track("user_1", "chat.reply", 1, {}, { inputCostCents: 4.2, runId });
   * const { limits } = await client.runs.get(runId);
   * console.log(limits[0]?.count); // 4.2
   * ```
   */
  async get(runId: string, call?: CallOptions): Promise<RunDetail> {
    const path = `/runs/${pathMember("runId", runId)}`;
    return await this.send("GET", path, "secret", call);
  }

  /**
   * Reads a page of the runs of a user, newest first.
   *
   * @example
   * ```ts
   * await client.runs.create({ userId: "user_1", limits: [{ unit: "count", quota: 2 }], name: "Digest" });
   * const { runs } = await client.runs.list({ userId: "user_1", status: "active" });
   * console.log(runs[0]?.name); // "Digest"
   * ```
   */
  list(query: RunQuery, call?: CallOptions): Promise<RunPage> {
    return this.send("GET", "/runs", "secret", call, query);
  }

  /**
   * Reads all runs of a user, newest first, page by page as you go. `limit` is the size of a page.
   *
   * @example
   * ```ts
   * await client.runs.create({ userId: "user_1", limits: [{ unit: "count", quota: 2 }] });
   * for await (const run of client.runs.all({ userId: "user_1" })) console.log(run.status); // "active"
   * ```
   */
  all(query: Omit<RunQuery, "cursor">, call?: CallOptions): AsyncGenerator<RunDetail, void> {
    const limit = requireWhole("limit", query.limit ?? PAGE_ROWS_MAX, 1, PAGE_ROWS_MAX);
    return pagesByCursor(async (cursor) => {
      const page = await this.list({ ...query, limit, cursor }, call);
      return { rows: page.runs, next: page.cursor };
    });
  }

  /**
   * Ends a run, and the runs within it. Open reservations are settled as usual. If it has ended already, the call rejects
   * with `run_ended`.
   *
   * @example
   * ```ts
   * const { runId } = await client.runs.create({ userId: "user_1", limits: [{ unit: "count", quota: 2 }] });
   * const { status } = await client.runs.end(runId, { reason: "done" });
   * console.log(status); // "ended"
   * ```
   */
  async end(
    runId: string,
    options: { readonly reason?: string | undefined } = {},
    call?: CallOptions,
  ): Promise<Run> {
    const path = `/runs/${pathMember("runId", runId)}/end`;
    return await this.send("POST", path, "secret", call, options);
  }
}

/** Opens a run, does the work in it, and ends it however the work ends. */
export async function workInRun<Value>(
  runs: Pick<Runs, "create" | "end">,
  input: RunInput,
  work: (run: Run) => Promise<Value> | Value,
  call: CallOptions | undefined,
): Promise<Value> {
  const run = await runs.create(input, call);
  const end = (reason: string) => runs.end(run.runId, { reason }).catch(() => {});
  try {
    const value = await work(run);
    await end("done");
    return value;
  } catch (error) {
    await end("the work threw");
    throw error;
  }
}
