// Looking into a document whose shape may be wrong, one member at a time, and naming places in it.

/** A part of a document whose shape may be wrong. */
export type Loose = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value as an object; an empty one when it is not an object. */
export function looseOf(value: unknown): Loose {
  return isObject(value) ? value : {};
}

/** The elements of a member that is a list; empty when it is not a list. */
export function listOf(part: Loose, member: string): Loose[] {
  const list = part[member];
  return Array.isArray(list) ? list.map(looseOf) : [];
}

/** A path as "plans[0].limits[0].quota". */
export function pathText(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === "number") return `${text}[${step}]`;
    return text === "" ? String(step) : `${text}.${String(step)}`;
  }, "");
}

/** The value at a path, or undefined. */
export function valueAt(document: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((value, step) => {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) return undefined;
    return (value as Record<PropertyKey, unknown>)[step];
  }, document);
}
