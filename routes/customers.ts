// Aliases: merging two users, many pairs at once, and the user behind an id. Specification, "Alias and customers";
// section 8 of the decisions.

import { z } from "zod";
import { mergeUsers, type MergeWorld } from "../actors/merge.ts";
import type { MergeReport } from "../src/domain/merging/merge_report.ts";
import { refusal } from "../src/domain/refusal.ts";
import { refused, type Result } from "../src/domain/result.ts";
import { moveAlias } from "../src/housekeeping/history_move.ts";
import { linkPeople } from "../src/privacy/link.ts";
import { MERGE_LIMITS } from "../src/process/limits.ts";
import type { Serving } from "../src/service/service.ts";
import { Refused } from "./errors.ts";
import { type Endpoint, endpoint, type EndpointRequest, runTurn, success, wireAnswer } from "./endpoint.ts";
import { aliasBatchAnswer, aliasReport, customerAnswer } from "./schemas/answers.ts";
import { endUserId, SHOWN_AS } from "./schemas/fields.ts";
import { showDuplicates, showSubRef } from "./wire.ts";

const consent = z.boolean().nullish();

interface Pair {
  readonly from: string;
  readonly to: string;
}

interface PairOptions {
  readonly dryRun?: boolean | null | undefined;
  readonly consentGiven?: boolean | null | undefined;
}

/** `POST /v1/customers/alias`: make one id an alias of another user. */
const alias = endpoint({
  method: "POST",
  path: "/v1/customers/alias",
  access: "secret",
  input: z.object({ from: endUserId, to: endUserId, consentGiven: consent, dryRun: z.boolean().nullish() }),
  doc: {
    id: "aliasCustomer",
    tag: "Customers",
    summary: "Make one id an alias of another user",
    description:
      "Merges usage, holds, subscriptions, credits and history; from then on both ids are the same user. " +
      "A repeated call answers the first report with alreadyMerged. consentGiven is needed only to link " +
      "analytics people when an id starts with anon_.",
    answer: aliasReport,
    errors: ["alias_conflict", "alias_cycle", "workspace_limit_reached", "test_quota_exceeded"],
  },
  handle: async (request) => {
    const { input } = request;
    const show = (report: MergeReport) => showReport(input, report);
    return wireAnswer(await mergePair(request, input, input, show), show);
  },
});

const PAIR = z.object({ from: endUserId, to: endUserId });
/** A pair is checked by itself, so that one that is wrong does not stop the others. */
const pair = z.unknown().register(SHOWN_AS, {
  type: "object",
  properties: { from: SHOWN_AS.get(endUserId), to: SHOWN_AS.get(endUserId) },
  required: ["from", "to"],
});

/** `POST /v1/customers/alias/batch`: many pairs, each for itself. */
const batch = endpoint({
  method: "POST",
  path: "/v1/customers/alias/batch",
  access: "secret",
  input: z.object({
    pairs: z.array(pair).min(1).max(MERGE_LIMITS.batchPairsMax),
    dryRun: z.boolean().nullish(),
    consentGiven: consent,
  }),
  doc: {
    id: "aliasCustomers",
    tag: "Customers",
    summary: "Make many aliases, each pair for itself",
    description:
      "A pair that fails does not stop the others. At the workspace's cap every pair that is left gets " +
      "its code; a pair with not_processed was not reached and is to be sent again.",
    answer: aliasBatchAnswer,
    errors: [],
  },
  handle: async (request) => {
    const { pairs } = request.input;
    const start = performance.now();
    const results: PairResult[] = [];
    let stop: Result<MergeReport> | null = null;
    for (const pair of pairs) {
      if (performance.now() - start > MERGE_LIMITS.batchMs) stop ??= NOT_PROCESSED;
      const parsed = PAIR.safeParse(pair);
      const result: Result<MergeReport> = !parsed.success
        ? refused(refusal("invalid_request", "from and to: must have 1 to 200 characters"))
        : stop ?? await mergeSafely({ ...request, firstAnswer: null }, parsed.data);
      if (!result.ok && CAPS.has(result.refusal.code)) stop = result;
      results.push(showResult(pair, result));
    }
    const billableOperations = results.reduce((sum, result) => sum + result.billableOperations, 0);
    return success({ results, billableOperations });
  },
});

/** `GET /v1/customers/{id}`: the user that an id stands for. */
const customer = endpoint({
  method: "GET",
  path: "/v1/customers/:id",
  access: "hidden",
  input: z.object({ id: endUserId }),
  doc: {
    id: "getCustomer",
    tag: "Customers",
    summary: "The user that an id stands for",
    description: "To a public key the path is unknown.",
    answer: customerAnswer,
    errors: [],
  },
  handle: (request) =>
    runTurn(request, { userId: request.input.id }, { name: "user", input: {} }, (answer) => ({
      canonicalId: answer.userId,
      aliases: answer.aliases.map(({ id }) => id),
      duplicateActiveSubscriptions: showDuplicates(answer.duplicates),
    })),
});

export const CUSTOMERS: readonly Endpoint<unknown>[] = [alias, batch, customer];

const NOT_PROCESSED = refused(refusal("not_processed", "The batch ran out of time: send this pair again"));
/** Refusals that hold for every pair that is left. */
const CAPS = new Set<string>(["workspace_limit_reached", "test_quota_exceeded"]);

async function mergePair(
  { serving, caller, firstAnswer }: EndpointRequest<unknown>,
  { from, to }: Pair,
  { dryRun, consentGiven }: PairOptions,
  show: (report: MergeReport) => unknown,
): Promise<Result<MergeReport>> {
  const needsConsent = from.startsWith("anon_") || to.startsWith("anon_");
  const record = firstAnswer === null ? null : (result: Result<MergeReport>, userKey: number) => {
    firstAnswer.isKept = true;
    return firstAnswer.row(wireAnswer(result, show), userKey);
  };
  const analytics = needsConsent && consentGiven !== true ? "skipped_consent_required" : "linked";
  const isDryRun = dryRun === true;
  const call = { realm: caller.realm, from, to, isDryRun, analytics, record } as const;
  const { result, alias: moved } = await mergeUsers(worldOf(serving), call);
  if (result.ok && !isDryRun) {
    // Reads of tables must see what either side opted out of before this is answered.
    if (result.answer.analytics === "skipped_consent_required") await serving.term.flush();
    // A repeated call links too: the first one may have been cut off before it did.
    else await linkPeople(serving, caller.realm, from, to);
  }
  if (moved !== null && result.ok && !result.answer.historyPending) await moveAlias(serving, moved);
  return result;
}

function worldOf({ term, store, ids }: Serving): MergeWorld {
  const { gate, budget, directory, idempotency } = term;
  return {
    gate,
    budget,
    directory,
    store,
    ids,
    flush: () => term.flush(),
    isValid: () => term.isServing,
    remember: (row, waiting) => idempotency.remember(row, waiting),
  };
}

/** A pair that fails does not stop the others; one that meets a fault of ours says so. */
async function mergeSafely(
  request: EndpointRequest<PairOptions>,
  pair: Pair,
): Promise<Result<MergeReport>> {
  try {
    return await mergePair(request, pair, request.input, () => null);
  } catch (error) {
    if (error instanceof Refused) return refused(error.refusal);
    if (!request.serving.term.isServing) throw error;
    return refused(refusal("internal_error", "This pair could not be merged: send it again"));
  }
}

type PairResult = ReturnType<typeof showResult>;

function showResult(pair: unknown, result: Result<MergeReport>) {
  const { from = null, to = null } = (typeof pair === "object" && pair !== null ? pair : {}) as Partial<Pair>;
  if (!result.ok) {
    const { code, message } = result.refusal;
    return { from, to, ok: false, error: { code, message }, billableOperations: 0 };
  }
  const { billableOperations } = result.answer;
  return { from, to, ok: true, report: showReport({ from, to } as Pair, result.answer), billableOperations };
}

/** A report with the pair as it was sent. */
export function showReport({ from, to }: Pair, report: MergeReport) {
  const { mergeId, conflicts, ...rest } = report;
  return {
    mergeId,
    from,
    to,
    ...rest,
    conflicts: {
      counters: conflicts.counters,
      subscriptions: showDuplicates(conflicts.subscriptions),
      endedSubscriptions: conflicts.endedSubscriptions.map(showSubRef),
      credits: conflicts.credits,
    },
  };
}
