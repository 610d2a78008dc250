// The parts of a node on a test's store, with a fake hub.

import { Term } from "../../actors/term.ts";
import type { Hub } from "../../src/channel/hub.ts";
import { Owners } from "../../src/cluster/owners.ts";
import type { NodeParts, Note } from "../../src/cluster/parts.ts";
import { ClusterCounts } from "../../src/cluster/cluster_counts.ts";
import { makeIdSource } from "../../src/process/id_source.ts";
import { inCellOf } from "../../src/storage/nodes/cell_store.ts";
import { openRefusedCallStore } from "../../src/storage/stores/refused_call_store.ts";
import { openUserStore } from "../../src/storage/stores/user_store.ts";
import { cellOf } from "../../src/tenant/cell_of.ts";
import { RateBuckets } from "../../src/tenant/rate_buckets.ts";
import { Registry } from "../../src/tenant/registry.ts";
import type { Workspace } from "../../src/storage/rows/registry_rows.ts";
import { RegistryChanges } from "../../src/tenant/registry_changes.ts";
import { joinAlone, NOW } from "../storage/sample.ts";
import { openTestStore, type TestStore } from "../support/test_store.ts";

export const WORKSPACE: Workspace = {
  workspaceId: "ws_1",
  name: "W",
  operationCap: 10,
  testOperationCap: null,
  aiBudgetCents: null,
  testCreditBalanceCap: null,
};
export const CELL = cellOf(WORKSPACE.workspaceId);
export const REALM = 1;

/** A node, the events of its cells in order, and the notifications of its hub. */
export interface TestMember {
  readonly store: TestStore;
  readonly parts: NodeParts;
  readonly events: string[];
  readonly notes: Note[];
  /** The result of connecting to a dead node's address. */
  probe: "gone" | "alive" | "unknown";
}

/** Runs a test with a node on a fresh store that has a workspace with an app. */
export async function withMember(work: (node: TestMember) => Promise<void>): Promise<void> {
  const store = await openTestStore();
  const { database } = store;
  const writer = await joinAlone(database, await database.pin(() => {}));
  const clock = { now: () => NOW };
  const registry = new Registry(clock);
  const term = new Term({
    lease: writer,
    store: openUserStore(database),
    refusalStore: openRefusedCallStore(inCellOf(database, writer.term)),
    ids: makeIdSource(clock),
    realNow: clock.now,
  });
  const announce = async (registryVersion: number) =>
    (await writer.beat({ share: 1, registryVersion })).prove();
  const changes = new RegistryChanges({ registry, database, term: writer.term, clock, announce });
  const app = {
    appId: "app_1",
    workspaceId: WORKSPACE.workspaceId,
    name: "A",
    identitySecret: "s",
    oldIdentitySecrets: [],
    createdAt: NOW,
  };
  await changes.change(null, () => ({
    rows: {
      workspaces: [WORKSPACE],
      apps: [app],
      realms: [{ realm: REALM, appId: "app_1", mode: "live" }, { realm: 2, appId: "app_1", mode: "test" }],
    },
    answer: null,
  }));
  const events: string[] = [];
  const notes: Note[] = [];
  const node: TestMember = {
    store,
    events,
    notes,
    probe: "unknown",
    parts: {
      writer,
      term,
      registry,
      changes,
      buckets: new RateBuckets(),
      database,
      clock,
      hub: {
        probe: () => {
          events.push("probe");
          return Promise.resolve(node.probe);
        },
        noteAll: (note: Note) => notes.push(note),
        note: (_: number, note: Note) => notes.push(note),
      } as unknown as Hub,
      owners: new Owners(),
      counts: new ClusterCounts(),
      sender: {
        taken: () => events.push("taken"),
        given: () => events.push("given"),
      },
    },
  };
  try {
    await work(node);
  } finally {
    term.fail(new Error("The test ends"));
    await writer.close();
    await store.close();
  }
}

/** Records when methods of an object are called and when they end. */
export function watch<Part extends object>(
  events: string[],
  part: Part,
  ...names: readonly (keyof Part & string)[]
): void {
  for (const name of names) {
    const before = (part[name] as (...args: unknown[]) => unknown).bind(part);
    Object.defineProperty(part, name, {
      value: async (...args: unknown[]) => {
        const result = await before(...args);
        events.push(name);
        return result;
      },
    });
  }
}
