// Sessions: windows that begin with the first use, and end some seconds later.

import type { MatchedGroup } from "./decision.ts";
import { placeKey, type User, type World } from "./state.ts";

/** Begins the session of each group that takes part in an allowed call, where none runs. */
export function beginSessions(world: World, user: User, matched: MatchedGroup[], now: number): void {
  for (const each of matched) {
    const { group, planId } = each;
    if (each.window !== null || group.period?.type !== "session") continue;
    const key = placeKey(user.id, { planId, groupId: group.id });
    world.note(`sessions: ${world.sessions.has(key) ? "another one" : "the first one"} begins`);
    const window = { start: now, end: now + group.period.seconds * 1000 };
    world.sessions.set(key, window);
    each.window = window;
    each.counter = world.counter(user.id, planId, group.id, window);
  }
}
