// Runs calls without an API key in a process with several databases: on the database of their app or workspace, on a
// database that the call names, or on all of them with the answers joined. If one of them cannot answer, a call to all is
// refused. With one database, every call runs on it.

import type { AuditWorld, Author } from "../../src/audit/audit.ts";
import { Unavailable } from "../../actors/port.ts";
import { success, valueOf } from "./answer.ts";
import type { AuditedWorld } from "./audit_values.ts";
import { dispatchAudited } from "./audited.ts";
import type { DispatchWorld, KeylessCall, Origin, Outcome } from "./call.ts";
import type { KeylessEndpoint, Stored, StoreService, StoreSource } from "./endpoint_types.ts";
import { invalidMember } from "./errors.ts";

type AnyWorld = DispatchWorld & AuditWorld & AuditedWorld;

/** Runs a call, and logs it if it writes. */
export async function dispatchAcross<World extends AnyWorld>(
  source: StoreSource<World>,
  call: KeylessCall<World>,
  origin: Origin,
  author: Author,
): Promise<Outcome> {
  const { target } = call;
  const { across = {} } = target;
  const join = across.join ?? target.gather;
  if (!source.isOne && join !== undefined && across.about?.(call.input) === undefined) {
    return await joined(source, call, join, (world) => dispatchAudited(world, call, origin, author));
  }
  return await dispatchAudited(await worldOf(source, target, call.input), call, origin, author);
}

/** The term in which a call runs that needs one database. */
export async function worldOf<World>(
  source: StoreSource<World>,
  { about, across }: Pick<KeylessEndpoint<World>, "about" | "across">,
  input: unknown,
): Promise<World> {
  const place = await across?.choose?.(source, input);
  const chosen = place === undefined ? undefined : source.services[place];
  if (chosen !== undefined) return chosen.requireServing();
  const belonging = about?.({ world: source.requireServing(), input }) ?? across?.about?.(input);
  return belonging === undefined || belonging === null
    ? source.requireServing()
    : source.requireServingOf(belonging);
}

/** The place of the database that an input names, or, without a name, that has the fewest workspaces. */
export function namedStore(source: StoreSource<unknown>, name: string | null): number {
  const place = source.placeFor(name);
  if (place >= 0) return place;
  const names = source.services.flatMap(({ storeName }) => storeName ?? []);
  const which = names.length === 0
    ? "must be left out: the service has one"
    : `must be one of ${names.join(", ")}`;
  throw invalidMember("store", which);
}

/** Joins the answers of all databases. */
async function joined<World>(
  source: StoreSource<World>,
  { target, input }: KeylessCall<World>,
  join: (answers: readonly unknown[], input: unknown, stores: readonly Stored[]) => unknown,
  run: (world: World) => Promise<Outcome>,
): Promise<Outcome> {
  const absent = target.across?.absent;
  const services = absent === undefined ? source.needed : source.services;
  const parts = await Promise.all(services.map(async (service) => {
    try {
      return valueOf(await run(service.requireServing()) as Exclude<Outcome, Response>);
    } catch (error) {
      if (absent === undefined || !(error instanceof Unavailable)) throw error;
      return success(absent(storedOf(service)));
    }
  }));
  const refused = parts.find(({ ok }) => !ok);
  if (refused !== undefined) return refused;
  const answers = parts.map((answer) => answer.ok ? answer.data : null);
  return success(join(answers, input, services.map(storedOf)));
}

/** Shows a database. A database that has not answered for a while is not shown as served, even if its term continues. */
export function storedOf({ storeName, state, serving, awaited }: StoreService<unknown>): Stored {
  const isLost = state === "serving" && serving === null;
  return { name: storeName ?? "", state: isLost ? "starting" : state, awaited };
}
