// Messages about something that was paid for and is not granted: they are listed, and tried again by hand or once the catalog
// has changed.

import { realmsHere, visit } from "../../../actors/visit.ts";
import type { Realm } from "../../../actors/call.ts";
import type { Mode } from "../../../actors/port.ts";
import type { Term } from "../../../actors/term.ts";
import { refusal } from "../../domain/values/refusal.ts";
import { answered, refused, type Result } from "../../domain/state/result.ts";
import type { StripeMessage } from "../../domain/stripe/message.ts";
import { inTurn } from "../../process/in_turn.ts";
import { STRIPE_LIMITS } from "../../process/limits.ts";
import type { Database } from "../../storage/database.ts";
import { readStripeOfUser, type StripeOfUser } from "../../storage/stores/stripe_user_store.ts";
import {
  listUnhandled,
  readUnhandled,
  realmsOfUnhandled,
  type Unhandled,
  type UnhandledRef,
} from "../../storage/stores/stripe_unhandled_store.ts";
import type { App } from "../../tenant/registry.ts";
import { handle, type Received, type StripeWorld } from "./receive.ts";

/** What the retries use. */
export interface RetryWorld extends StripeWorld {
  readonly database: Pick<Database, "query">;
}

/** Lists the messages of an app and mode, the newest first. */
export function unhandledOf(
  database: Pick<Database, "query">,
  { realms }: App,
  mode: Mode,
): Promise<Unhandled[]> {
  const { realm, now } = { realm: realms[mode].realm, now: realms[mode].now() };
  return listUnhandled(database, realm, now - STRIPE_LIMITS.unhandledKeptMs);
}

/** Reads what messages said about a user of an app and mode: payments, subscriptions, and what is not handled. */
export function stripeOfUser(
  database: Pick<Database, "query">,
  { realms }: App,
  mode: Mode,
  userId: string,
): Promise<StripeOfUser> {
  const { realm, now } = { realm: realms[mode].realm, now: realms[mode].now() };
  return readStripeOfUser(database, realm, userId, now - STRIPE_LIMITS.unhandledKeptMs);
}

/** Tries a message again; an event is of one mode. */
export async function retryOne(
  world: RetryWorld,
  { realms }: App,
  eventId: string,
): Promise<Result<Received>> {
  for (const realm of [realms.live, realms.test]) {
    const [received] = await retryAll(world, realm, { eventId });
    if (received !== undefined) return answered(received);
  }
  return refused(refusal("not_found", `No unhandled message has the ID ${JSON.stringify(eventId)}`));
}

/** Tries messages again, in a turn each. */
async function retryAll(world: RetryWorld, realm: Realm, which: UnhandledRef): Promise<Received[]> {
  const results: Received[] = [];
  for (const message of await readUnhandled(world.database, realm.realm, which)) {
    const received = await inTurn(realm, () => retryIfKept(world, realm, message));
    if (received !== null) results.push(received);
  }
  return results;
}

/** Tries a message again, unless it was handled meanwhile. */
async function retryIfKept(
  world: RetryWorld,
  realm: Realm,
  { head: { eventId } }: StripeMessage,
): Promise<Received | null> {
  const [message] = await readUnhandled(world.database, realm.realm, { eventId });
  return message === undefined ? null : await handle(world, realm, message);
}

/** What the sweep uses of a running term. */
interface RetrySweepWorld extends RetryWorld {
  readonly term: StripeWorld["term"] & Pick<Term, "isServing" | "doors">;
  readonly registry: { readonly realms: ReadonlyMap<number, Realm> };
}

/** Tries every message of this process again that was tried with another catalog; returns how many. */
export async function retryUnderNewCatalogs(world: RetrySweepWorld): Promise<number> {
  const { term, database, registry } = world;
  const tried = Map.groupBy(await realmsOfUnhandled(database), ({ realm }) => realm);
  let retried = 0;
  for (const realm of realmsHere(term, registry.realms.values())) {
    const { version } = realm.catalog;
    if (tried.get(realm.realm)?.some(({ catalogVersion }) => catalogVersion !== version) !== true) continue;
    const step = () => retryAll(world, realm, { catalogVersion: version });
    retried += (await visit(term, realm.cell, step))?.length ?? 0;
  }
  return retried;
}
