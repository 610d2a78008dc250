// The admission of requests with an API key, in the decided order of refusals: whether this process may answer, key, key class
// and mode, rate; then the input. HTTP endpoints, streams, the gateway and the tools of agents all come in here.

import type { Caller } from "../../src/tenant/registry.ts";
import { countAtOwner } from "./ask_owner.ts";
import { authenticate, authorize, type EndUser, type Source } from "./auth.ts";
import type { Access } from "../contract/definition.ts";
import type { DispatchWorld } from "./call.ts";
import { countCall } from "./rate_limit.ts";

/** A request that may be read. */
export interface Admitted<World> {
  readonly world: World;
  readonly caller: Caller;
  readonly endUser: EndUser | null;
  /** Whether the rate limit of its key has counted it. */
  readonly isCounted: boolean;
}

/**
 * Admits a request.
 *
 * @param countsItself whether the handler counts the call, as that of a batch does
 */
export function admit<World extends DispatchWorld>(
  request: Request,
  source: Source<World>,
  access: Access,
  countsItself = false,
): Admitted<World> {
  const { world, caller } = authenticate(request, source);
  const endUser = authorize(request, access, caller, world.clock.now());
  // Only the owner counts. Where that is this process, a call above the rate is refused before its body is read.
  const isCounted = countsItself || world.term.doors.isOpen(caller.app.cell);
  if (isCounted && !countsItself) countCall(world, caller);
  return { world, caller, endUser, isCounted };
}

/** Refuses an admitted request for its input. Its key pays for it all the same. */
export async function refuseInput(
  { world, caller, isCounted }: Admitted<DispatchWorld>,
  request: Request,
  fault: unknown,
): Promise<never> {
  if (!isCounted) await countAtOwner(world, caller, request);
  throw fault;
}
