// No over-grant: whatever a reserve takes from a plan leaves the counter, with what a block added to it, at or below its
// quota, and below the gate where a percentage keeps a buffer; no counter is ever above the sum of its holds and events (`books`). This checker knows the
// catalog, not how the product decides.

import type { CatalogDocument, LimitGroup, Plan } from "../../model/document.ts";
import { fromNumber } from "../../model/decimal.ts";
import type { RowChange } from "../../../actors/port.ts";
import type { Line } from "../../../src/domain/state/reservation.ts";
import type { Checker, Scene } from "../watch.ts";

export function planOf({ plans }: CatalogDocument, planId: string): Plan | undefined {
  return plans.find(({ id }) => id === planId);
}

/** The highest count that reserves may reach in a group: by the best quota among the user's rows. */
export function gateOf(
  { expected }: Scene,
  catalog: CatalogDocument,
  { userKey, planId, group, isGated }: {
    userKey: number;
    planId: string;
    group: LimitGroup;
    isGated: boolean;
  },
): bigint {
  const own = expected.subscriptions(userKey).filter((row) => row.planId === planId)
    .map((row) => row.customLimits[group.id] ?? fromNumber(group.quota) * BigInt(row.quantity));
  const added = expected.subscriptions(userKey).flatMap((row) => {
    const addOn = planOf(catalog, row.planId);
    const more = addOn?.addon === true
      ? addOn.limits.find(({ id, unit }) => id === group.id && unit === group.unit)
      : undefined;
    return more === undefined
      ? []
      : [row.customLimits[more.id] ?? fromNumber(more.quota) * BigInt(row.quantity)];
  });
  const most = added.reduce((sum, each) => sum + each, 0n);
  const quotas = [...own, fromNumber(group.quota)].map((each) => each + most);
  const quota = quotas.reduce((most, each) => each > most ? each : most);
  const headroom = group.headroom ?? planOf(catalog, planId)?.headroom;
  if (!isGated || headroom?.mode !== "percent") return quota;
  return quota * fromNumber(headroom.value) / fromNumber(100);
}

/** What a decision took from the plan of one user. */
export interface Taken {
  readonly id: string;
  readonly userKey: number;
  readonly lines: readonly Line[];
  /** Whether headroom counts. */
  readonly isGated: boolean;
}

/** What reserves and tracks took, at every level; what settles a hold may go past a quota. */
export function takenBy(change: RowChange): Taken[] {
  if (change.verb !== "append") return [];
  if (change.table === "reservations" && change.row.status === "held") {
    return [{ ...change.row, isGated: true }];
  }
  if (change.table !== "events" || change.row.reservationId !== null) return [];
  const { id, levels = [] } = change.row;
  return [change.row, ...levels].map(({ userKey, lines }) => ({ id, userKey, lines, isGated: false }));
}

/** The parts of a counter that say what the plan has left. */
interface Sold {
  readonly count: bigint;
  readonly overage?: bigint;
  readonly block?: { readonly filler: bigint; readonly upTo: bigint };
}

/** Checks every hold and every tracked event when it is taken. */
export function grantsChecker(): Checker {
  return {
    name: "no over-grant",
    onTurn({ changes }, scene) {
      for (const { userKey, lines, id, isGated } of changes.flatMap(takenBy)) {
        const catalog = scene.tenantOf(userKey)?.catalog;
        if (catalog === undefined) throw new Error(`${id} is of a user without a workspace`);
        for (const line of lines) {
          // What is in flight has no counter; `guards` looks at that.
          // What was sold is beside the quota; `overage` looks at that.
          if (line.taken <= (line.overage ?? 0n) || line.window.kind === "concurrency") continue;
          const counter = changes.find(({ table, row }) =>
            table === "counters" && row.userKey === userKey && row.planId === line.planId &&
            row.groupId === line.groupId &&
            row.windowStart === line.window.start
          )?.row as Sold | undefined;
          if (counter === undefined) {
            throw new Error(`${id} took from ${line.groupId} and nothing was counted`);
          }
          const group = planOf(catalog, line.planId)?.limits.find((each) => each.id === line.groupId);
          if (group === undefined) throw new Error(`${id} took from ${line.groupId}, which is in no plan`);
          const gate = gateOf(scene, catalog, { userKey, planId: line.planId, group, isGated });
          const { overage = 0n, block = { filler: 0n, upTo: 0n } } = counter;
          const count = counter.count - overage;
          const shown = count + block.filler > block.upTo ? count + block.filler : block.upTo;
          if (shown > gate) {
            throw new Error(`${id} left ${line.groupId} at ${shown} of at most ${gate} millionths`);
          }
        }
      }
    },
  };
}
