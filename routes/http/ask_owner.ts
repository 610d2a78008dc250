// Internal calls: what a process asks of the owner of a workspace, itself or another process, and gets as a value.

import { Unavailable } from "../../actors/port.ts";
import type { Caller } from "../../src/tenant/registry.ts";
import { type Answer, type Handled, success, valueOf } from "./answer.ts";
import type { EndUser } from "./auth.ts";
import type { Members } from "./json_body.ts";
import type { DispatchWorld, InternalCall, Origin } from "./call.ts";
import { dispatch } from "./dispatch.ts";

/** On whose behalf an internal call is made. */
interface AskedBy {
  readonly caller: Caller;
  readonly endUser?: EndUser | null;
  /** Whether the rate limit of the key has counted the call, or does not count it. */
  readonly isCounted?: boolean;
}

/** Runs an internal call where the caller's workspace is. */
export async function askOwner<World extends DispatchWorld, Input extends object, Data>(
  world: World,
  target: InternalCall<NoInfer<World>, Input, Data>,
  { caller, endUser = null, isCounted = true }: AskedBy,
  input: Input,
  origin: Origin,
): Promise<Answer<Data>> {
  const members = input as unknown as Members;
  const call = { target, caller, endUser, members, input, url: "", idempotent: null, isCounted };
  return valueOf(await dispatch(world, call, origin) as Handled<Data>);
}

/**
 * Does what comes before every call and nothing else: counts it where `isCounted` of the internal call is false, and checks a
 * user's key, whose user it returns.
 */
export const COUNT: InternalCall<unknown, Record<string, never>, EndUser | null> = {
  id: "count",
  handle: ({ endUser }) => success(endUser),
};

/** Counts a call of a key at the owner of its workspace. */
export async function countAtOwner(world: DispatchWorld, caller: Caller, origin: Origin): Promise<void> {
  if (caller.realm.catalog.rateLimit === null) return;
  const { ok } = await askOwner(world, COUNT, { caller, isCounted: false }, {}, origin);
  if (!ok) throw new Unavailable("Workspace temporarily unavailable");
}
