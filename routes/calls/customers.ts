// Aliases: merging two users, many pairs at once, and the user behind an id. Specification, "Alias and customers";
// section 8 of the decisions.

import { z } from "zod";
import type { MergeReport } from "../../src/domain/merging/merge_report.ts";
import type { Result } from "../../src/domain/state/result.ts";
import { mergePair, mergePairs, type MergingWorld, type Pair } from "../../src/people/merge_pairs.ts";
import { MERGE_LIMITS } from "../../src/process/limits.ts";
import { success } from "../http/answer.ts";
import { endpointsOn } from "../http/endpoint.ts";
import type { Endpoint } from "../http/endpoint_types.ts";
import { aliasBatchAnswer, aliasReport, customerAnswer } from "../contract/schemas/answers.ts";
import { endUserId, SHOWN_AS } from "../contract/schemas/fields.ts";
import { handledOf, keepingOf, runTurn, type TurnWorld } from "../http/turn.ts";
import { showDuplicates, showSubRef } from "./wire.ts";

type CustomersWorld = TurnWorld & MergingWorld;

const endpoint = endpointsOn<CustomersWorld>();

const options = { consentGiven: z.boolean().nullish(), dryRun: z.boolean().nullish() };

function optionsOf({ consentGiven, dryRun }: z.infer<z.ZodObject<typeof options>>) {
  return { isDryRun: dryRun === true, consentGiven: consentGiven === true };
}

/** `POST /v1/customers/alias`: make one id an alias of another user. */
const alias = endpoint({
  method: "POST",
  path: "/v1/customers/alias",
  access: "secret",
  input: z.object({ from: endUserId, to: endUserId, ...options }),
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
  handle: async ({ world, caller, input, idempotent }) => {
    const show = (report: MergeReport) => showReport(input, report);
    const keeping = idempotent === null ? null : keepingOf(idempotent, show);
    return handledOf(await mergePair(world, caller.realm, input, optionsOf(input), keeping), show);
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
  isLong: true,
  input: z.object({
    pairs: z.array(pair).min(1).max(MERGE_LIMITS.batchPairsMax),
    ...options,
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
  handle: async ({ world, caller, input }) => {
    const pairs = input.pairs.map((sent) => PAIR.safeParse(sent).data ?? null);
    const merged = await mergePairs(world, caller.realm, pairs, optionsOf(input));
    const results = merged.map((result, place) => showResult(input.pairs[place], result));
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

export const CUSTOMERS: readonly Endpoint<CustomersWorld>[] = [alias, batch, customer];

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
