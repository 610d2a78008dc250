// Who met a limit. Section 1 of beyond.md, "Refusals".

import { z } from "zod";
import type { RefusedCalls } from "../../actors/refused_calls.ts";
import type { Term } from "../../actors/term.ts";
import { success } from "../http/answer.ts";
import { endpointsOn } from "../http/endpoint.ts";
import type { Endpoint } from "../http/endpoint_types.ts";
import { refusalsAnswer } from "../contract/schemas/answers.ts";
import { endUserId, eventName, wholeNumber } from "../contract/schemas/fields.ts";
import { listRefusedCalls } from "../../src/storage/queries/refused_calls.ts";
import { REFUSAL_LIMITS, REQUEST_LIMITS } from "../../src/process/limits.ts";

interface RefusalsWorld {
  readonly term: Pick<Term, "flush"> & { readonly refusedCalls: Pick<RefusedCalls, "write"> };
  readonly database: Parameters<typeof listRefusedCalls>[0];
}

const endpoint = endpointsOn<RefusalsWorld>();

/** `GET /v1/refusals`: a page of refused calls, newest first. */
const list = endpoint({
  method: "GET",
  path: "/v1/refusals",
  access: "secret",
  input: z.object({
    userId: endUserId.optional(),
    event: eventName.optional(),
    limit: wholeNumber(1, REQUEST_LIMITS.feedLimitMax).optional(),
    offset: wholeNumber(0, REQUEST_LIMITS.feedOffsetMax).optional(),
  }),
  doc: {
    id: "listRefusals",
    tag: "Events",
    summary: "Who met a limit, newest first",
    description:
      "Refused reserves, tracks and composes. Those of a user that are alike in event and reasons, within one hour " +
      "of UTC, are one row with a count. Kept for 90 days. Without users who wait for an erasure.",
    answer: refusalsAnswer,
    errors: [],
  },
  handle: async ({ world, caller: { realm }, input }) => {
    const limit = input.limit ?? REQUEST_LIMITS.feedLimitDefault;
    const offset = input.offset ?? 0;
    await Promise.all([world.term.flush(), world.term.refusedCalls.write([realm.realm])]);
    const refusals = await listRefusedCalls(world.database, {
      realm: realm.realm,
      keptFrom: realm.now() - REFUSAL_LIMITS.keptMs,
      userId: input.userId ?? null,
      event: input.event ?? null,
      limit,
      offset,
    });
    return success({ refusals, limit, offset });
  },
});

export const REFUSALS: readonly Endpoint<RefusalsWorld>[] = [list];
