// Reads values of unknown shape: any server may have written them, so each member may be missing.

type Loose = Readonly<Record<string, unknown>>;

/** Returns the members of an object; of any other value none. */
export function looseOf(value: unknown): Loose {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value as Loose : {};
}

/** Returns a list; of any other value an empty one. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Whether there is anything in a text, a list or an object. */
export function isFilled(value: unknown): boolean {
  if (typeof value === "string") return value !== "";
  return typeof value === "object" && value !== null && Object.keys(value).length > 0;
}

/** Parses JSON; undefined for any other text. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
