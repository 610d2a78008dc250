// Bugs of processes with several databases.

import { Stores } from "../../../src/cluster/stores.ts";
import { KEYS_PER_STORE } from "../../../src/storage/nodes/store_numbers.ts";
import { Server } from "../database/server.ts";
import { type PlantedBug, replace, replaceGetter } from "./plant.ts";

/** Joins the answers of the databases that are served, and leaves the others out. */
function listWhatIsServed(): () => void {
  const needed = Object.getOwnPropertyDescriptor(Stores.prototype, "needed")?.get as () => Stores["services"];
  return replaceGetter(Stores.prototype, "needed", function (this: Stores) {
    const all = needed.call(this);
    const isJoining = new Error().stack?.includes("/http/across_stores.ts") === true;
    return isJoining ? all.filter(({ serving }) => serving !== null) : all;
  });
}

const BUGS: readonly PlantedBug[] = [
  {
    name: "a call waits until every database is served",
    plant: () =>
      replace(Stores.prototype, "find", (find) =>
        function (this: Stores, presented) {
          this.requireAll();
          return find.call(this, presented);
        }),
  },
  {
    name: "a key is unknown while its database is away",
    plant: () =>
      replace(Stores.prototype, "requireAll", (requireAll) =>
        function (this: Stores) {
          return this.terms.length > 0 ? this.terms : requireAll.call(this);
        }),
  },
  { name: "a list over all databases leaves out one that is away", plant: listWhatIsServed },
  {
    name: "what is about no workspace needs the first database",
    plant: () =>
      replaceGetter(Stores.prototype, "serving", function (this: Stores) {
        return this.services[0]?.serving ?? null;
      }),
  },
  {
    name: "users of every database are numbered from one",
    plant: () =>
      replace(Server.prototype, "open", (open) =>
        function (this: Server, ...asked) {
          this.tables.userKeys %= KEYS_PER_STORE;
          return open.apply(this, asked);
        }),
  },
];

export const DATABASE_BUGS: readonly PlantedBug[] = BUGS.map((bug) => ({ ...bug, databases: 2 }));
