// Imports prices of models into a catalog: what a price file says, what that changes in the rows that the catalog has,
// and the rows after it. Pure: the command line reads the file, prints the differences and sends the catalog to the
// service, which checks it like any other.

import { isObject, type Loose } from "./loose.ts";
import { membersOfLiteLlm } from "./litellm.ts";

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
}

/** What goes with an import. */
export interface ImportOptions {
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
  return Object.keys(row).some((name) =>
    name === "amountMode" || name === "tiers" || /^cents|Cents/.test(name)
  );
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
  for (const id of new Set(only ?? known.keys())) {
    const found = file.get(id);
    const before = known.get(id) ?? null;
    if (found === undefined) {
      missing.push(id);
      continue;
    }
    const members = found.isOurs ? withoutId(found.row) : membersOfLiteLlm(found.row, before);
    if (members === null) {
      unpriced.push(id);
      continue;
    }
    const after: Loose = {
      ...before,
      id,
      source: found.isOurs ? source : LITELLM,
      checkedAt,
      ...members,
    };
    next.set(id, after);
    differences.push(...differencesOf(id, before ?? {}, after));
    imported.push(id);
  }
  return { models: [...next.values()], differences, imported, missing, unpriced };
}

const LITELLM = "litellm";

/** Of an object by id the name is the id, whatever the row says. */
function withoutId({ id: _id, ...members }: Loose): Loose {
  return members;
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
      members.set(name, value);
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
