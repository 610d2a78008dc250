// Calls that were refused at a limit.

import type { RefusedCalls } from "../../actors/refused_calls.ts";
import type { Term } from "../../actors/term.ts";
import { success } from "../http/answer.ts";
import { endpointsOn } from "../http/endpoint.ts";
import type { Endpoint } from "../http/endpoint_types.ts";
import * as contract from "../contract/refused_calls.ts";
import { listRefusedCalls } from "../../src/storage/queries/refused_calls.ts";
import { REFUSAL_LIMITS, REQUEST_LIMITS } from "../../src/process/limits.ts";

export interface RefusalsWorld {
  readonly term: Pick<Term, "flush"> & { readonly refusedCalls: Pick<RefusedCalls, "write"> };
  readonly database: Parameters<typeof listRefusedCalls>[0];
}

const endpoint = endpointsOn<RefusalsWorld>();

export const REFUSALS: readonly Endpoint<RefusalsWorld>[] = [
  endpoint(contract.listRefusals, async ({ world, caller: { realm }, input }) => {
    const limit = input.limit ?? REQUEST_LIMITS.feedLimitDefault;
    const offset = input.offset ?? 0;
    await Promise.all([world.term.flush(), world.term.refusedCalls.write([realm.realm])]);
    const refusals = await listRefusedCalls(world.database, {
      realm: realm.realm,
      keptFrom: realm.now() - REFUSAL_LIMITS.keptMs,
      userId: input.userId ?? null,
      event: input.event ?? null,
      refusedBy: input.refusedBy ?? null,
      limit,
      offset,
    });
    return success({ refusals, limit, offset });
  }),
];
