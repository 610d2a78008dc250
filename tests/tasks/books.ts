// Books as rows of the database, written by SQL: a statement for each kind of row, and a whole that adds up.

import type { Database } from "../../src/storage/database.ts";
import { openTestStore } from "../support/test_store.ts";

export const START = 1_767_225_600_000;
export const END = START + 86_400_000;

/** Stored lines: [group, taken] of plan_a in the one window. */
export function lines(...parts: [string, string][]): string {
  return JSON.stringify(parts.map(([group, taken]) => ["plan_a", group, START, END, "count", taken]));
}

function user(key: number, dueAt: number | null = null): string {
  return `insert into users (key, realm, id, due_at_ms) values (${key}, 1, 'user_${key}', ${dueAt})`;
}

export function counter(key: number, group: string, count: string, adjusted: string): string {
  return `insert into counters values (${key}, 'plan_a', '${group}', ${START}, ${END}, ${count}, ${adjusted}, 7)`;
}

/** A share of user 1 in a group of user 2. */
export function share(group: string, since: number, count: string): string {
  return `insert into shares values (1, 2, '${group}', 'count', ${START}, ${END}, ${since}, ${count}, 0, 'user_1')`;
}

/** Gives a row lines of shares of user 2: [group, since, taken]. */
function tookShares(table: string, id: string, ...parts: [string, number, string][]): string {
  const text = JSON.stringify(
    parts.map(([group, since, taken]) => [2, group, "count", START, END, since, taken]),
  );
  return `update ${table} set shares = '${text}' where id = '${id}'`;
}

/** A stored line with a part that was sold past the quota. */
function sold(group: string, taken: string, overage: string): string {
  return JSON.stringify([["plan_a", group, START, END, "count", taken, [], null, overage]]);
}

export function event(id: string, key: number, text: string, status = "matched"): string {
  return `insert into events (id, user_key, realm, type, quantity, cost_cents, match_status, created_at_ms, lines,
    uncovered) values ('${id}', ${key}, 1, 'x.make', 1, 0.5, '${status}', ${START}, '${text}', '[]')`;
}

function webhook(id: string, mode: string, isRemoved: boolean): string {
  return `insert into webhooks (id, app_id, mode, url, events, disabled, secrets, created_at_ms, removed, changed_in)
    values ('${id}', 'app_1', '${mode}', '', '["*"]', false, '[]', 0, ${isRemoved}, 1)`;
}

function hold(id: string, key: number, status: string, text: string, credits = "[]"): string {
  return `insert into reservations (id, user_key, status, event, amounts, per_unit, lines, created_at_ms,
    expires_at_ms, settled_at_ms, credits) values ('${id}', ${key}, '${status}', 'x.make', '[1,0,0,0]', false,
    '${text}', ${START}, ${END}, ${status === "held" ? null : END}, '${credits}')`;
}

export function balance(id: string, key: number, remaining: string, held: string): string {
  return `insert into credit_balances (id, user_key, realm, pack_id, pack_name, kind, unit, matches, priority,
    initial, granted_at_ms, source, remaining, held, revoked_amount) values ('${id}', ${key}, 1, 'pack', 'Pack',
    'generic', 'count', '[]', 0, 10, ${START}, 'grant', ${remaining}, ${held}, 0)`;
}

function subscription(id: string, key: number, endsAt: number, isEnded: boolean): string {
  return `insert into subscriptions (id, user_key, plan_id, started_at_ms, ends_at_ms, ended,
    custom_limits) values ('${id}', ${key}, 'plan_a', 0, ${endsAt}, ${isEnded}, '{}')`;
}

/** A run with a limit of each unit and event pattern: [unit, event, count, held]. */
function run(id: string, around: string | null, limits: [string, string, string, string][]): string {
  const parts = limits.map(([unit, pattern, count, held], place) => {
    return [`limit_${place + 1}`, unit, pattern, "9", count, held];
  });
  return `insert into runs (id, user_key, realm, around, limits, open_holds, created_at_ms, expires_at_ms)
    values ('${id}', 1, 1, ${around}, '${JSON.stringify(parts)}', 1, ${START}, ${END})`;
}

function message(id: string, key: number, webhookId: string, status = "pending"): string {
  return `insert into webhook_messages (id, webhook_id, user_key, realm, type, body, created_at_ms, status, attempts,
      ended_at_ms)
    values ('${id}', '${webhookId}', ${key}, 1, 'credits.low', '{"type":"credits.low","timestamp":""}', ${START},
    '${status}', ${status === "pending" ? "0, null" : `1, ${START}`})`;
}

function entry(id: string, key: number, balanceId: string, delta: string): string {
  return `insert into credit_ledger (id, user_key, balance_id, pack_id, delta, reason, at_ms)
    values ('${id}', ${key}, '${balanceId}', 'pack', ${delta}, 'grant', ${START})`;
}

/** A line of a hold that followed its user from one counter to another: in the books it is part of the latter alone. */
function lineThatLeft(to: string, from: string, taken: string): string {
  return JSON.stringify([["plan_a", to, START, END, "count", taken, [["plan_a", from, START, END]]]]);
}

/** Books that add up: every kind of row that counts, and of row that does not. */
const CLEAN: readonly string[] = [
  "insert into workspaces (id, name, created_at_ms) values ('ws_1', 'Books', 0)",
  "insert into apps (id, workspace_id, name, identity_secret, created_at_ms) values ('app_1', 'ws_1', 'Books', '', 0)",
  "insert into realms (realm, app_id, mode) values (1, 'app_1', 'live'), (2, 'app_1', 'test')",
  webhook("whk_1", "live", false),
  webhook("whk_gone", "live", true),
  webhook("whk_test", "test", false),
  user(1, END),
  counter(1, "g", "6.75", "1.25"),
  counter(1, "h", "0", "-2"),
  counter(1, "idle", "0", "0"),
  event("evt_1", 1, lines(["g", "1.5"], ["h", "2.000001"])),
  event("evt_2", 1, lines(["g", "3"], ["h", "-0.000001"])),
  event("evt_3", 1, "[]", "released"),
  hold("rsv_1", 1, "held", lineThatLeft("g", "h", "1"), '[["crb_1","count","2.5"],["crb_2","count","1"]]'),
  hold("rsv_2", 1, "expired", lines(["g", "50"]), '[["crb_1","count","50"]]'),
  hold("rsv_3", 1, "committed", lines(["g", "3"], ["h", "9"])),
  balance("crb_1", 1, "7.5", "2.5"),
  balance("crb_2", 1, "0", "1"),
  entry("cle_1", 1, "crb_1", "10"),
  entry("cle_2", 1, "crb_1", "-2.500000"),
  entry("cle_3", 1, "crb_2", "1"),
  entry("cle_4", 1, "crb_2", "-1"),
  user(2),
  counter(2, "g", "4", "0"),
  event("evt_4", 2, lines(["g", "4"])),
  // Two lines of a counter without a row, with a sum of 0.
  event("evt_5", 2, lines(["gone", "4"], ["gone", "-4"])),
  user(3),
  // A summary of a counter, and one of a quota of 0 that refused something.
  "update users set held_plan_id = 'plan_a' where key in (1, 2)",
  `insert into user_summaries values (1, 1, 'idle', 67, ${END}, ${START}), (2, 1, 'none', 100, ${END}, null)`,
  // A counter that sold 3 past its quota: 2 by an event, 0.5 of it still pending, and 1 by a hold.
  user(4, END),
  counter(4, "sold", "4", "0"),
  "update counters set overage = 3 where user_key = 4",
  event("evt_6", 4, sold("sold", "3", "2")),
  hold("rsv_4", 4, "held", sold("sold", "1", "1")),
  `insert into overage_windows values (4, 'sold', 'count', ${START}, ${END}, 2, 0.5, ${END}, 1)`,
  `insert into overage_hours values (4, 'sold', 'count', ${START}, ${START}, ${START}, 1.5)`,
  // A share with what came after a reset alone, a share of a hold, and a line without a row that adds up to nothing.
  share("g", 7, "2.5"),
  share("h", 0, "1"),
  tookShares("reservations", "rsv_1", ["g", 7, "1"], ["h", 0, "1"]),
  tookShares("events", "evt_1", ["g", 7, "1.5"], ["idle", 0, "0"]),
  tookShares("events", "evt_2", ["g", 0, "40"]),
  // One event is in the sums by day.
  `insert into daily_use_marks values (1, ${START}, 'evt_1')`,
  `insert into daily_use_of_users values (1, ${START / 86_400_000}, 'x.make', 1, 1, 0, 1, 0.5)`,
  `insert into daily_use_parts_of_users values (1, ${
    START / 86_400_000
  }, 'plan', '', 0, 1, 1, 0, 0, 1, 0.5, 0)`,
  "update events set plan_id = 'plan', model = '' where id in ('evt_1', 'evt_2')",
  `update counters set alerted = '0.000001,5e-7,99.5,100' where user_key = 1 and group_id = 'g'`,
  subscription("sub_1", 1, END + 1, false),
  subscription("sub_2", 1, START, true),
  // An open hold and an event of a run within another one.
  run("run_1", "'run_2'", [["count", "x.*", "3", "1"], ["tokens", "*", "0", "0"], [
    "count",
    "y.make",
    "0",
    "0",
  ]]),
  run("run_2", null, [["cents", "*", "0.5", "0"]]),
  "update reservations set run_id = 'run_1' where id in ('rsv_1', 'rsv_2')",
  "update events set run_id = 'run_1', run_amounts = '[2,0,0,0.5]' where id = 'evt_2'",
  message("whm_1", 1, "whk_1"),
  message("whm_2", 1, "whk_gone", "delivered"),
];

/** What a proof looks at in them. */
export const SEEN = { users: 4, counters: 5, balances: 2, holds: 2, events: 6, undrainedBatches: 0 };

const TABLES = [
  ...[
    "journal",
    "credit_ledger",
    "credit_balances",
    "reservations",
    "events",
    "counters",
    "shares",
    "overage_windows",
    "overage_hours",
    "user_summaries",
    "subscriptions",
    "runs",
    "users",
  ],
  ...["daily_use_marks", "daily_use_of_users", "daily_use_parts_of_users"],
  ...["stripe_purchases", "stripe_payments", "stripe_refunds", "stripe_disputes"],
  ...["webhook_messages", "webhooks", "realms", "apps", "workspaces"],
];

/** Replaces all stored books, by default with clean ones. */
export async function seed(database: Database, books: readonly string[] = CLEAN): Promise<void> {
  await database.script([...TABLES.map((table) => `delete from ${table}`), ...books].join(";\n"));
}

/** Runs a test on a fresh store with clean books. */
export async function withBooks(
  work: (database: Database, url: string | null) => Promise<void>,
): Promise<void> {
  const store = await openTestStore();
  try {
    await seed(store.database);
    await work(store.database, store.url);
  } finally {
    await store.close();
  }
}
