// Counters, reservations, metering events, and the logs and generations of events. Every reserve writes a counter and a
// reservation, and every commit an event, so the encodings of these three are written out by hand. They join their parts
// once, because each concatenation would allocate another string.

import { type Amount, decimalOf, parseAmount } from "../../domain/values/amount.ts";
import type { CreditLine } from "../../domain/state/credit.ts";
import { ownerOf } from "../../domain/values/ids.ts";
import { type Counter, counterKey, NO_ALERTS } from "../../domain/state/counter.ts";
import type { EventLog, LevelCharge, MeteringEvent } from "../../domain/state/event.ts";
import type { Generation } from "../../domain/state/generation.ts";
import type { HoldLine, Reservation } from "../../domain/state/reservation.ts";
import type { Unit } from "../../domain/catalog/plan.ts";
import { copyText, NULL } from "../database.ts";
import { decodeCredits, decodeLines, encodeCredits, encodeLines } from "./charge_text.ts";
import { decodeShares, encodeShares } from "./share_rows.ts";
import { encodeWork } from "./work_text.ts";
import { amount, column, type Found, mapped, type StoredRow, type Table, table } from "./columns.ts";

export const COUNTERS: Table<Counter> = {
  name: "counters",
  keyColumns: 4,
  columns: [
    "user_key",
    "plan_id",
    "group_id",
    "window_start_ms",
    "window_end_ms",
    "count",
    "adjusted",
    "cost_cents",
    "alerted",
    "alerted_quota",
    "block_filler",
    "block_up_to",
    "reset_at_ms",
    "kind",
    "overage",
  ],
  mutable: [
    "window_end_ms",
    "count",
    "adjusted",
    "cost_cents",
    "alerted",
    "alerted_quota",
    "block_filler",
    "block_up_to",
    "reset_at_ms",
    "kind",
    "overage",
  ],
  later: [NULL, NULL, NULL, NULL, NULL, NULL, NULL],
  encode: encodeCounter,
  read: readCounter,
};

function encodeCounter(row: Counter): string {
  return [
    row.userKey,
    copyText(row.planId),
    copyText(row.groupId),
    row.windowStart,
    row.windowEnd ?? NULL,
    decimalOf(row.count),
    decimalOf(row.adjusted),
    decimalOf(row.costCents),
    row.alerted.length === 0 ? NULL : row.alerted.join(","),
    encodeRareParts(row),
  ].join("\t");
}

const NO_RARE_PARTS = [NULL, NULL, NULL, NULL, NULL, NULL].join("\t");

/** Encodes the columns that are null in nearly all counters. */
function encodeRareParts({ alertedQuota, block, resetAt, kind, overage }: Counter): string {
  if (alertedQuota === undefined && block === undefined && resetAt === undefined && kind === undefined) {
    if (overage === undefined) return NO_RARE_PARTS;
  }
  const amounts = [alertedQuota, block?.filler, block?.upTo].map((each) =>
    each === undefined ? NULL : decimalOf(each)
  );
  return [...amounts, resetAt ?? NULL, kind ?? NULL, overage === undefined ? NULL : decimalOf(overage)].join(
    "\t",
  );
}

function readCounter(stored: StoredRow): Counter {
  const [planId, groupId] = [stored.plan_id as string, stored.group_id as string];
  const windowStart = stored.window_start_ms as number;
  return {
    key: counterKey(planId, groupId, windowStart),
    userKey: stored.user_key as number,
    planId,
    groupId,
    windowStart,
    windowEnd: stored.window_end_ms as number | null,
    count: parseAmount(stored.count as string),
    adjusted: parseAmount(stored.adjusted as string),
    costCents: parseAmount(stored.cost_cents as string),
    alerted: alertedOf(stored.alerted as string | null),
    ...rarePartsOf(stored),
  };
}

type RareParts = Pick<Counter, "alertedQuota" | "block" | "resetAt" | "kind" | "overage">;

function rarePartsOf(stored: StoredRow): RareParts | undefined {
  const { alerted_quota: quota, block_filler: filler, block_up_to: upTo, reset_at_ms: resetAt } = stored;
  const kind = stored.kind as Counter["kind"] | null;
  const overage = stored.overage as string | null;
  const isCommon = quota === null && filler === null && resetAt === null && kind === null;
  if (isCommon && overage === null) return undefined;
  const block = () => ({ filler: parseAmount(filler as string), upTo: parseAmount(upTo as string) });
  return {
    ...quota === null ? undefined : { alertedQuota: parseAmount(quota as string) },
    ...filler === null ? undefined : { block: block() },
    ...resetAt === null ? undefined : { resetAt: resetAt as number },
    ...kind == null ? undefined : { kind },
    ...overage === null ? undefined : { overage: parseAmount(overage) },
  };
}

/** Parses percents, with 0 for the pace: "80,100,0"; null for none. */
function alertedOf(text: string | null): readonly number[] {
  return text === null ? NO_ALERTS : text.split(",").map(Number);
}

/** Finds an open hold by its user and time; a settled one is found by its id. */
const BY_USER_AND_TIME: Found = { user: "user_key", at: "created_at_ms", mayBeOfAlias: isNamedOtherwise };

const RESERVATION_TABLE = table<Omit<Reservation, "isBare">>(
  "reservations",
  1,
  {
    id: column("id"),
    userKey: column("user_key", { mutable: true }),
    status: column("status", { mutable: true }),
    event: column("event"),
    metadata: column("metadata"),
    quantity: optionalAmount("quantity"),
    count: optionalAmount("count"),
    amounts: mapped("amounts", textOfAmounts, (value) => amountsOf(value as string)),
    perUnit: column("per_unit"),
    lines: mapped<readonly HoldLine[]>("lines", encodeLines, (value) => decodeLines(value as string), {
      mutable: true,
    }),
    createdAt: column("created_at_ms"),
    expiresAt: column("expires_at_ms", { mutable: true }),
    settledAt: column("settled_at_ms", { mutable: true }),
    credits: mapped<readonly CreditLine[]>(
      "credits",
      encodeCredits,
      (value) => decodeCredits(value as string),
      {
        mutable: true,
        later: { since: 2, value: "[]" },
      },
    ),
    prompt: column("prompt", { mutable: true, later: { since: 4, value: null } }),
    priceRow: column("price_row", { later: { since: 11, value: null } }),
    namesCents: column("told_cents", { later: { since: 11, value: false } }),
    parts: mapped<readonly string[] | undefined>(
      "parts",
      (parts) => parts?.join(",") ?? null,
      (value) => value === null ? undefined : (value as string).split(","),
      { mutable: true, later: { since: 26, value: null } },
    ),
    partOf: mapped<string | undefined>(
      "part_of",
      (id) => id ?? null,
      (value) => value === null ? undefined : value as string,
      { later: { since: 26, value: null } },
    ),
    runId: mapped<string | undefined>(
      "run_id",
      (id) => id ?? null,
      (value) => value === null ? undefined : value as string,
      { later: { since: 27, value: null } },
    ),
    shares: mapped("shares", encodeShares, decodeShares, { later: { since: 29, value: null } }),
    rate: mapped<Reservation["rate"]>("rate", textOfRate, (value) => rateOfText(value as string | null), {
      later: { since: 33, value: null },
    }),
  },
  lineOfReservation,
  BY_USER_AND_TIME,
);

/**
 * Reservations. Their metadata and prompt are texts of the row that was appended: memory may lack them, so a put never
 * changes them, but a commit and a release remove the prompt.
 */
export const RESERVATIONS: Table<Omit<Reservation, "isBare">> = {
  ...RESERVATION_TABLE,
  read: readReservation,
  valueSql: { prompt: "case when s.status in ('held', 'expired') then t.prompt end" },
  over: keepTexts,
};

function readReservation(stored: StoredRow): Omit<Reservation, "isBare"> {
  const { parts, partOf, runId, shares, rate, ...own } = RESERVATION_TABLE.read(stored);
  const rated = rate === undefined ? own : { ...own, rate };
  const row = runId === undefined ? rated : { ...rated, runId };
  if (parts !== undefined) return shares === undefined ? { ...row, parts } : { ...row, parts, shares };
  return partOf === undefined ? row : { ...row, partOf };
}

const METADATA = RESERVATION_TABLE.columns.indexOf("metadata");
const PROMPT = RESERVATION_TABLE.columns.indexOf("prompt");
const STATUS = RESERVATION_TABLE.columns.indexOf("status");

/** Gives a later line of a reservation the texts of an earlier one. */
function keepTexts(earlier: string, later: string): string {
  // With metadata the later line is not that of a bare reservation; nearly all others have no texts at all.
  if (fieldAt(later, METADATA) !== NULL) return later;
  const status = fieldAt(later, STATUS);
  const isOver = status === "committed" || status === "released";
  if (isOver && fieldAt(earlier, METADATA) === NULL) return later;
  const [before, after] = [earlier.split("\t"), later.split("\t")];
  after[METADATA] = before[METADATA] as string;
  if (!isOver) after[PROMPT] = before[PROMPT] as string;
  return after.join("\t");
}

/** The text of a field of a line. */
function fieldAt(line: string, place: number): string {
  let from = 0;
  for (let field = 0; field < place; field++) from = line.indexOf("\t", from) + 1;
  return line.slice(from, line.indexOf("\t", from));
}

/** Whether the id of a reservation names another user than its owner, because a merge has moved it. */
function isNamedOtherwise(line: string): boolean {
  const [id = "", userKey] = line.split("\t", 2);
  return ownerOf("reservation", id) !== Number(userKey);
}

function optionalAmount(name: string) {
  return mapped<Amount | null>(
    name,
    (value) => value === null ? null : decimalOf(value),
    (value) => value === null ? null : parseAmount(value as string),
  );
}

/** Encodes amounts as JSON: [count,tokens,seconds,cents], and credits unless they are 0. */
function textOfAmounts({ count, tokens, seconds, cents, credits }: Reservation["amounts"]): string {
  const text = `[${decimalOf(count)},${decimalOf(tokens)},${decimalOf(seconds)},${decimalOf(cents)}`;
  return credits === 0n ? `${text}]` : `${text},${decimalOf(credits)}]`;
}

/** Encodes the rate of a hold: its number, then the cost of its tokens unless that is 0. */
function textOfRate(rate: Reservation["rate"]): string | null {
  if (rate === undefined) return null;
  return rate.tokens === 0n ? String(rate.number) : `${rate.number},${rate.tokens}`;
}

function rateOfText(text: string | null): Reservation["rate"] {
  if (text === null) return undefined;
  const [number, tokens = "0"] = text.split(",", 2);
  return { number: Number(number), tokens: BigInt(tokens) };
}

function amountsOf(text: string): Reservation["amounts"] {
  const [count = "0", tokens = "0", seconds = "0", cents = "0", credits = "0"] = text.slice(1, -1).split(",");
  return {
    count: parseAmount(count),
    tokens: parseAmount(tokens),
    seconds: parseAmount(seconds),
    cents: parseAmount(cents),
    credits: parseAmount(credits),
  };
}

function lineOfReservation(row: Reservation): string {
  return [
    copyText(row.id),
    row.userKey,
    row.status,
    copyText(row.event),
    copyText(row.metadata),
    amountText(row.quantity),
    amountText(row.count),
    textOfAmounts(row.amounts),
    row.perUnit ? "t" : "f",
    textOfLines(row.lines),
    row.createdAt,
    row.expiresAt,
    row.settledAt ?? NULL,
    copyText(encodeCredits(row.credits)),
    copyText(row.prompt),
    row.priceRow ?? NULL,
    row.namesCents ? "t" : "f",
    row.parts?.join(",") ?? NULL,
    row.partOf ?? NULL,
    row.runId ?? NULL,
    row.shares === undefined ? NULL : copyText(encodeShares(row.shares)),
    textOfRate(row.rate) ?? NULL,
  ].join("\t");
}

/** The lines of the last hold as text: where many holds change at once, they share one list of lines. */
let lastLines: { readonly lines: Reservation["lines"]; readonly text: string } | null = null;

function textOfLines(lines: Reservation["lines"]): string {
  if (lastLines?.lines !== lines) lastLines = { lines, text: copyText(encodeLines(lines)) };
  return lastLines.text;
}

function amountText(amount: Amount | null): string {
  return amount === null ? NULL : decimalOf(amount);
}

/** Events have no `read`: decisions append them, only queries read them, and actors never load them. */
export const EVENTS: Omit<Table<MeteringEvent>, "read"> = {
  name: "events",
  keyColumns: 1,
  columns: [
    "id",
    "user_key",
    "realm",
    "type",
    "quantity",
    "cost_cents",
    "match_status",
    "created_at_ms",
    "metadata",
    "reservation_id",
    "reason",
    "error_code",
    "lines",
    "uncovered",
    "credits",
    "levels",
    "level_keys",
    "run_id",
    "run_amounts",
    "shares",
    "cost_credits",
    "plan_id",
    "model",
    "is_unpriced",
    "work",
  ],
  mutable: [],
  later: ["[]", NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL],
  encode: encodeEvent,
};

function encodeEvent(row: MeteringEvent): string {
  return [
    copyText(row.id),
    row.userKey,
    row.realm,
    copyText(row.type),
    decimalOf(row.quantity),
    decimalOf(row.costCents),
    row.matchStatus,
    row.createdAt,
    copyText(row.metadata),
    copyText(row.reservationId),
    copyText(row.reason),
    copyText(row.errorCode),
    copyText(encodeLines(row.lines)),
    encodeUncovered(row.uncovered),
    copyText(encodeCredits(row.credits)),
    row.levels === undefined ? NULL : copyText(encodeLevels(row.levels)),
    row.levels === undefined ? NULL : `{${row.levels.map(({ userKey }) => userKey).join(",")}}`,
    row.runId ?? NULL,
    row.runAmounts === undefined ? NULL : textOfAmounts(row.runAmounts),
    row.shares === undefined ? NULL : copyText(encodeShares(row.shares)),
    amountText(row.costCredits ?? null),
    copyText(row.planId ?? ""),
    copyText(row.model ?? ""),
    row.isUnpriced === true ? "t" : NULL,
    encodeWork(row.work),
  ].join("\t");
}

/** Encodes what an event took from users above as JSON: [[userKey, lines, credits, uncovered], ...]. */
function encodeLevels(levels: readonly LevelCharge[]): string {
  const texts = levels.map(({ userKey, lines, credits, uncovered }) =>
    `[${userKey},${encodeLines(lines)},${encodeCredits(credits)},${encodeUncovered(uncovered)}]`
  );
  return `[${texts.join(",")}]`;
}

function encodeUncovered(uncovered: MeteringEvent["uncovered"]): string {
  let text = "";
  for (const unit in uncovered) {
    text += `${text === "" ? "" : ","}["${unit}","${decimalOf(uncovered[unit as Unit] as Amount)}"]`;
  }
  return `[${text}]`;
}

export const EVENT_LOGS = table<EventLog>("event_logs", 1, {
  eventId: column("event_id"),
  userKey: column("user_key"),
  realm: column("realm"),
  prompt: column("prompt"),
  response: column("response"),
  at: column("at_ms"),
});

export const GENERATIONS = table<Generation>("generations", 1, {
  id: column("id"),
  userKey: column("user_key"),
  realm: column("realm"),
  type: column("type"),
  model: column("model"),
  inputTokens: amount("input_tokens"),
  outputTokens: amount("output_tokens"),
  costCents: amount("cost_cents"),
  eventId: column("event_id"),
  at: column("at_ms"),
});
