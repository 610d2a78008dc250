// Imports prices of models into a catalog: what a price file says, what that changes in the rows that the catalog has,
// and the rows after it. Pure: the command line reads the file, prints the differences and sends the catalog to the
// service, which checks it like any other.

import { isObject, listOf, type Loose } from "./loose.ts";
import { type FigureFault, figureFaults, membersOfLiteLlm } from "./litellm.ts";

/** A row of a price file, in LiteLLM's members or in ours. */
interface FileRow {
  readonly isOurs: boolean;
  readonly row: Loose;
}

/** The rows of a price file by the models' ids. */
export type PriceFile = ReadonlyMap<string, FileRow>;

/** A price that an import changes; null for none. */
export interface PriceDifference {
  readonly model: string;
  /** As "inputCentsPerMillionTokens", or "tiers[200000].inputCentsPerMillionTokens" within a tier. */
  readonly member: string;
  readonly before: unknown;
  readonly after: unknown;
}

/** The result of an import. */
export interface PriceImport {
  /** The catalog's rows after it. */
  readonly models: readonly Loose[];
  readonly differences: readonly PriceDifference[];
  /** Ids of the models that were compared with the file or added from it. */
  readonly imported: readonly string[];
  /** Ids that the file does not have. */
  readonly missing: readonly string[];
  /** Ids that the file has without a price of the kind that the row needs. */
  readonly unpriced: readonly string[];
  /** Prices above 0 that the file has as 0: they stay. */
  readonly kept: readonly PriceDifference[];
  /** Figures of the file that are no prices: with one of them nothing may be applied. */
  readonly faults: readonly PriceFault[];
}

/** A figure of a price file that is no price, with its place. */
interface PriceFault extends FigureFault {
  readonly model: string;
}

/** Options of an import. */
interface ImportOptions {
  /** The only models to import, also those that the catalog lacks; null for every model of the catalog. */
  readonly only: readonly string[] | null;
  /** The time of the comparison, ISO 8601. */
  readonly checkedAt: string;
  /** The source of rows in our own format that name none; they may also have a `checkedAt` of their own. */
  readonly source: string;
}

/**
 * Reads LiteLLM's file, or rows of our own format: a list, an object by id, or a document with `models`.
 *
 * @param text JSON
 * @returns null where it is neither
 */
export function readPriceFile(text: string): PriceFile | null {
  const file = parseExactly(text);
  const rows = isObject(file) && Array.isArray(file.models) ? file.models : file;
  const entries = Array.isArray(rows)
    ? rows.map((row) => [isObject(row) ? row.id : undefined, row] as const)
    : isObject(rows)
    ? Object.entries(rows)
    : null;
  if (entries === null) return null;
  const read = new Map<string, FileRow>();
  for (const [id, row] of entries) {
    if (typeof id !== "string" || !isObject(row)) return null;
    read.set(id, { isOurs: isOurs(row), row });
  }
  return read;
}

/** JSON.parse with a reviver that gets the text of a number: TypeScript does not know that yet. */
const parse = JSON.parse as (
  text: string,
  reviver: (name: string, value: unknown, context: { readonly source?: string }) => unknown,
) => unknown;

/** Parses JSON; LiteLLM's prices stay as text, so that no digit is lost. No member of ours has such a name. */
function parseExactly(text: string): unknown {
  return parse(
    text,
    (name, value, { source }) => typeof value === "number" && name.includes("_cost") ? source : value,
  );
}

function isOurs(row: Loose): boolean {
  return Object.keys(row).some((name) => name === "amountMode" || name === "tiers" || PRICE_NAME.test(name));
}

/** The rows of a catalog after an import, and what it changes. */
export function importPrices(
  models: readonly Loose[],
  file: PriceFile,
  { only, checkedAt, source }: ImportOptions,
): PriceImport {
  const known = new Map(models.map((model) => [String(model.id), model]));
  const next = new Map(known);
  const differences: PriceDifference[] = [];
  const imported: string[] = [];
  const missing: string[] = [];
  const unpriced: string[] = [];
  const kept: PriceDifference[] = [];
  const faults: PriceFault[] = [];
  for (const id of new Set(only ?? known.keys())) {
    const found = file.get(id);
    const before = known.get(id) ?? null;
    if (found === undefined) {
      missing.push(id);
      continue;
    }
    const wrong = found.isOurs ? ownFaults(found.row) : figureFaults(found.row);
    faults.push(...wrong.map((fault) => ({ model: id, ...fault })));
    const members = found.isOurs
      ? ownMembers(found.row, before, models)
      : membersOfLiteLlm(found.row, before);
    if (members === null) {
      unpriced.push(id);
      continue;
    }
    const read: Loose = {
      ...before,
      id,
      source: found.isOurs ? source : LITELLM,
      checkedAt,
      ...members,
    };
    const after = before === null ? read : withoutLostPrices(before, read, kept);
    next.set(id, after);
    differences.push(...differencesOf(id, before ?? {}, after));
    imported.push(id);
  }
  return { models: [...next.values()], differences, imported, missing, unpriced, kept, faults };
}

/** The prices of a row of our own format that are no numbers of at least 0, those of its tiers too. */
function ownFaults(row: Loose): FigureFault[] {
  return [...flat(row)].flatMap(([member, value]) =>
    PRICE_NAME.test(member) && !(typeof value === "number" && value >= 0)
      ? [{ member, message: "must be a number of at least 0" }]
      : []
  );
}

const PRICE_NAME = /(?:^|\.)cents|Cents/;

/** The price that a member without a figure has: that of another one. */
const DEFAULTS: Readonly<Record<string, string>> = {
  cachedInputCentsPerMillionTokens: "inputCentsPerMillionTokens",
  cacheWriteCentsPerMillionTokens: "inputCentsPerMillionTokens",
  cacheWrite1hCentsPerMillionTokens: "cacheWriteCentsPerMillionTokens",
  reasoningCentsPerMillionTokens: "outputCentsPerMillionTokens",
};

/** A row after an import, in which no price has become 0 that was above. Files have 0 for what they do not know. */
function withoutLostPrices(before: Loose, after: Loose, kept: PriceDifference[]): Loose {
  const row = withoutLostMembers(
    before,
    after,
    before,
    (member, was) => kept.push({ model: String(after.id), member, before: was, after: 0 }),
  );
  if (!Array.isArray(after.tiers)) return row;
  const tiers = listOf(after, "tiers").map((tier) => {
    const known = listOf(before, "tiers").find((each) => each.aboveInputTokens === tier.aboveInputTokens);
    return withoutLostMembers(known ?? {}, tier, { ...before, ...known }, (member, was) =>
      kept.push({
        model: String(after.id),
        member: `tiers[${tier.aboveInputTokens}].${member}`,
        before: was,
        after: 0,
      }));
  });
  return { ...row, tiers };
}

/** @param priced the members that priced the same work before, to find defaults in */
function withoutLostMembers(
  before: Loose,
  after: Loose,
  priced: Loose,
  tell: (member: string, before: unknown) => void,
): Loose {
  const next: Record<string, unknown> = { ...after };
  for (const [member, value] of Object.entries(after)) {
    if (value !== 0 || !PRICE_NAME.test(member)) continue;
    const was = priceOf(priced, member);
    if (typeof was !== "number" || was <= 0) continue;
    tell(member, was);
    if (before[member] === undefined) delete next[member];
    else next[member] = before[member];
  }
  return next;
}

/** The price that a member has, by its default where it has no figure. */
function priceOf(row: Loose, member: string): unknown {
  const fallback = DEFAULTS[member];
  return row[member] ?? (fallback === undefined ? undefined : priceOf(row, fallback));
}

const LITELLM = "litellm";

/**
 * The members of a row of our own format; null for one of another kind than the row in the catalog. Of an object by id the
 * name is the id, whatever the row says. Aliases are those of the catalog, else those that no other row there has.
 */
function ownMembers(row: Loose, before: Loose | null, models: readonly Loose[]): Loose | null {
  const { id: _id, aliases, ...members } = row;
  const kind = members.amountMode ?? before?.amountMode;
  if (before !== null && before.amountMode !== kind) return null;
  if (!Array.isArray(aliases) || before?.aliases !== undefined) return members;
  const taken = new Set(models.flatMap(({ id, aliases }) => [id, ...Array.isArray(aliases) ? aliases : []]));
  return { ...members, aliases: aliases.filter((alias) => !taken.has(alias)) };
}

function differencesOf(model: string, before: Loose, after: Loose): PriceDifference[] {
  const [old, now] = [flat(before), flat(after)];
  return [...new Set([...old.keys(), ...now.keys()])].flatMap((member) => {
    const [was, is] = [old.get(member) ?? null, now.get(member) ?? null];
    return was === is ? [] : [{ model, member, before: was, after: is }];
  });
}

/** Members that say where a price comes from are no part of it. */
const NOT_COMPARED = new Set(["id", "source", "checkedAt"]);

/** The members of a row by their places; those of a tier by the tier's bound. */
function flat(row: Loose): Map<string, unknown> {
  const members = new Map<string, unknown>();
  for (const [name, value] of Object.entries(row)) {
    if (NOT_COMPARED.has(name)) continue;
    if (name !== "tiers" || !Array.isArray(value)) {
      members.set(name, Array.isArray(value) ? value.join(", ") : value);
      continue;
    }
    for (const tier of value.filter(isObject)) {
      for (const [member, price] of Object.entries(tier)) {
        if (member !== "aboveInputTokens") members.set(`tiers[${tier.aboveInputTokens}].${member}`, price);
      }
    }
  }
  return members;
}
