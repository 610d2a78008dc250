// No over-grant: whatever a reserve takes from a plan leaves the counter, with what a block added to it, at or below its
// quota, and below the gate where a percentage keeps a buffer; no counter is ever above the sum of its holds and events (`books`). This checker knows the
// catalog, not how the product decides.

import type { CatalogDocument, LimitGroup, Plan } from "../../model/document.ts";
import { fromNumber } from "../../model/decimal.ts";
import type { Checker, Scene } from "../watch.ts";

function planOf({ plans }: CatalogDocument, planId: string): Plan | undefined {
  return plans.find(({ id }) => id === planId);
}

/** The highest count that reserves may reach in a group: by the best quota among the user's rows. */
function gateOf(
  { expected }: Scene,
  catalog: CatalogDocument,
  userKey: number,
  planId: string,
  group: LimitGroup,
): bigint {
  const custom = expected.subscriptions(userKey).filter((row) => row.planId === planId)
    .map((row) => Object.hasOwn(row.customLimits, group.id) ? row.customLimits[group.id] as bigint : null);
  const quotas = [...custom.map((limit) => limit ?? fromNumber(group.quota)), fromNumber(group.quota)];
  const quota = quotas.reduce((most, each) => each > most ? each : most);
  const headroom = group.headroom ?? planOf(catalog, planId)?.headroom;
  if (headroom?.mode !== "percent") return quota;
  return quota * fromNumber(headroom.value) / fromNumber(100);
}

/** Checks every hold when it is taken. */
export function grantsChecker(): Checker {
  return {
    name: "no over-grant",
    onTurn({ changes }, scene) {
      for (const change of changes) {
        if (change.table !== "reservations" || change.verb !== "append" || change.row.status !== "held") {
          continue;
        }
        const { userKey, lines, id } = change.row;
        const catalog = scene.tenantOf(userKey)?.catalog;
        if (catalog === undefined) throw new Error(`${id} is of a user without a workspace`);
        for (const line of lines) {
          if (line.taken <= 0n) continue;
          const counter = changes.find(({ table, row }) =>
            table === "counters" && row.planId === line.planId && row.groupId === line.groupId &&
            row.windowStart === line.window.start
          )?.row as { count: bigint; block?: { filler: bigint; upTo: bigint } } | undefined;
          if (counter === undefined) {
            throw new Error(`${id} took from ${line.groupId} and nothing was counted`);
          }
          const group = planOf(catalog, line.planId)?.limits.find((each) => each.id === line.groupId);
          if (group === undefined) throw new Error(`${id} took from ${line.groupId}, which is in no plan`);
          const gate = gateOf(scene, catalog, userKey, line.planId, group);
          const { count, block = { filler: 0n, upTo: 0n } } = counter;
          const shown = count + block.filler > block.upTo ? count + block.filler : block.upTo;
          if (shown > gate) {
            throw new Error(`${id} left ${line.groupId} at ${shown} of at most ${gate} millionths`);
          }
        }
      }
    },
  };
}
