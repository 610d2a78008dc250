// The workspace cap, from rows alone: an operation is counted as it becomes durable, in the month in which it was written.
// An admitted call found room, a refused call did not, and the stored total is the sum. The model can't be asked: it
// counts a promotion when it falls due, and the product when it is written.

import type { RowChange } from "../../../actors/port.ts";
import { monthOf } from "../../model/state.ts";
import type { Attempt } from "../history.ts";
import type { SimTables } from "../database/tables.ts";
import type { Turn } from "../recorder.ts";
import type { Tenant } from "../tenants.ts";
import { userOfTurn } from "./books.ts";
import type { Checker, Scene } from "../watch.ts";

const CAPPED: ReadonlySet<string> = new Set(["reserve", "track", "alias"]);
const CODES: ReadonlySet<unknown> = new Set(["workspace_limit_reached", "test_quota_exceeded"]);

/** Whether a process refused a call at the cap of operations. */
export function isAtCap({ call, reply }: Attempt): boolean {
  return CAPPED.has(call.request.op) && CODES.has(reply?.model.code);
}

/** How far a node's clock may be behind that of the clients. */
const BEHIND_MS = 10_000;

/** When each operation of a tenant was written, in the order of all that was noted, by month. */
class Written {
  readonly months = new Map<string, number[]>();

  add(month: string, order: number): void {
    const places = this.months.get(month) ?? [];
    this.months.set(month, places);
    places.push(order);
  }

  before(month: string, order: number): number {
    return (this.months.get(month) ?? []).filter((place) => place < order).length;
  }
}

/** Looks at every call that the cap is for. */
export function capsChecker(): Checker {
  const byTenant = new Map<Tenant, Written>();
  const writtenOf = (tenant: Tenant) => {
    const written = byTenant.get(tenant) ?? new Written();
    byTenant.set(tenant, written);
    return written;
  };
  return {
    name: "caps",
    onTurn(turn, scene) {
      const user = userOfTurn(turn);
      const tenant = turn.attempt?.call.tenant ?? (user === null ? undefined : scene.tenantOf(user));
      if (tenant === undefined || tenant.isCanary) return;
      const written = writtenOf(tenant);
      const { operationCap } = tenant.caps;
      // A merge is let through before it reads and decides; others are served meanwhile.
      const used = written.before(monthOf(turn.lookedAtMs), turn.order);
      if (operationCap !== null && takesRoom(turn) && used >= operationCap) {
        throw new Error(`${asked(turn)} was let through at ${used} of ${operationCap} operations`);
      }
      const month = monthOf(turn.wroteAtMs);
      for (const change of turn.changes) if (isOperation(change)) written.add(month, turn.decidedAt);
    },
    atEnd({ calls, tenants, expected }: Scene) {
      for (const attempt of calls.flatMap(({ attempts }) => attempts)) {
        if (attempt.call.tenant.isCanary || !isAtCap(attempt) || attempt.reply?.isReplayed === true) continue;
        checkRefusal(attempt, writtenOf(attempt.call.tenant));
      }
      for (const tenant of tenants) if (!tenant.isCanary) checkTotals(tenant, writtenOf(tenant), expected);
    },
  };
}

/** A refused call found no room in some month in which it may have arrived. */
function checkRefusal({ call, sentOnMs, repliedAt }: Attempt, written: Written): void {
  const { operationCap } = call.tenant.caps;
  const since = monthOf(sentOnMs - BEHIND_MS);
  const isFull = [...written.months.keys()].some((month) =>
    month >= since && written.before(month, repliedAt ?? Infinity) >= (operationCap ?? Infinity)
  );
  if (!isFull) throw new Error(`call ${call.no} was refused below ${operationCap} operations`);
}

function checkTotals(
  { workspaceId, caps: { mode } }: Tenant,
  { months }: Written,
  expected: SimTables,
): void {
  for (const [month, { length }] of months) {
    const [row] = expected.list(
      "operations",
      (each) => each.workspace_id === workspaceId && each.month === month && each.mode === mode,
    );
    if (Number(row?.used ?? 0) !== length) {
      throw new Error(`${month} has ${length} operations of ${workspaceId} and a total of ${row?.used}`);
    }
  }
}

/** Whether a turn did something that the cap refuses. */
function takesRoom({ attempt, changes }: Turn): boolean {
  return attempt !== null && CAPPED.has(attempt.call.request.op) &&
    changes.some(({ table, verb }) =>
      table === "merges" || table === "events" || table === "reservations" && verb === "append"
    );
}

/** Whether a row is a metering operation: a counted event, a merge, a promotion, or a moved or dropped balance. */
function isOperation({ table, row }: RowChange): boolean {
  switch (table) {
    case "events":
      return row.matchStatus === "matched" || row.matchStatus === "matched_credits_only";
    case "subscription_events":
      return row.type === "merged" || row.type === "promoted";
    case "credit_ledger":
      return row.reason === "merged_from_alias" || row.reason === "merge_dedupe";
    default:
      return false;
  }
}

function asked({ attempt }: Turn): string {
  return `call ${attempt?.call.no} ${attempt?.call.request.op}`;
}
