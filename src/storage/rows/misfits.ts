// What a table would refuse of a journaled row. Such a row must not be acknowledged: no drain could ever write it, and the
// changes of all apps behind it would wait for ever. The runtime asks before a turn's changes join a batch.

import type { RowChange } from "../../../actors/port.ts";

/** The columns of a table that take less than any text and any whole number, by the names of their members. */
export interface Narrow {
  /** The largest value of numbers of 32 bits or less; `realm` has 32 bits everywhere. */
  readonly max?: Readonly<Record<string, number>>;
  /** Numbers that may have a fraction. */
  readonly fractions?: readonly string[];
  /** Texts that indexes hold; those that one index holds together are in one list. */
  readonly indexed?: readonly (readonly string[])[];
  /** Members that several columns store. */
  readonly spread?: readonly string[];
}

const INT = 2 ** 31 - 1;
const SMALLINT = 2 ** 15 - 1;

/** The bytes of the texts in one entry of an index. It has at most 2,704, with the numbers beside them. */
const INDEXED_BYTES_MAX = 2_600;

export const NARROW: { readonly [Name in RowChange["table"]]: Narrow } = {
  users: { max: { optedOut: INT }, indexed: [["id"]], spread: ["entitlement"] },
  subscriptions: {
    max: { quantity: INT },
    indexed: [["id"], ["planId"], ["externalId"]],
    spread: ["scheduled", "trial"],
  },
  subscription_events: { indexed: [["id"]] },
  counters: { indexed: [["planId", "groupId"]] },
  reservations: { max: { priceRow: INT }, indexed: [["id"]] },
  events: { indexed: [["id"], ["type"], ["matchStatus"], ["runId"]] },
  idempotency: { max: { status: INT }, indexed: [["key"]] },
  operations: { indexed: [["workspaceId", "mode", "month"]] },
  credit_balances: {
    max: { told: INT },
    fractions: ["priority"],
    indexed: [["id"], ["packId"], ["externalRef"], ["ownRef"]],
  },
  credit_ledger: { indexed: [["id"], ["balanceId"]] },
  credit_issues: {},
  merges: { indexed: [["id"]] },
  history_moves: {},
  event_logs: { indexed: [["eventId"]] },
  generations: { indexed: [["id"]] },
  ai_spend: { indexed: [["workspaceId", "month"]] },
  consents: { indexed: [["id"], ["distinctId"]] },
  webhook_messages: { indexed: [["id"], ["webhookId"]] },
  gateway_spend: { indexed: [["workspaceId", "appId", "month"]] },
  runs: { max: { openHolds: INT }, indexed: [["id"]] },
  end_user_keys: { indexed: [["id"]] },
  shares: { indexed: [["groupId", "unit", "userId"]] },
  top_ups: { max: { attempt: INT }, indexed: [["id"], ["status"], ["customerId"]] },
  overage_windows: { max: { told: SMALLINT }, indexed: [["groupId", "unit"]] },
  overage_hours: { indexed: [["groupId", "unit"]] },
  user_summaries: { max: { percent: INT } },
};

const encoder = new TextEncoder();

type Values = Readonly<Record<string, unknown>>;

/** Says which value of a turn's rows its table would refuse, and why; null for none. */
export function misfitOf(changes: readonly RowChange[]): string | null {
  for (const { table, row } of changes) {
    const narrow = NARROW[table];
    const values = row as unknown as Values;
    const misfit = misfitIn(values, narrow) ?? indexMisfitIn(values, narrow.indexed);
    if (misfit !== null) return `${table}.${misfit}`;
  }
  return null;
}

/** Every turn pays for this: it looks at each value once, and closer only at what is rare. */
function misfitIn(values: Values, narrow: Narrow): string | null {
  const { spread } = narrow;
  for (const name in values) {
    const value = values[name];
    if (typeof value === "number") {
      if (Number.isInteger(value) && value <= SMALLINT && value >= -SMALLINT) continue;
      if (!isFitting(value, name, narrow)) return `${name} is ${value}, which its column cannot hold`;
    } else if (typeof value === "string") {
      if (value.includes("\0")) return `${name} has U+0000`;
    } else if (spread !== undefined && value !== null && spread.includes(name)) {
      const misfit = misfitIn(value as Values, NOT_NARROW);
      if (misfit !== null) return `${name}.${misfit}`;
    }
  }
  return null;
}

const NOT_NARROW: Narrow = {};

function isFitting(value: number, name: string, { max, fractions }: Narrow): boolean {
  if (!Number.isSafeInteger(value)) return Number.isFinite(value) && fractions?.includes(name) === true;
  const most = name === "realm" ? INT : max?.[name];
  return most === undefined || value <= most && value >= -most;
}

function indexMisfitIn(values: Values, indexes: Narrow["indexed"] = NO_INDEXES): string | null {
  for (const names of indexes) {
    let length = 0;
    for (const name of names) length += (values[name] as string | null | undefined)?.length ?? 0;
    // A UTF-16 unit has at most three bytes of UTF-8.
    if (length * 3 <= INDEXED_BYTES_MAX) continue;
    const texts = names.map((name) => (values[name] ?? "") as string);
    const bytes = texts.reduce((sum, text) => sum + encoder.encode(text).length, 0);
    if (bytes > INDEXED_BYTES_MAX) return `${names.join(", ")} have ${bytes} bytes, too many for an index`;
  }
  return null;
}

const NO_INDEXES: Required<Narrow>["indexed"] = [];
