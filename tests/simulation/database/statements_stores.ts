// Statements of the list of databases: who a database is, and which others it knows. All of them have their numbers.

import { by } from "./params.ts";
import type { Entry } from "./statements.ts";

export const STORES: readonly Entry[] = [
  ["whether it is a standby: select pg_is_in_recovery() as is", {
    kind: "read",
    run: () => [{ is: false }],
  }],
  ['known databases: select number, name, cluster_id as "clusterId", state from stores', {
    kind: "read",
    run: (tables) => tables.list("stores").sort(by("number")),
  }],
  ['who a database is: select cluster_id as "clusterId", exists (select 1 from workspaces)', {
    kind: "read",
    run: ({ clusterId }) => [{ clusterId, isUsed: true }],
  }],
  ["splits: select s.name as to, s.state", { kind: "read", run: () => [] }],
  ["write a database: insert into stores (number, name, cluster_id, state)", {
    kind: "write",
    make: ([number, name, clusterId, state]) => (tables) => {
      const row = { number: Number(number), name, clusterId, state } as Record<string, string | number>;
      if (tables.list("stores", (each) => each.number === row.number).length === 0) {
        tables.put("stores", String(number), row);
      }
      return [];
    },
  }],
  ["open a database: update stores set state = 'open'", {
    kind: "write",
    make: ([number, clusterId]) => (tables) => {
      tables.update("stores", (row) => row.number === number && row.clusterId === clusterId, {
        state: "open",
      });
      return [];
    },
  }],
];
