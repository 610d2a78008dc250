// The parts of one term, and how they are put together.

import type { UserStore } from "../../actors/port.ts";
import { Term } from "../../actors/term.ts";
import type { IdSource } from "../domain/values/ids.ts";
import type { Clock } from "../process/clock.ts";
import type { Downloads } from "../process/downloads.ts";
import type { Spans } from "../process/counts/spans.ts";
import type { Features } from "../process/features.ts";
import { POOL_LIMITS, READ_LIMITS } from "../process/connection_limits.ts";
import type { Database } from "../storage/database.ts";
import { FairReads } from "../storage/fair_reads.ts";
import { sessionNameOf } from "../storage/journal/ranges.ts";
import type { Writer } from "../storage/journal/writer.ts";
import { type InCell, inCellOf } from "../storage/nodes/cell_store.ts";
import type { StoreRow } from "../storage/nodes/store_numbers.ts";
import { openRefusedCallStore } from "../storage/stores/refused_call_store.ts";
import { openUserStore } from "../storage/stores/user_store.ts";
import { RateBuckets } from "../tenant/rate_buckets.ts";
import { Registry } from "../tenant/registry.ts";
import { RegistryChanges } from "../tenant/registry_changes.ts";
import { TopUps } from "../integrations/stripe/top_ups.ts";
import type { OpenStripe } from "../integrations/stripe/stripe_client.ts";
import { randomChance } from "../webhooks/schedule.ts";
import { Sender } from "../webhooks/sender.ts";
import type { Transport } from "../webhooks/transport.ts";
import type { RequestLog } from "../audit/request_log.ts";
import type { Counts } from "./counts.ts";
import { ClusterNode } from "./node.ts";
import type { NodeLink } from "./node_link.ts";
import { Owners } from "./owners.ts";

/** What serves requests: the parts of one term. */
export interface Serving {
  readonly term: Term;
  readonly node: ClusterNode;
  readonly registry: Registry;
  readonly changes: RegistryChanges;
  readonly buckets: RateBuckets;
  readonly lease: Writer;
  /** Reads of the service itself; those of an app come from `reads`. */
  readonly database: Database;
  readonly reads: FairReads;
  /** What keeps the term: rows of nodes and cells. */
  readonly upkeep: Database;
  /** Runs writes beside the journal, which only the owner of a cell may make. */
  readonly inCell: InCell;
  readonly store: UserStore;
  readonly ids: IdSource;
  readonly clock: Clock;
  readonly features: Features;
  readonly counts: Counts;
  /** Delivers webhook messages. */
  readonly sender: Sender;
  /** Pays the top-ups of users. */
  readonly topUps: TopUps;
  /** Closes the connections. */
  close(): Promise<void>;
  /** Documents that are being sent; they outlive terms. */
  readonly downloads: Downloads;
  /** The name of the database where the process has several; else null. */
  readonly storeName: string | null;
  /** Plans a store that a split makes of a standby; null where the process has one database. */
  readonly planStore: ((to: string) => Promise<StoreRow>) | null;
  /** The failed requests of this process; they outlive terms. */
  readonly requestLog: RequestLog;
}

/** What a process keeps across its terms. */
export interface ProcessParts {
  readonly database: Database;
  readonly ids: IdSource;
  readonly clock: Clock;
  readonly features: Features;
  readonly counts: Counts;
  /** Null without tracing. */
  readonly spans: Spans | null;
  readonly transport: Transport;
  readonly openStripe: OpenStripe;
  readonly downloads: Downloads;
  /** Null where the process has one database. */
  readonly storeName: string | null;
  readonly planStore: ((to: string) => Promise<StoreRow>) | null;
  readonly requestLog: RequestLog;
}

/** Puts the parts of a term together. */
export function assemble(process: ProcessParts, writer: Writer, link: NodeLink, share: number): Serving {
  const { ids, clock, features, counts, spans, transport, downloads, requestLog } = process;
  const { openStripe, storeName, planStore } = process;
  const pools = openPools(process.database, sessionNameOf(writer.term));
  const { upkeep, writes } = pools;
  const reads = new FairReads(pools.reads, counts.runtime);
  const database = reads.of(null);
  const inCell = inCellOf(writes, writer.term);
  const store = openUserStore(pools.loads);
  const registry = new Registry(clock);
  const term = new Term({
    lease: writer,
    store,
    refusalStore: openRefusedCallStore(inCell),
    ids,
    realNow: () => clock.now(),
    appOf: (realm) => registry.realms.get(realm)?.app.record.appId ?? realm,
    counts: counts.runtime,
    spans,
    onMessages: (messages) => sender.note(messages),
    onTopUps: (intents) => topUps.note(intents),
  });
  const changes: RegistryChanges = new RegistryChanges({
    registry,
    database: pools.registry,
    writes,
    term: writer.term,
    clock,
    announce: (version) => node.announce(version),
  });
  const chance = randomChance;
  const sender = new Sender({
    term,
    registry,
    changes,
    database,
    inCell,
    clock,
    transport,
    chance,
    counts: counts.webhooks,
  });
  const topUps = new TopUps({
    term,
    registry,
    database,
    inCell,
    clock,
    features,
    counts,
    openStripe,
  });
  registry.onWebhook = (webhook) => sender.changed(webhook);
  const shared = { term, registry, changes, buckets: new RateBuckets(), clock, sender, topUps };
  const { hub } = link;
  const node: ClusterNode = new ClusterNode(
    { ...shared, database: upkeep, writer, hub, owners: new Owners(), counts: counts.cluster },
    share,
  );
  link.node = node;
  const close = async () => {
    await Promise.all(Object.values(pools).map((pool) => pool.close()));
  };
  return {
    ...shared,
    database,
    upkeep,
    reads,
    node,
    lease: writer,
    inCell,
    store,
    ids,
    features,
    counts,
    downloads,
    storeName,
    planStore,
    requestLog,
    close,
  };
}

/** Opens the connections of a term, apart by purpose. */
function openPools(database: Database, name: string) {
  const { registry, upkeep, writes, loads } = POOL_LIMITS;
  const { connections, statementMs } = READ_LIMITS;
  return {
    registry: database.named(name, { connections: registry }),
    upkeep: database.named(name, { connections: upkeep }),
    writes: database.named(name, { connections: writes }),
    loads: database.named(name, { connections: loads }),
    reads: database.named(name, { connections, statementMs }),
  };
}
