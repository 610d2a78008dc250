// The world as the calls of one app use it: their reads of tables count in the app's share.

import type { FairReads } from "../../src/storage/fair_reads.ts";
import type { App } from "../../src/tenant/registry.ts";

/** What reads of tables come from. */
export interface ReadingWorld {
  readonly reads: FairReads;
}

interface Known {
  readonly world: ReadingWorld;
  readonly ofApp: ReadingWorld;
}

/** By app, which belongs to one term: nearly all calls come through here. */
const worlds = new WeakMap<App, Known>();

/** Returns a world whose `database` has the share of an app. */
export function worldOf<World extends ReadingWorld>(world: World, app: App): World {
  const known = worlds.get(app);
  if (known !== undefined && known.world === world) return known.ofApp as World;
  const ofApp = { ...world, database: world.reads.of(app.record.appId) };
  worlds.set(app, { world, ofApp });
  return ofApp;
}
