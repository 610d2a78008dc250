// The admission of requests with an API key, in the decided order of refusals: whether this process may answer, key, key class
// and mode, rate; then the input. HTTP endpoints, streams, the gateway and the tools of agents all come in here.

import type { Caller } from "../../src/tenant/registry.ts";
import { askOwner, COUNT, countAtOwner } from "./ask_owner.ts";
import { authenticate, authorize, type CallAccess, type EndUser, type Source } from "./auth.ts";
import type { KeyedDefinition } from "../contract/definition.ts";
import type { DispatchWorld } from "./call.ts";
import { refusedWith } from "./errors.ts";
import { countCall } from "./rate_limit.ts";

/** A request that may be read. */
export interface Admitted<World> {
  readonly world: World;
  readonly caller: Caller;
  readonly endUser: EndUser | null;
  /** Whether the rate limit of its key has counted it. */
  readonly isCounted: boolean;
}

/** What admission reads of a call; the handler of a batch counts the call itself. */
export interface Admission extends CallAccess, Pick<KeyedDefinition, "isBatch"> {
  /** A header that has the key, if it is there; else it is the bearer token. */
  readonly keyHeader?: string | null;
}

/** Admits a request: at once, or, with a user's key, when the owner of its cell has checked the key. */
export function admit<World extends DispatchWorld>(
  request: Request,
  source: Source<World>,
  call: Admission,
): Admitted<World> | Promise<Admitted<World>> {
  const { world, caller } = authenticate(request, source, call.keyHeader);
  if (caller.ofUser !== null) return admitUserKey(request, world, caller, call);
  const endUser = authorize(request, call, caller, world.clock.now());
  const countsItself = call.isBatch === true;
  // Only the owner counts. Where that is this process, a call above the rate is refused before its body is read.
  const isCounted = countsItself || world.term.doors.isOpen(caller.app.cell);
  if (isCounted && !countsItself) countCall(world, caller);
  return { world, caller, endUser, isCounted };
}

/** Admits a request with a user's key, whose owner also counts it when the call runs. */
async function admitUserKey<World extends DispatchWorld>(
  request: Request,
  world: World,
  caller: Caller,
  call: Admission,
): Promise<Admitted<World>> {
  const endUser = await holderOf(world, caller, request);
  authorize(request, call, caller, world.clock.now());
  return { world, caller, endUser, isCounted: false };
}

/** Returns the running term and the caller with a valid key, for a request that is no call. */
export async function identify<World extends DispatchWorld>(
  request: Request,
  source: Source<World>,
  keyHeader: string | null = null,
): Promise<{ world: World; caller: Caller }> {
  const identified = authenticate(request, source, keyHeader);
  await holderOf(identified.world, identified.caller, request);
  return identified;
}

/** The user for whom a user's key acts, checked at the owner; null with an API key of the app. */
async function holderOf(world: DispatchWorld, caller: Caller, request: Request): Promise<EndUser | null> {
  if (caller.ofUser === null) return null;
  const checked = await askOwner(world, COUNT, { caller }, {}, request);
  if (!checked.ok) throw refusedWith(checked.error);
  return checked.data;
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
