// Rows of tables in memory as the domain has them, and loads of few tables.

import { decodeWork } from "../../src/storage/rows/work_text.ts";
import type { MeteringEvent } from "../../src/domain/state/event.ts";
import { decodeCredits, decodeLines } from "../../src/storage/rows/charge_text.ts";
import { parseAmount } from "../../src/domain/values/amount.ts";
import type { OperationsRow } from "../../actors/port.ts";
import type { SubscriptionEvent } from "../../src/domain/state/subscription.ts";
import type { UserSummary } from "../../src/domain/state/summary.ts";
import type { TopUpIntent } from "../../src/domain/state/top_up.ts";
import type { OlderRows } from "../../src/domain/state/user.ts";
import type { UserKey } from "../../src/domain/values/ids.ts";
import type { ColumnValue } from "../../src/storage/database.ts";
import { USER_SUMMARIES } from "../../src/storage/rows/summary_rows.ts";

/** A row of the history of subscriptions. */
export function readSubscriptionEvent(row: Readonly<Record<string, unknown>>): SubscriptionEvent {
  return {
    id: row.id as string,
    userKey: row.user_key as number,
    type: row.type as SubscriptionEvent["type"],
    subscriptionId: row.subscription_id as string,
    planId: row.plan_id as string,
    previousPlanId: row.previous_plan_id as string | null,
    reason: row.reason as string | null,
    at: row.at_ms as number,
  };
}

/** What a workspace did in a month. */
export function readOperations(row: Readonly<Record<string, unknown>>): OperationsRow {
  return {
    workspaceId: row.workspace_id as string,
    mode: row.mode as OperationsRow["mode"],
    month: row.month as string,
    used: row.used as number,
  };
}

/** A top-up in any state. */
export function topUpRows(
  tables: { readonly topUps: (user: UserKey) => TopUpIntent[] },
  owners: readonly UserKey[],
  id: string,
): OlderRows {
  const [owner] = owners as [UserKey];
  const topUps = owners.flatMap((key) => tables.topUps(key)).filter((row) => row.id === id)
    .map((row) => ({ ...row, userKey: owner }));
  return { counters: [], reservations: [], balances: [], topUps };
}

/** A metering event. */
export function readEvent(row: Readonly<Record<string, unknown>>): MeteringEvent {
  return {
    id: row.id as string,
    userKey: row.user_key as number,
    realm: row.realm as number,
    type: row.type as string,
    quantity: parseAmount(row.quantity as string),
    costCents: parseAmount(row.cost_cents as string),
    matchStatus: row.match_status as MeteringEvent["matchStatus"],
    createdAt: row.created_at_ms as number,
    metadata: row.metadata as string | null,
    reservationId: row.reservation_id as string | null,
    reason: row.reason as string | null,
    errorCode: row.error_code as string | null,
    lines: decodeLines(row.lines as string),
    credits: decodeCredits(row.credits as string),
    uncovered: {},
    work: decodeWork(row.work as string),
  };
}

/** The summary of a user, for its load. */
export function summaryRow(
  tables: { list(table: string): Readonly<Record<string, ColumnValue>>[] },
  user: UserKey,
): { readonly summary?: UserSummary } {
  const row = tables.list("user_summaries").find(({ user_key: key }) => key === user);
  return row === undefined ? {} : { summary: USER_SUMMARIES.read(row) };
}
