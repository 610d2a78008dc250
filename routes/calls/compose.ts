// Compose: structured output of a model for one user.

import { numberOf } from "../../src/domain/values/amount.ts";
import type { RunsAnswer } from "../../src/domain/accounts/run.ts";
import { answered } from "../../src/domain/state/result.ts";
import { failure, success } from "../http/answer.ts";
import { endpointsOn } from "../http/endpoint.ts";
import type { Endpoint } from "../http/endpoint_types.ts";
import * as contract from "../contract/compose.ts";
import { runTurn, type TurnWorld } from "../http/turn.ts";
import { runNeeded } from "./runs.ts";
import { showBalance, showCounter, showRuns, showSubscription } from "./shown_records.ts";
import { compose, type ComposeWorld } from "../../src/integrations/compose/compose.ts";

type GenerateWorld = TurnWorld & ComposeWorld;

const NO_RUN = answered<RunsAnswer>({ runs: [] });

const endpoint = endpointsOn<GenerateWorld>();

export const COMPOSE: readonly Endpoint<GenerateWorld>[] = [
  endpoint(contract.compose, async (request) => {
    const { world, caller: { realm }, input } = request;
    const runId = input.runId ?? null;
    const checked = runId === null ? NO_RUN : await world.term.directory.runById(input.userId, {
      realm,
      name: "checkRun",
      input: { runId },
      needs: { runId },
    });
    if (!checked.ok) return failure(checked.refusal);
    const composed = await compose(world, {
      realm,
      userId: input.userId,
      type: input.type,
      vars: input.vars ?? new Map(),
      views: {
        counter: showCounter,
        subscription: (userId, row) => showSubscription(userId, row, realm.catalog),
        balance: showBalance,
      },
    });
    if (!composed.ok) return failure(composed.refusal);
    if (composed.answer === null) {
      return success({
        status: "opted_out",
        generationId: null,
        output: null,
        usage: null,
        ...showRuns(checked.answer.runs),
      });
    }
    const { output, generation } = composed.answer;
    const { model, inputTokens, outputTokens, costCents } = generation;
    const turn = {
      name: "generate",
      input: { ...generation, runId },
      aiCents: costCents,
      needs: runNeeded(runId),
    } as const;
    return await runTurn(request, { userId: input.userId }, turn, ({ generationId, eventId, runs }) => ({
      status: "generated",
      generationId,
      output,
      usage: {
        model,
        inputTokens: numberOf(inputTokens),
        outputTokens: numberOf(outputTokens),
        costCents: numberOf(costCents),
        eventId,
      },
      ...showRuns(runs),
    }));
  }),
];
