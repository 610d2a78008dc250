// Users, merges and consents.

import type {
  ConsentEntry,
  Entitlement,
  HistoryMove,
  MemberLimits,
  Merge,
  User,
} from "../../domain/state/user.ts";
import { decimalOf, parseAmount } from "../../domain/values/amount.ts";
import type { ColumnValue } from "../database.ts";
import { decodeResets, encodeResets } from "./share_rows.ts";
import { decodeTopUp, encodeTopUp } from "./top_up_rows.ts";
import { column, mapped, spread, type StoredRow, table } from "./columns.ts";

export const USERS = table<User>("users", 1, {
  key: column("key"),
  realm: column("realm"),
  id: column("id"),
  entitlement: spread({
    held_plan_id: { of: (plan) => plan?.planId ?? null },
    held_subscription_id: { of: (plan) => plan?.subscriptionId ?? null },
    held_anchor_ms: { of: (plan) => plan?.anchor ?? null },
    held_started_at_ms: { of: (plan) => plan?.startedAt ?? null },
    held_until_ms: { of: (plan) => plan?.until ?? null },
    plan_carried: { of: (plan) => plan?.carried ?? true, later: { since: 9, value: true } },
  }, readEntitlement),
  dueAt: column("due_at_ms", { mutable: true }),
  mergedInto: column("merged_into", { mutable: true, later: { since: 3, value: null } }),
  optedOut: column("opted_out", { mutable: true, later: { since: 4, value: 0 } }),
  isErasing: column("erasing", { mutable: true, later: { since: 4, value: false } }),
  parentKey: column("parent_key", { mutable: true, later: { since: 26, value: null } }),
  memberLimits: mapped("member_limits", textOfLimits, limitsOf, {
    mutable: true,
    later: { since: 26, value: null },
  }),
  shareResets: mapped("share_resets", encodeResets, decodeResets, {
    mutable: true,
    later: { since: 29, value: null },
  }),
  topUp: mapped("top_up", encodeTopUp, decodeTopUp, { mutable: true, later: { since: 35, value: null } }),
});

/** Encodes member limits as JSON: {"groupId": "quota", ...}. */
function textOfLimits(limits: MemberLimits | null): string | null {
  if (limits === null) return null;
  return JSON.stringify(
    Object.fromEntries(Object.entries(limits).map(([id, quota]) => [id, decimalOf(quota)])),
  );
}

function limitsOf(value: ColumnValue): MemberLimits | null {
  if (value === null) return null;
  const limits = JSON.parse(value as string) as Record<string, string>;
  return Object.fromEntries(Object.entries(limits).map(([id, quota]) => [id, parseAmount(quota)]));
}

function readEntitlement(stored: StoredRow): Entitlement | null {
  return stored.held_plan_id === null ? null : {
    planId: stored.held_plan_id as string,
    subscriptionId: stored.held_subscription_id as string,
    anchor: stored.held_anchor_ms as number,
    startedAt: stored.held_started_at_ms as number,
    until: stored.held_until_ms as number | null,
    carried: stored.plan_carried as boolean,
  };
}

export const MERGES = table<Merge>("merges", 1, {
  id: column("id"),
  realm: column("realm"),
  fromKey: column("from_key"),
  toKey: column("to_key"),
  report: column("report"),
  historyKeys: mapped("history_keys", (keys) => JSON.stringify(keys), (value) => JSON.parse(value as string)),
  at: column("at_ms"),
});

export const HISTORY_MOVES = table<HistoryMove>("history_moves", 1, {
  userKey: column("user_key"),
  at: column("at_ms"),
});

/** Consent entries store the id of the call, not the user's number, which only the actor uses. */
export const CONSENTS = table<Omit<ConsentEntry, "userKey">>("consents", 1, {
  id: column("id"),
  realm: column("realm"),
  distinctId: column("distinct_id"),
  action: column("action"),
  scope: column("scope"),
  at: column("at_ms"),
});
