// Overage: a hold and an event leave a counter at or below the max of its catalog, and the messages of the webhook that wants
// everything, with what is still to tell, add up to what events settled. This checker knows lines and messages alone.

import { fromNumber } from "../../model/decimal.ts";
import type { OverageWindow } from "../../../src/domain/state/overage.ts";
import type { Line } from "../../../src/domain/state/reservation.ts";
import type { Turn } from "../recorder.ts";
import type { Checker, Scene } from "../watch.ts";
import { planOf } from "./grants.ts";

interface Sums {
  settled: bigint;
  told: bigint;
}

/** Looks at every turn, and at the sums at the end. */
export function overageChecker(): Checker {
  const sums = new Map<string, Sums>();
  const windows = new Map<string, OverageWindow>();
  const sumsOf = (key: string): Sums => {
    const known = sums.get(key) ?? { settled: 0n, told: 0n };
    sums.set(key, known);
    return known;
  };
  const nameOf = (userKey: number, groupId: string, { tenantOf }: Scene) =>
    `${tenantOf(userKey)?.appId} ${groupId}`;
  return {
    name: "overage",
    onTurn(turn, scene) {
      for (const { userKey, lines, isEvent } of takenIn(turn)) {
        for (const line of lines) {
          if (line.overage === undefined) continue;
          checkMax(turn, userKey, line, scene);
          if (isEvent) sumsOf(nameOf(userKey, line.groupId, scene)).settled += line.overage;
        }
      }
      for (const { table, row } of turn.changes) {
        if (table === "overage_windows") windows.set(`${row.userKey} ${row.key}`, row);
        if (table !== "webhook_messages" || row.type !== "usage.overage" || row.userKey === null) continue;
        if (row.webhookId !== scene.tenantOf(row.userKey)?.webhooks[0]?.webhookId) continue;
        const { groupId, amount } = JSON.parse(row.body).data as { groupId: string; amount: number };
        sumsOf(nameOf(row.userKey, groupId, scene)).told += fromNumber(amount);
      }
    },
    atEnd(scene) {
      const pending = new Map<string, bigint>();
      for (const row of windows.values()) {
        const name = nameOf(row.userKey, row.groupId, scene);
        pending.set(name, (pending.get(name) ?? 0n) + row.pending);
      }
      for (const [name, { settled, told }] of sums) {
        const hasWebhook = scene.tenants.some(({ appId, webhooks }) =>
          webhooks.length > 0 && name.startsWith(`${appId} `)
        );
        const left = pending.get(name) ?? 0n;
        if (!hasWebhook || settled === told + left) continue;
        throw new Error(`${name} settled ${settled} as overage, told ${told} and has ${left} to tell`);
      }
    },
  };
}

interface Taken {
  readonly userKey: number;
  readonly lines: readonly Line[];
  readonly isEvent: boolean;
}

/** What a turn took, at every level. */
function takenIn({ changes }: Turn): Taken[] {
  return changes.flatMap(({ verb, table, row }): Taken[] => {
    if (table === "events") {
      return [row, ...row.levels ?? []].map(({ userKey, lines }) => ({ userKey, lines, isEvent: true }));
    }
    return table === "reservations" && verb === "append" && row.status === "held"
      ? [{ userKey: row.userKey, lines: row.lines, isEvent: false }]
      : [];
  });
}

/** Checks the counter of a line. A commit keeps what its hold took; a merge may have brought more than the max together. */
function checkMax({ changes }: Turn, userKey: number, line: Line, { tenantOf }: Scene): void {
  const catalog = tenantOf(userKey)?.catalog;
  const group = catalog && planOf(catalog, line.planId)?.limits.find(({ id }) => id === line.groupId);
  const { overage } = (group ?? {}) as { readonly overage?: { readonly max: number | null } };
  if (overage === undefined) throw new Error(`${line.groupId} sells nothing, and ${line.overage} was sold`);
  const isCommit = changes.some(({ table, row }) => table === "events" && row.reservationId !== null);
  if (overage.max === null || isCommit) return;
  const counter = changes.find(({ table, row }) =>
    table === "counters" && row.userKey === userKey && row.planId === line.planId &&
    row.groupId === line.groupId && row.windowStart === line.window.start
  )?.row as { readonly overage?: bigint } | undefined;
  if ((counter?.overage ?? 0n) <= fromNumber(overage.max)) return;
  throw new Error(`${line.groupId} has sold ${counter?.overage}, of at most ${overage.max}`);
}
