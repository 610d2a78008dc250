// An open hold as one text: its fields in a fixed order, each on a line, without its id, its user and its relations. Times are
// relative to the time within the id, so calls of one kind make equal texts, and share one unless the caller sent texts of
// its own. The ids of its parts and of its run are beside it.
// The caller's texts are the last field, after their lengths, since they may hold any character; ids and units hold no line
// feed. The form lives in memory alone and may change with every version.

import type { Amount } from "../values/amount.ts";
import type { CreditLine } from "./credit.ts";
import { momentOf, type UserKey } from "../values/ids.ts";
import type { Millis, Window, WindowKind } from "../values/period.ts";
import type { Unit } from "../catalog/plan.ts";
import { areEqualLines, type HeldRate, type Line, type Reservation } from "./reservation.ts";
import type { ShareLine } from "./share.ts";
import { textBytes, TextRoom } from "./text_room.ts";

type Field = string | number | bigint;

const END = "\n";
/** The form of null. */
const NONE = "";
/** Before the ids of parts. */
const PARTS = "+";
/** Before the id of a run. */
const RUN = "@";
/** Before the rate of a hold, the cost of its tokens and the credits that it holds. */
const RATE = "$";
/** Before the overage of a line. */
const OVERAGE = " ";
/** In place of the bytes of the texts: they are in the tables alone. */
const BARE = "-";
const YES = "1";
const NO = "0";

/** Whether a text can hold a reservation: it is open, and left no counter and no balance by a change of plan. */
export function fitsText({ status, lines, credits }: Reservation): boolean {
  return status === "held" &&
    lines.every(({ left, isLeftBehind }) => left === undefined && isLeftBehind === undefined) &&
    credits.every(({ left }) => left === undefined);
}

/** The text of a hold with parts, of a part, or of a call in a run. */
export interface RelatedText {
  readonly text: string;
  /** The ids of parts, or of the reservation of a part, then that of the run: "+a,b@run". */
  readonly relations: string;
}

/** Makes the text of a reservation that fits one; users with the same `texts` share equal texts. */
export function textOfHold(row: Reservation, texts: HoldTexts): string | RelatedText {
  // A caller's texts may be about a person, so they are kept nowhere but in that person's own rows.
  const text = row.metadata === null && row.prompt === null ? texts.shared(row) : joined(row);
  const relations = textOfRelations(row);
  return relations === NONE ? text : { text, relations };
}

function joined(row: Reservation): string {
  const { amounts, lines, credits, event, metadata, prompt, isBare } = row;
  const moment = momentOf(row.id);
  const fields: Field[] = [
    row.expiresAt - moment,
    isBare === true ? BARE : textBytes(row),
    row.createdAt - moment,
    row.quantity ?? NONE,
    row.count ?? NONE,
    amounts.tokens,
    amounts.seconds,
    amounts.count,
    amounts.cents,
    row.perUnit ? YES : NO,
    textOfPricing(row),
    row.namesCents ? YES : NO,
    lines.length,
  ];
  for (const { planId, groupId, window, unit, taken, overage } of lines) {
    const { start, end, kind } = window;
    const unitAndKind = kind === undefined ? unit : `${unit} ${kind}`;
    fields.push(planId, groupId, start, end === null ? NONE : end - start, unitAndKind);
    fields.push(overage === undefined ? taken : `${taken}${OVERAGE}${overage}`);
  }
  fields.push(credits.length);
  for (const { balanceId, unit, taken } of credits) fields.push(balanceId, unit, taken);
  fields.push(row.shares?.length ?? NONE);
  for (const { accountKey, groupId, unit, window, since, taken } of row.shares ?? []) {
    fields.push(accountKey, groupId, unit, window.start, window.end ?? NONE, since, taken);
  }
  fields.push(event.length, metadata?.length ?? NONE, prompt?.length ?? NONE);
  fields.push(event + (metadata ?? NONE) + (prompt ?? NONE));
  // Joined, not added up: a sum of texts stays a tree of its pieces in memory.
  return fields.join(END);
}

/**
 * Whether two holds without a caller's texts certainly have equal texts. False where credits pay: these are not compared.
 * The comparison costs less than making the text.
 */
function haveOneText(one: Reservation, other: Reservation): boolean {
  const { amounts, lines, rate } = one;
  if (one.credits.length + other.credits.length > 0 || lines.length !== other.lines.length) return false;
  for (let place = 0; place < lines.length; place++) {
    if (!areEqualLines(lines[place] as Line, other.lines[place] as Line)) return false;
  }
  const [moment, otherMoment] = [momentOf(one.id), momentOf(other.id)];
  return one.expiresAt - moment === other.expiresAt - otherMoment &&
    one.createdAt - moment === other.createdAt - otherMoment && one.isBare === other.isBare &&
    one.quantity === other.quantity && one.count === other.count &&
    amounts.tokens === other.amounts.tokens && amounts.seconds === other.amounts.seconds &&
    amounts.count === other.amounts.count && amounts.cents === other.amounts.cents &&
    amounts.credits === other.amounts.credits && rate?.number === other.rate?.number &&
    rate?.tokens === other.rate?.tokens && one.perUnit === other.perUnit &&
    one.priceRow === other.priceRow && one.namesCents === other.namesCents &&
    one.shares === undefined && other.shares === undefined && one.event === other.event;
}

/** Most texts to remember. Where all texts differ, as where each user's own credits pay, more would not help. */
const TEXTS_MAX = 4096;
/** Most events whose last hold is remembered. */
const EVENTS_MAX = 256;

/** Texts that the holds of many users share. The runtime makes one and hands it to every user's state. */
export class HoldTexts {
  /** Room for the texts that they do not share. */
  readonly room: TextRoom;
  readonly #known = new Map<string, SharedHold>();
  /** The last hold of each event, with its text. */
  readonly #last = new Map<string, { readonly row: Reservation; readonly text: string }>();

  constructor(room = new TextRoom()) {
    this.room = room;
  }

  /** Returns the text of a hold, the same one for equal holds. Most are like the last of their event. */
  shared(row: Reservation): string {
    const last = this.#last.get(row.event);
    if (last !== undefined && haveOneText(last.row, row)) return last.text;
    if (this.#last.size >= EVENTS_MAX) this.#last.clear();
    const text = this.#first(joined(row));
    this.#last.set(row.event, { row, text });
    return text;
  }

  /** Returns the first text that was equal to this one. */
  #first(text: string): string {
    const known = this.#known;
    const first = known.get(text);
    if (first !== undefined) return first.text;
    if (known.size >= TEXTS_MAX) {
      known.clear();
      this.#last.clear();
    }
    known.set(text, { text, read: null });
    return text;
  }

  /** Reads a text, a shared one once. */
  read(text: string): ReadHold {
    const known = bytesOfText(text) > 0 ? undefined : this.#known.get(text);
    return known === undefined ? readText(text) : known.read ??= readText(text);
  }
}

/** A text that several holds share; `read` is its content, null until it is first read. */
interface SharedHold {
  readonly text: string;
  read: ReadHold | null;
}

/** A hold as its text has it. Times are relative to the time within its id. */
type ReadHold = Omit<Reservation, "id" | "userKey" | keyof Relations>;

/** Returns when the hold of an id and a text lapses. */
export function expiryOfText(id: string, text: string): Millis {
  return momentOf(id) + Number(text.slice(0, text.indexOf(END)));
}

/** Whether the texts of a caller are in the tables alone. */
export function isBareText(text: string): boolean {
  return text.startsWith(BARE, text.indexOf(END) + 1);
}

/** Whether users above hold parts of a hold. */
export function hasParts(hold: string | RelatedText): boolean {
  return typeof hold === "object" && hold.relations.startsWith(PARTS);
}

/** Returns the bytes of the caller's texts in a text. */
export function bytesOfText(text: string): number {
  if (isBareText(text)) return 0;
  const from = text.indexOf(END) + 1;
  return Number(text.slice(from, text.indexOf(END, from)));
}

/** Makes the reservation of a text again. */
export function readHold(
  id: string,
  userKey: UserKey,
  hold: string | RelatedText,
  texts: HoldTexts,
): Reservation {
  const read = texts.read(typeof hold === "object" ? hold.text : hold);
  const moment = momentOf(id);
  const row = {
    ...read,
    id,
    userKey,
    createdAt: moment + read.createdAt,
    expiresAt: moment + read.expiresAt,
  };
  return typeof hold === "object" ? { ...row, ...relationsOf(hold.relations) } : row;
}

function readText(text: string): ReadHold {
  const fields = new Fields(text);
  const expiresAt = fields.number();
  const isBare = fields.next() === BARE;
  const createdAt = fields.number();
  const quantity = fields.amountOrNull();
  const count = fields.amountOrNull();
  const amounts = {
    tokens: fields.amount(),
    seconds: fields.amount(),
    count: fields.amount(),
    cents: fields.amount(),
  };
  const perUnit = fields.next() === YES;
  const { priceRow, credits: heldCredits, rate } = readPricing(fields.next());
  const namesCents = fields.next() === YES;
  const lines = listOf(fields, readLine);
  const credits = listOf(fields, readCredit);
  const shares = listOf(fields, readShare);
  const [eventLength, metadataLength, promptLength] = [
    fields.number(),
    fields.numberOrNull(),
    fields.numberOrNull(),
  ];
  return {
    status: "held",
    event: fields.take(eventLength),
    metadata: metadataLength === null ? null : fields.take(metadataLength),
    quantity,
    count,
    amounts: { ...amounts, credits: heldCredits },
    perUnit,
    priceRow,
    namesCents,
    lines,
    credits,
    prompt: promptLength === null ? null : fields.take(promptLength),
    createdAt,
    expiresAt,
    settledAt: null,
    ...(isBare ? BARE_ROW : NO_MEMBERS),
    ...(rate === undefined ? NO_MEMBERS : { rate }),
    ...(shares.length === 0 ? NO_MEMBERS : { shares }),
  };
}

/** The number of the price row, then the rate, its tokens and the credits: "3$7,0,5000000"; without credits "3". */
function textOfPricing({ priceRow, rate, amounts }: Reservation): string | number {
  const row = priceRow ?? NONE;
  return rate === undefined && amounts.credits === 0n
    ? row
    : `${row}${RATE}${rate?.number ?? NONE},${rate?.tokens ?? 0n},${amounts.credits}`;
}

function readPricing(text: string) {
  const [row = NONE, inCredits] = text.split(RATE, 2);
  const priceRow = row === NONE ? null : Number(row);
  if (inCredits === undefined) return { priceRow, credits: 0n };
  const [number = NONE, tokens = NONE, credits = NONE] = inCredits.split(",", 3);
  const rate: HeldRate | undefined = number === NONE
    ? undefined
    : { number: Number(number), tokens: BigInt(tokens) };
  return { priceRow, credits: BigInt(credits), rate };
}

type Relations = Pick<Reservation, "parts" | "partOf" | "runId">;

function textOfRelations({ parts, partOf, runId }: Relations): string {
  const relation = parts === undefined ? partOf ?? NONE : PARTS + parts.join(",");
  return runId === undefined ? relation : relation + RUN + runId;
}

function relationsOf(text: string): Relations {
  const [relation = NONE, runId] = text.split(RUN, 2);
  const ofRun = runId === undefined ? NO_MEMBERS : { runId };
  if (relation === NONE) return ofRun;
  return relation.startsWith(PARTS)
    ? { parts: relation.slice(PARTS.length).split(","), ...ofRun }
    : { partOf: relation, ...ofRun };
}

const BARE_ROW = { isBare: true } as const;
const NO_MEMBERS = {};

function listOf<Item>(fields: Fields, read: (fields: Fields) => Item): Item[] {
  const items: Item[] = [];
  for (let left = fields.number(); left > 0; left--) items.push(read(fields));
  return items;
}

function readLine(fields: Fields): Line {
  const planId = fields.next();
  const groupId = fields.next();
  const [start, length] = [fields.number(), fields.numberOrNull()];
  const end = length === null ? null : start + length;
  const [unit, kind] = fields.next().split(" ") as [Unit, WindowKind?];
  const window: Window = kind === undefined ? { start, end } : { start, end, kind };
  const amounts = fields.next();
  const place = amounts.indexOf(OVERAGE);
  const taken = BigInt(place < 0 ? amounts : amounts.slice(0, place));
  const line = { planId, groupId, window, unit, taken };
  return place < 0 ? line : { ...line, overage: BigInt(amounts.slice(place + 1)) };
}

function readCredit(fields: Fields): CreditLine {
  return { balanceId: fields.next(), unit: fields.next() as Unit, taken: fields.amount() };
}

function readShare(fields: Fields): ShareLine {
  const [accountKey, groupId, unit] = [fields.number(), fields.next(), fields.next() as Unit];
  const window = { start: fields.number(), end: fields.numberOrNull() };
  return { accountKey, groupId, unit, window, since: fields.number(), taken: fields.amount() };
}

/** Reads the fields of a text, one after another. */
class Fields {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  next(): string {
    const end = this.#text.indexOf(END, this.#at);
    const field = this.#text.slice(this.#at, end);
    this.#at = end + 1;
    return field;
  }

  number(): number {
    return Number(this.next());
  }

  numberOrNull(): number | null {
    const field = this.next();
    return field === NONE ? null : Number(field);
  }

  amount(): Amount {
    return BigInt(this.next());
  }

  amountOrNull(): Amount | null {
    const field = this.next();
    return field === NONE ? null : BigInt(field);
  }

  /** Reads the next characters, line feeds included. */
  take(length: number): string {
    const from = this.#at;
    this.#at += length;
    return this.#text.slice(from, this.#at);
  }
}
