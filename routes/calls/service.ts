// The service itself, for its operators: health, processes, sweeps, the audit log and daily usage.

import { type AuditEntry, readAudit } from "../../src/audit/audit.ts";
import { ID_PREFIX } from "../../src/domain/values/ids.ts";
import {
  checkAbsent,
  examine,
  examineCluster,
  joinExaminations,
} from "../../src/operations/doctor/examine.ts";
import { addForRead, type AddingWorld } from "../../src/operations/sweeps/daily_use.ts";
import { runSweep, sweepAll } from "../../src/operations/sweeps/sweeps.ts";
import { AUDIT_LIMITS, DAILY_USE_LIMITS } from "../../src/process/limits.ts";
import { listDailyUse } from "../../src/storage/queries/daily_use.ts";
import { keysBelow } from "../../src/storage/stores/tree_store.ts";
import type { Database } from "../../src/storage/database.ts";
import type { StoreRow } from "../../src/storage/nodes/store_numbers.ts";
import { MOVED_USER } from "../../src/storage/stores/moved_rows.ts";
import {
  readSplits,
  requestSplit,
  SplitRefused,
  type SplitRow,
} from "../../src/storage/stores/split_store.ts";
import type { Registry } from "../../src/tenant/registry.ts";
import type { DataOf } from "../contract/definition.ts";
import { timeText } from "../contract/fields.ts";
import * as contract from "../contract/service.ts";
import { success } from "../http/answer.ts";
import { keylessEndpointsOn } from "../http/endpoint.ts";
import type { KeylessEndpoint } from "../http/endpoint_types.ts";
import { namedStore } from "../http/across_stores.ts";
import { invalidMember, Refused } from "../http/errors.ts";
import { appOf } from "./admin.ts";

type World =
  & Parameters<typeof sweepAll>[0]
  & Parameters<typeof examine>[0]
  & Parameters<typeof readAudit>[0]
  & AddingWorld
  & {
    readonly database: Parameters<typeof listDailyUse>[0];
    /** Rows of nodes and cells. */
    readonly upkeep: Pick<Database, "query" | "transaction">;
    /** Plans a store that a split makes of a standby; null where the process has one database. */
    readonly planStore: ((to: string) => Promise<StoreRow>) | null;
    readonly registry: Pick<Registry, "apps" | "workspaces">;
    /** Null where the process has one database. */
    readonly storeName: string | null;
  };

const endpoint = keylessEndpointsOn<World>();

type Entry = DataOf<typeof contract.listAudit>["entries"][number];

const CURSOR = new RegExp(`^${ID_PREFIX.audit}[0-9a-v]{20}$`);

/** Health, processes, sweeps, the audit log and daily usage. */
export const SERVICE: readonly KeylessEndpoint<World>[] = [
  endpoint(contract.examine, async ({ world, input: { long } }) => {
    return success(await examine(world, long ?? "with"));
  }, {
    across: {
      join: (answers, _input, stores) =>
        joinExaminations(answers.map(({ checks }, place) => ({ name: stores[place]?.name ?? "", checks }))),
      absent: ({ state, awaited }) => {
        const check = checkAbsent(state, awaited);
        return { verdict: check.verdict, checks: [check] };
      },
    },
  }),
  endpoint(
    contract.showCluster,
    async ({ world }) => success(showCluster(world, await examineCluster(world))),
    {
      across: { choose: (source, { store }) => store === undefined ? undefined : namedStore(source, store) },
    },
  ),
  endpoint(contract.listStores, async ({ world }) => {
    const { storeName, registry } = world;
    const cluster = showCluster(world, await examineCluster(world));
    const splits = (await readSplits(world.database)).map(showSplit);
    const workspaces = registry.workspaces.size;
    return success([{ store: storeName, state: "serving", workspaces, cluster, waitsFor: null, splits }]);
  }, {
    across: {
      join: (answers) => answers.flat(),
      absent: ({ name, state, awaited }) => [
        { store: name, state, workspaces: null, cluster: null, waitsFor: awaited, splits: [] },
      ],
    },
  }),
  endpoint(contract.splitStore, async ({ world, input: { to, cells } }) => {
    if (world.planStore === null) throw invalidMember("store", "names a database of HOLDFAST_DATABASES");
    try {
      return success(showSplit(await beginSplit(world, world.planStore, to, cells)));
    } catch (error) {
      throw error instanceof SplitRefused ? new Refused("invalid_request", error.message) : error;
    }
  }, { across: { choose: (source, { store }) => namedStore(source, store) } }),
  endpoint(contract.sweep, async ({ world }) => success(await sweepAll(world)), { gather: sumOf }),
  endpoint(
    contract.moveHistory,
    async ({ world }) => success({ historyRows: await runSweep(world, "history") }),
    { gather: sumOf },
  ),
  endpoint(contract.listAudit, async ({ world, input }) => {
    const { appId = null, userId = null, limit = AUDIT_LIMITS.pageDefault, cursor = null } = input;
    if (cursor !== null && !CURSOR.test(cursor)) {
      throw invalidMember("cursor", "must be the nextCursor of a previous page");
    }
    const { entries, next } = await readAudit(world, { appId, userId, before: cursor, limit });
    return success({ entries: entries.map(showEntry), nextCursor: next });
  }, {
    across: {
      about: ({ appId }) => appId === undefined ? undefined : { appId },
      join: (answers, { limit = AUDIT_LIMITS.pageDefault }) => {
        // A split leaves entries on both databases; where a workspace has gone, its users are erased from them.
        const last = (entries: readonly Entry[]) =>
          entries.find(({ userId }) => userId !== MOVED_USER) ?? entries[0];
        const byId = Map.groupBy(answers.flatMap(({ entries }) => entries), ({ auditId }) => auditId);
        // Ids grow with time.
        const all = [...byId.values()].flatMap((entries) => last(entries) ?? [])
          .toSorted((one, other) => one.auditId > other.auditId ? -1 : 1);
        const entries = all.slice(0, limit);
        const hasMore = all.length > limit || answers.some(({ nextCursor }) => nextCursor !== null);
        return { entries, nextCursor: hasMore ? entries.at(-1)?.auditId ?? null : null };
      },
    },
  }),
  endpoint(contract.listDailyUse, async ({ world, input }) => {
    const { appId, mode, from, to, by, status, order, userId, withMembers } = input;
    const realm = appOf(world, appId).realms[mode];
    const hasRates = realm.catalog.rates.length > 0;
    const countedUntil = await addForRead(world, realm);
    const ranked = order === "cost" ? "cost_cents" : "events";
    const measure = status === "blocked" ? "blocked" : ranked;
    const below = withMembers !== "true" || userId === undefined
      ? null
      : await keysBelow(world.database, realm.realm, userId, DAILY_USE_LIMITS.membersMax + 1);
    const members = below?.slice(0, DAILY_USE_LIMITS.membersMax) ?? [];
    const query = { realm: realm.realm, from, to, by, measure, userId: userId ?? null, members } as const;
    const days = await listDailyUse(world.database, query);
    return success({
      by,
      from: contract.dayText(from),
      to: contract.dayText(to),
      countedUntil: timeText(countedUntil),
      ...below === null
        ? {}
        : { members: { counted: members.length, hasMore: below.length > members.length } },
      days: days.map(({ day, parts, ...use }) => ({
        day: contract.dayText(day),
        ...useOf(use, hasRates),
        parts: parts.map((part) => useOf(part, hasRates)),
      })),
    });
  }),
];

/** The numbers of usage, with credits where the catalog has rates. */
function useOf<Use extends { readonly costCredits: number }>(use: Use, hasRates: boolean) {
  const { costCredits, ...rest } = use;
  return hasRates ? { ...rest, costCredits } : rest;
}

/** Adds up the counts of all members by name. */
function sumOf<Counts extends Readonly<Record<string, number>>>(answers: readonly Counts[]): Counts {
  const sum: Record<string, number> = {};
  for (const counts of answers) {
    for (const [name, count] of Object.entries(counts)) sum[name] = (sum[name] ?? 0) + count;
  }
  return sum as Counts;
}

function showCluster(
  { node }: World,
  facts: Awaited<ReturnType<typeof examineCluster>>,
): DataOf<typeof contract.showCluster> {
  const { registryVersion, nodes, free, troubles } = facts;
  return {
    member: node.term,
    registryVersion,
    members: nodes.map(({ term, address, share, cells, hasEnded, ...row }) => ({
      term,
      address,
      share,
      cells,
      registryVersion: row.registryVersion,
      livedSeconds: secondsOf(row.livedMs),
      silentSeconds: secondsOf(row.silentMs),
      hasEnded,
      isReached: node.reaches(term),
    })),
    cellsWithoutOwner: free,
    troubles: troubles.map(({ found, advice }) => ({ found, advice })),
  };
}

/** Milliseconds as seconds with three decimal places. */
function secondsOf(ms: number): number {
  return Math.max(0, Math.round(ms)) / 1000;
}

async function beginSplit(
  { upkeep }: World,
  plan: (to: string) => Promise<StoreRow>,
  to: string,
  cells: readonly number[],
): Promise<SplitRow> {
  await requestSplit(upkeep, { cells, to: await plan(to) });
  const split = (await readSplits(upkeep)).find((each) => each.to === to);
  return split as SplitRow;
}

function showSplit({ to, state, cells, left }: SplitRow): DataOf<typeof contract.splitStore> {
  return { to, state, cells: [...cells], left: [...left] };
}

function showEntry(entry: AuditEntry) {
  const { id, at, who, via, what, appId, mode, userId, before, after } = entry;
  return { auditId: id, at: timeText(at), who, via, what, appId, mode, userId, before, after };
}
