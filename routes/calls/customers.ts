// Aliases: merging two users, merging many pairs, and looking up the user of an id.

import type { Keeping } from "../../actors/call.ts";
import type { Idempotency } from "../../actors/idempotency.ts";
import type { MergeReport } from "../../src/domain/merging/merge_report.ts";
import { answered, refused, type Result } from "../../src/domain/state/result.ts";
import { refusal } from "../../src/domain/values/refusal.ts";
import { mergePair, mergePairs, type MergingWorld, type Pair } from "../../src/people/merge_pairs.ts";
import { success } from "../http/answer.ts";
import { endpointsOn } from "../http/endpoint.ts";
import type { Endpoint, EndpointRequest } from "../http/endpoint_types.ts";
import type { CheckedOf, DataOf } from "../contract/definition.ts";
import { aliasCustomer, aliasCustomers, getCustomer, PAIR } from "../contract/customers.ts";
import { Refused } from "../http/errors.ts";
import { checkMembers } from "../http/input.ts";
import { elementOf } from "../http/json_body.ts";
import { partOf } from "../http/stored_keys.ts";
import { handledOf, keepingOf, runTurn, type TurnWorld } from "../http/turn.ts";
import { showDuplicates, showSubRef } from "./shown_records.ts";

type CustomersWorld =
  & TurnWorld
  & MergingWorld
  & { readonly term: { readonly idempotency: Pick<Idempotency, "run"> } };

const endpoint = endpointsOn<CustomersWorld>();

function optionsOf(
  { consentGiven, dryRun }: Pick<CheckedOf<typeof aliasCustomer>, "consentGiven" | "dryRun">,
) {
  return { isDryRun: dryRun === true, consentGiven: consentGiven === true };
}

export const CUSTOMERS: readonly Endpoint<CustomersWorld>[] = [
  endpoint(aliasCustomer, async ({ world, caller, input, idempotent }) => {
    const show = (report: MergeReport) => showReport(input, report);
    const keeping = idempotent === null ? null : keepingOf(idempotent, show);
    return handledOf(await mergePair(world, caller.realm, input, optionsOf(input), keeping), show);
  }),
  endpoint(aliasCustomers, async (request) => {
    const { world, input } = request;
    const pairs = input.pairs.map(readPair);
    const merged = await mergePairs(world, pairs, (pair, place) => mergeOne(request, pair, place));
    const results = merged.map((result, place) => showResult(input.pairs[place], result));
    const billableOperations = results.reduce((sum, result) => sum + result.billableOperations, 0);
    return success({ results, billableOperations });
  }),
  endpoint(
    getCustomer,
    (request) =>
      runTurn(request, { userId: request.input.id }, { name: "user", input: {} }, (answer) => ({
        canonicalId: answer.userId,
        aliases: answer.aliases.map(({ id }) => id),
        duplicateActiveSubscriptions: showDuplicates(answer.duplicates),
      })),
  ),
];

/** A pair of a batch, or why it is invalid. */
function readPair(sent: unknown): Result<Pair> {
  try {
    return answered(checkMembers(PAIR, elementOf(sent, "pair")));
  } catch (error) {
    if (error instanceof Refused) return refused(error.refusal);
    throw error;
  }
}

/** Merges a pair of a batch. Under a key its turn keeps its report, so a retry of the batch reports the same counts. */
async function mergeOne(
  { world, caller: { realm }, input, idempotent }: EndpointRequest<
    CustomersWorld,
    CheckedOf<typeof aliasCustomers>
  >,
  pair: Pair,
  place: number,
): Promise<Result<MergeReport>> {
  const options = optionsOf(input);
  if (idempotent === null || options.isDryRun) return await mergePair(world, realm, pair, options, null);
  const call = partOf(idempotent, place);
  const keeping: Keeping<MergeReport> = {
    call,
    shape: (result) => result.ok ? { status: 200, body: JSON.stringify(result.answer) } : null,
  };
  const outcome = await world.term.idempotency.run(call, async () => {
    const result = await mergePair(world, realm, pair, options, keeping);
    return { result, status: 200, body: "" };
  });
  if (outcome.kind === "first") return outcome.answer.result;
  if (outcome.kind === "replayed") return answered(JSON.parse(outcome.answer.body) as MergeReport);
  return refused(refusal("idempotency_conflict", "The Idempotency-Key was used for another batch"));
}

type PairResult = DataOf<typeof aliasCustomers>["results"][number];
type PairCode = Extract<PairResult, { readonly ok: false }>["error"]["code"];

function showResult(pair: unknown, result: Result<MergeReport>): PairResult {
  const { from = null, to = null } = (typeof pair === "object" && pair !== null ? pair : {}) as Partial<Pair>;
  if (!result.ok) {
    const { code, message } = result.refusal;
    return { from, to, ok: false, error: { code: code as PairCode, message }, billableOperations: 0 };
  }
  const { billableOperations } = result.answer;
  return { from, to, ok: true, report: showReport({ from, to } as Pair, result.answer), billableOperations };
}

/** The report of a merge, with the pair of ids that the caller sent. */
export function showReport({ from, to }: Pair, report: MergeReport): DataOf<typeof aliasCustomer> {
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
