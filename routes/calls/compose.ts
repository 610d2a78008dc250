// Compose: structured output of a model for one user. Specification, "POST /v1/compose"; section 10 of the decisions.

import { z } from "zod";
import { numberOf } from "../../src/domain/values/amount.ts";
import { answerOf, success } from "../http/answer.ts";
import { endpointsOn } from "../http/endpoint.ts";
import type { Endpoint } from "../http/endpoint_types.ts";
import { composeAnswer } from "../contract/schemas/answers.ts";
import { endUserId, nameOf, SHOWN_AS } from "../contract/schemas/fields.ts";
import { runTurn, type TurnWorld } from "../http/turn.ts";
import { showBalance, showCounter, showSubscription } from "./wire.ts";
import { compose, type ComposeWorld } from "../../src/integrations/compose/compose.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";

type GenerateWorld = TurnWorld & ComposeWorld;

const endpoint = endpointsOn<GenerateWorld>();

/** Values of any kind by name, as JSON text. */
const vars = z.custom<Record<string, unknown>>(
  (value) => typeof value === "object" && value !== null && !Array.isArray(value),
  "must be an object",
).transform((members) =>
  new Map(Object.entries(members).map(([name, value]) => [name, JSON.stringify(value)]))
).register(SHOWN_AS, {
  type: "object",
  additionalProperties: true,
  description: "A value for each place of the prompt",
});

/** `POST /v1/compose`: a generation of a compose type. */
const generate = endpoint({
  method: "POST",
  path: "/v1/compose",
  access: "secret",
  isLong: true,
  input: z.object({ type: nameOf(REQUEST_LIMITS.idLengthMax), userId: endUserId, vars: vars.nullish() }),
  doc: {
    id: "compose",
    tag: "Compose",
    summary: "Generate a model's structured answer for a user",
    description:
      "type names a compose type of the catalog; vars fill its prompt. The tokens and cents of the answer" +
      " are metered as the event compose.<type>. A user who opted out of ai_personalization gets the " +
      "status opted_out, and no model is asked.",
    answer: composeAnswer,
    errors: [
      "not_found",
      "not_implemented",
      "workspace_limit_reached",
      "test_quota_exceeded",
      "ai_budget_exceeded",
      "generation_failed",
    ],
  },
  handle: async (request) => {
    const { world, caller: { realm }, input } = request;
    const composed = await compose(world, {
      realm,
      userId: input.userId,
      type: input.type,
      vars: input.vars ?? new Map(),
      views: { counter: showCounter, subscription: showSubscription, balance: showBalance },
    });
    if (!composed.ok) return answerOf(composed, () => null);
    if (composed.answer === null) {
      return success({ status: "opted_out", generationId: null, output: null, usage: null });
    }
    const { output, generation } = composed.answer;
    const { model, inputTokens, outputTokens, costCents } = generation;
    const turn = { name: "generate", input: generation, aiCents: costCents } as const;
    return await runTurn(request, { userId: input.userId }, turn, ({ generationId, eventId }) => ({
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
    }));
  },
});

export const COMPOSE: readonly Endpoint<GenerateWorld>[] = [generate];
