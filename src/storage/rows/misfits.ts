// What a table would refuse of a journaled row: a value that a column cannot hold, or one that a check constraint forbids.
// Such a row must not be acknowledged: no drain could ever write it, and the changes of all apps behind it would wait for
// ever. The runtime asks before a turn's changes join a batch. Words such as a status are left to the types.

import type { RowChange } from "../../../actors/port.ts";
import { decimalOf } from "../../domain/values/amount.ts";

/** The columns of a table that take less than any text and any whole number, by the names of their members. */
interface Narrow {
  /** The largest value of numbers of 32 bits or less; `realm` has 32 bits everywhere. */
  readonly max?: Readonly<Record<string, number>>;
  /** Numbers that may have a fraction. */
  readonly fractions?: readonly string[];
  /** Texts that indexes hold; those that one index holds together are in one list. */
  readonly indexed?: readonly (readonly string[])[];
  /** Members that several columns store. */
  readonly spread?: readonly string[];
  /** Amounts and numbers that are at least 0. */
  readonly unsigned?: readonly string[];
  /** Amounts that are above 0. */
  readonly positive?: readonly string[];
  /** Says what members may not be together; null for a row that is fine. */
  readonly clash?: (row: Values) => string | null;
}

type Values = Readonly<Record<string, unknown>>;

const INT = 2 ** 31 - 1;
const SMALLINT = 2 ** 15 - 1;

/** The bytes of the texts in one entry of an index. It has at most 2,704, with the numbers beside them. */
const INDEXED_BYTES_MAX = 2_600;

const inWindow = ({ windowStart, windowEnd }: Values): string | null =>
  windowEnd === null || (windowEnd as number) > (windowStart as number)
    ? null
    : `windowEnd is ${windowEnd}, not after windowStart`;

const openOrSettled = ({ status, settledAt }: Values): string | null =>
  (status === "held") === (settledAt === null) ? null : `settledAt is ${settledAt} where status is ${status}`;

const namedByBoth = ({ provider, externalId, ended, endsAt }: Values): string | null => {
  if ((provider === null) !== (externalId === null)) {
    return "provider is without externalId, or it without that";
  }
  return ended === true && endsAt === null ? "ended is true without endsAt" : null;
};

const emptyIfRevoked = ({ revokedAt, remaining }: Values): string | null =>
  revokedAt === null || remaining === 0n
    ? null
    : `remaining is ${decimalOf(remaining as bigint)} where it is revoked`;

export const NARROW: { readonly [Name in RowChange["table"]]: Narrow } = {
  users: { max: { optedOut: INT }, indexed: [["id"]], spread: ["entitlement"] },
  subscriptions: {
    max: { quantity: INT },
    indexed: [["id"], ["planId"], ["externalId"]],
    spread: ["scheduled", "trial"],
    clash: namedByBoth,
  },
  subscription_events: { indexed: [["id"]] },
  counters: {
    indexed: [["planId", "groupId"]],
    unsigned: ["count"],
    positive: ["overage"],
    clash: inWindow,
  },
  reservations: { max: { priceRow: INT }, indexed: [["id"]], clash: openOrSettled },
  events: { indexed: [["id"], ["type"], ["matchStatus"], ["runId"]] },
  idempotency: { max: { status: INT }, indexed: [["key"]] },
  operations: { indexed: [["workspaceId", "mode", "month"]], unsigned: ["used"] },
  credit_balances: {
    max: { notified: INT },
    fractions: ["priority"],
    indexed: [["id"], ["packId"], ["externalRef"], ["ownRef"]],
    unsigned: ["remaining", "held", "revokedAmount", "overage"],
    positive: ["initial"],
    clash: emptyIfRevoked,
  },
  credit_ledger: { indexed: [["id"], ["balanceId"]] },
  credit_issues: { unsigned: ["issued"] },
  merges: { indexed: [["id"]] },
  history_moves: {},
  event_logs: { indexed: [["eventId"]] },
  generations: { indexed: [["id"]], unsigned: ["inputTokens", "outputTokens", "costCents"] },
  ai_spend: { indexed: [["workspaceId", "month"]], unsigned: ["cents"] },
  consents: { indexed: [["id"], ["distinctId"]] },
  webhook_messages: { indexed: [["id"], ["webhookId"]] },
  gateway_spend: { indexed: [["workspaceId", "appId", "month"]], unsigned: ["cents"] },
  runs: { max: { openHolds: INT }, indexed: [["id"]] },
  end_user_keys: { indexed: [["id"]] },
  shares: { indexed: [["groupId", "unit", "userId"]], unsigned: ["count"], clash: inWindow },
  top_ups: { max: { attempt: INT }, indexed: [["id"], ["status"], ["customerId"]] },
  overage_windows: {
    max: { notified: SMALLINT },
    indexed: [["groupId", "unit"]],
    unsigned: ["total", "pending"],
    clash: inWindow,
  },
  overage_hours: { indexed: [["groupId", "unit"]], positive: ["amount"] },
  user_summaries: { max: { percent: INT }, unsigned: ["percent"] },
};

const encoder = new TextEncoder();

/** Says which value of a turn's rows its table would refuse, and why; null for none. */
export function misfitOf(changes: readonly RowChange[]): string | null {
  for (const { table, row } of changes) {
    const narrow = NARROW[table];
    const values = row as unknown as Values;
    const misfit = misfitIn(values, narrow) ?? indexMisfitIn(values, narrow.indexed) ??
      narrow.clash?.(values) ?? null;
    if (misfit !== null) return `${table}.${misfit}`;
  }
  return null;
}

/** Every turn pays for this: it looks at each value once, and closer only at what is rare. */
function misfitIn(values: Values, narrow: Narrow): string | null {
  const { spread, unsigned, positive } = narrow;
  for (const name in values) {
    const value = values[name];
    if (typeof value === "bigint") {
      if (value > 0n) continue;
      const isForbidden = value < 0n && unsigned?.includes(name) === true ||
        positive?.includes(name) === true;
      if (isForbidden) return `${name} is ${decimalOf(value)}, which a check forbids`;
    } else if (typeof value === "number") {
      if (value < 0 && unsigned?.includes(name) === true) return `${name} is ${value}, below 0`;
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
