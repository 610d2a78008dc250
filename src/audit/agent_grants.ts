// What agents may still grant in a UTC day, over all apps and processes. Units are taken before a grant and given back if
// it is refused. A grant with an unknown result keeps them, and the same form takes none again.
//
// Of several databases each counts the grants of its own apps. Units are taken in one, and then all are added up: of two
// grants at once the later one sees both, so together they never pass the cap, though both may be refused.

import { grantDayOf } from "../domain/credits/agent_cap.ts";
import type { Amount } from "../domain/values/amount.ts";
import type { Millis } from "../domain/values/period.ts";
import type { Database } from "../storage/database.ts";
import { giveBackUnits, readUnits, takeUnits } from "../storage/stores/agent_grant_store.ts";
import { forgetSpent, spend } from "../storage/stores/console_store.ts";
import { type AuditWorld, NO_CELLS } from "./audit.ts";

type World = Omit<AuditWorld, "ids"> & { readonly database: Pick<Database, "query"> };
/** The running terms of all databases. */
type Worlds = readonly Pick<World, "database" | "clock">[];

/** A grant of an agent. */
interface AgentGrant {
  readonly who: string;
  readonly units: Amount;
  /** The most that the agent may grant in a day. */
  readonly cap: Amount;
  /** The key of the form: it takes units once. */
  readonly key: string;
  /** When the key can no longer be presented, in real time. */
  readonly until: Millis;
}

/**
 * Takes the units of a grant; returns what is left of the day if they pass the cap, else how to give them back.
 *
 * @param world the term of the app's database
 * @param all the terms of every database
 */
export async function takeForGrant(
  world: World,
  all: Worlds,
  { key, until, ...grant }: AgentGrant,
): Promise<{ readonly left: Amount } | { readonly giveBack: () => Promise<void> }> {
  const { inCell, clock } = world;
  const now = clock.now();
  const taking = { ...grant, day: grantDayOf(now) };
  const result = await inCell(NO_CELLS, async (session) => {
    if (!await spend(session, key, until, now)) return "known";
    if (await takeUnits(session, taking)) return "taken";
    await forgetSpent(session, key);
    return "above";
  });
  if (result === "above") return { left: await leftToGrant(all, grant) };
  const giveBack = () =>
    inCell(NO_CELLS, async (session) => {
      await giveBackUnits(session, taking);
      await forgetSpent(session, key);
    });
  // A form that was sent before has taken its units: what becomes of it is that call's to settle.
  if (result === "known") return { giveBack: () => Promise.resolve() };
  if (all.length === 1) return { giveBack };
  try {
    if (await grantedIn(all, grant.who, taking.day) <= grant.cap) return { giveBack };
  } catch (error) {
    await giveBack();
    throw error;
  }
  await giveBack();
  return { left: await leftToGrant(all, grant) };
}

/** What an agent may still grant today. */
export async function leftToGrant(
  all: Worlds,
  { who, cap }: Pick<AgentGrant, "who" | "cap">,
): Promise<Amount> {
  const now = Math.max(...all.map(({ clock }) => clock.now()));
  const left = cap - await grantedIn(all, who, grantDayOf(now));
  return left > 0n ? left : 0n;
}

async function grantedIn(all: Worlds, who: string, day: number): Promise<Amount> {
  const units = await Promise.all(all.map(({ database }) => readUnits(database, who, day)));
  return units.reduce((sum, each) => sum + each, 0n);
}
