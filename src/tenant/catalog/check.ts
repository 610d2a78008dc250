// Checks a catalog document as a whole and names each fault with its exact path, and lists what changes between
// two documents. Section 3 of the decisions, "PUT .../catalog".

import { type CatalogInput, catalogSchema } from "./schema.ts";
import { schemaFault } from "../../compose/output.ts";
import { foldName } from "../../domain/plans/catalog.ts";
import { yieldToLoop } from "../../storage/database.ts";

/** A fault of a document: where it is and what is wrong. */
export interface CatalogFault {
  readonly path: string;
  readonly message: string;
}

/** A difference between two documents. */
export interface CatalogChange {
  readonly path: string;
  readonly change: "added" | "changed" | "removed";
  /** Of the innermost thing that has one; a compose type's is its name, that of settings "settings". */
  readonly id: string;
}

/**
 * The document, or every fault in it: those of each part and those between parts, so that one look at the answer is
 * enough to mend the document. Others are served between the compose types, whose schemas take their time.
 */
export async function checkCatalog(
  document: unknown,
): Promise<{ catalog: CatalogInput } | { faults: CatalogFault[] }> {
  const parsed = catalogSchema.safeParse(document);
  const faults = (parsed.error?.issues ?? []).map(({ path, message }) => ({ path: pathText(path), message }));
  const known = new Set(faults.map(({ path }) => path));
  for (const fault of crossFaults(document)) if (!known.has(fault.path)) faults.push(fault);
  // What is compiled here serves when the document is put in force, so it has to be the very objects of the result.
  const types = listOf(looseOf(parsed.data ?? document), "composeTypes");
  for (const [index, { outputSchema }] of types.entries()) {
    const path = `composeTypes[${index}].outputSchema`;
    if (known.has(path) || !isObject(outputSchema)) continue;
    await yieldToLoop();
    const message = schemaFault(outputSchema);
    if (message !== null) faults.push({ path, message });
  }
  return parsed.success && faults.length === 0 ? { catalog: parsed.data } : { faults };
}

/** A path as "plans[0].limits[0].quota". */
export function pathText(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === "number") return `${text}[${step}]`;
    return text === "" ? String(step) : `${text}.${String(step)}`;
  }, "");
}

/** A part of a document whose shape may be wrong: members are looked at one by one. */
type Loose = Readonly<Record<string, unknown>>;

function* crossFaults(document: unknown): Iterable<CatalogFault> {
  const catalog = looseOf(document);
  const [models, plans] = [listOf(catalog, "models"), listOf(catalog, "plans")];
  const [packs, composeTypes] = [listOf(catalog, "packs"), listOf(catalog, "composeTypes")];
  yield* repeated(models.map(({ id }) => id), (index) => `models[${index}].id`);
  yield* repeated(plans.map(({ id }) => id), (index) => `plans[${index}].id`);
  yield* repeated(plans.map(foldedName), (index) => `plans[${index}].name`);
  yield* repeated(packs.map(({ id }) => id), (index) => `packs[${index}].id`);
  yield* repeated(packs.map(foldedName), (index) => `packs[${index}].name`);
  yield* repeated(composeTypes.map(({ name }) => name), (index) => `composeTypes[${index}].name`);
  for (const [index, plan] of plans.entries()) {
    const ids = listOf(plan, "limits").map(({ id }) => id);
    yield* repeated(ids, (limit) => `plans[${index}].limits[${limit}].id`);
  }
  yield* modelFaults(models);
  yield* packFaults(packs);
  yield* composeFaults(composeTypes, models);
}

function looseOf(value: unknown): Loose {
  return isObject(value) ? value : {};
}

function listOf(part: Loose, member: string): Loose[] {
  const list = part[member];
  return Array.isArray(list) ? list.map(looseOf) : [];
}

function foldedName({ name }: Loose): unknown {
  return typeof name === "string" ? foldName(name) : undefined;
}

/** Texts that stand in a list before; what is no text is a fault of its own. */
function* repeated(texts: readonly unknown[], path: (index: number) => string): Iterable<CatalogFault> {
  const seen = new Set<string>();
  for (const [index, text] of texts.entries()) {
    if (typeof text !== "string") continue;
    if (seen.has(text)) yield { path: path(index), message: "must be unique" };
    seen.add(text);
  }
}

const PRICE_MEMBERS = new Map<unknown, string>([
  ["per_token", "inputCentsPerMillionTokens"],
  ["per_call", "centsPerCall"],
  ["per_unit", "centsPerSecond"],
]);

function* modelFaults(models: readonly Loose[]): Iterable<CatalogFault> {
  for (const [index, model] of models.entries()) {
    const member = PRICE_MEMBERS.get(model.amountMode);
    if (member === undefined || model[member] !== undefined) continue;
    yield {
      path: `models[${index}].${member}`,
      message: `is needed when amountMode is ${String(model.amountMode)}`,
    };
  }
}

function* packFaults(packs: readonly Loose[]): Iterable<CatalogFault> {
  const itemIds = new Set<string>();
  for (const [index, pack] of packs.entries()) {
    const items = listOf(pack, "items");
    for (const [item, { id }] of items.entries()) {
      if (typeof id !== "string") continue;
      if (itemIds.has(id)) yield { path: `packs[${index}].items[${item}].id`, message: "must be unique" };
      itemIds.add(id);
    }
    if (!Array.isArray(pack.items) || items.length > 0) continue;
    for (const member of ["unit", "matches"] as const) {
      if (pack[member] === undefined) {
        yield { path: `packs[${index}].${member}`, message: "is needed when the pack has no items" };
      }
    }
  }
}

function* composeFaults(types: readonly Loose[], models: readonly Loose[]): Iterable<CatalogFault> {
  for (const [index, type] of types.entries()) {
    const model = models.find(({ id }) => id === type.model);
    if (typeof type.model === "string" && model?.amountMode !== "per_token") {
      yield { path: `composeTypes[${index}].model`, message: "must be the id of a per_token model" };
    }
    const places = typeof type.prompt === "string" ? placesOf(type.prompt) : [];
    if (places === null) {
      yield {
        path: `composeTypes[${index}].prompt`,
        message: "has a brace that opens or closes no place; write {{ or }} for a brace",
      };
    }
    const sources: readonly unknown[] = Array.isArray(type.dataSources) ? type.dataSources : [];
    for (const place of new Set(places ?? [])) {
      if (!DATA_SOURCES.has(place) || sources.includes(place)) continue;
      yield {
        path: `composeTypes[${index}].prompt`,
        message: `names the data source "${place}", which is not in dataSources`,
      };
    }
  }
}

const DATA_SOURCES = new Set(["user_usage", "user_events", "user_attributes", "subscription", "credits"]);

/** The names of the places of a template, or null where its braces do not pair. */
function placesOf(template: string): string[] | null {
  const names: string[] = [];
  const rest = template.replaceAll(/\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_]*)\}/g, (_, name) => {
    if (name !== undefined) names.push(name);
    return "";
  });
  return /[{}]/.test(rest) ? null : names;
}

/**
 * What changes from one document to another; elements of lists are followed by their id or name.
 *
 * @param id of the innermost thing around that has one
 */
export function diffCatalogs(
  before: unknown,
  after: unknown,
  path: readonly PropertyKey[] = [],
  id = "",
): CatalogChange[] {
  if (before === after) return [];
  const [section] = path;
  const own = id === "" && section !== undefined ? String(section) : id;
  const differs = (change: CatalogChange["change"]) => [{ path: pathText(path), change, id: own }];
  if (before === undefined) return differs("added");
  if (after === undefined) return differs("removed");
  if (Array.isArray(before) && Array.isArray(after) && isNamed(before) && isNamed(after)) {
    return diffLists(before, after, path, own);
  }
  if (isObject(before) && isObject(after)) {
    const members = new Set([...Object.keys(before), ...Object.keys(after)]);
    return [...members].flatMap((name) =>
      diffCatalogs(ownMember(before, name), ownMember(after, name), [...path, name], own)
    );
  }
  return JSON.stringify(before) === JSON.stringify(after) ? [] : differs("changed");
}

function ownMember(object: Loose, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

type Named = Record<string, unknown>;

function diffLists(
  before: Named[],
  after: Named[],
  path: readonly PropertyKey[],
  id: string,
): CatalogChange[] {
  const known = new Map(before.map((element) => [nameOf(element), element]));
  const left = new Set(after.map(nameOf));
  const changes = after.flatMap((element, index) =>
    diffCatalogs(known.get(nameOf(element)), element, [...path, index], String(nameOf(element)))
  );
  for (const [index, element] of before.entries()) {
    if (left.has(nameOf(element))) continue;
    changes.push({ path: pathText([...path, index]), change: "removed", id: String(nameOf(element)) });
  }
  if (changesOrder(before, after)) changes.push({ path: pathText(path), change: "changed", id });
  return changes;
}

/** Whether the elements that both lists have stand in another order. */
function changesOrder(before: readonly Named[], after: readonly Named[]): boolean {
  const shared = (list: readonly Named[], other: readonly Named[]) => {
    const names = new Set(other.map(nameOf));
    return list.map(nameOf).filter((name) => names.has(name));
  };
  const order = shared(after, before);
  return shared(before, after).some((name, index) => name !== order[index]);
}

function nameOf(element: Named): unknown {
  return element.id ?? element.name;
}

function isNamed(list: unknown[]): list is Named[] {
  return list.every((element) => isObject(element) && nameOf(element) !== undefined);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
