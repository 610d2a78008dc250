// Lists the differences between two catalog documents.

import type { CatalogDocument } from "../../domain/catalog/catalog.ts";
import { isObject, type Loose, pathText } from "./loose.ts";

/** A difference between two documents. */
export interface CatalogChange {
  readonly path: string;
  /** Of the innermost plan, limit group, model, pack, item or compose type; else the part's name, "settings". */
  readonly id: string;
  readonly change: "added" | "changed" | "removed";
}

/** What changes from one document to another; elements of lists are followed by their id or name. */
export function diffCatalogs(before: unknown, after: unknown): CatalogChange[] {
  return diff(before, after, { steps: [], id: null });
}

/** The ids of plans that a new document changes or removes. */
export function changedPlans(before: CatalogDocument, after: CatalogDocument): string[] {
  const next = new Map((after.plans ?? []).map((plan) => [plan.id, plan]));
  return (before.plans ?? []).filter((plan) => diffCatalogs(plan, next.get(plan.id)).length > 0)
    .map(({ id }) => id);
}

/** Where a value stands, and what it belongs to. */
interface Place {
  readonly steps: readonly PropertyKey[];
  readonly id: string | null;
}

function changeAt({ steps, id }: Place, change: CatalogChange["change"]): CatalogChange {
  return { path: pathText(steps), id: id ?? String(steps[0] ?? ""), change };
}

function diff(before: unknown, after: unknown, place: Place): CatalogChange[] {
  if (before === after) return [];
  if (before === undefined) return [changeAt(place, "added")];
  if (after === undefined) return [changeAt(place, "removed")];
  if (Array.isArray(before) && Array.isArray(after) && isNamed(before) && isNamed(after)) {
    return diffLists(before, after, place);
  }
  if (isObject(before) && isObject(after)) {
    const members = new Set([...Object.keys(before), ...Object.keys(after)]);
    return [...members].flatMap((name) =>
      diff(ownNode(before, name), ownNode(after, name), { ...place, steps: [...place.steps, name] })
    );
  }
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  return [changeAt(place, "changed")];
}

function ownNode(object: Loose, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

type Named = Record<string, unknown>;

function diffLists(before: Named[], after: Named[], place: Place): CatalogChange[] {
  const known = new Map(before.map((element) => [nameOf(element), element]));
  const left = new Set(after.map(nameOf));
  const changes = after.flatMap((element, index) =>
    diff(known.get(nameOf(element)), element, elementOf(place, index, element))
  );
  for (const [index, element] of before.entries()) {
    if (!left.has(nameOf(element))) changes.push(changeAt(elementOf(place, index, element), "removed"));
  }
  if (changesOrder(before, after)) changes.push(changeAt(place, "changed"));
  return changes;
}

/** The place of an element. Inside an output schema, which may have lists of its own, the compose type counts. */
function elementOf({ steps, id }: Place, index: number, element: Named): Place {
  const isOwn = steps.includes("outputSchema");
  return { steps: [...steps, index], id: isOwn ? id : String(nameOf(element)) };
}

/** Whether the elements that both lists have are in another order. */
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
