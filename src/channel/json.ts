// JSON of calls. The runtime parses JSON without recursion and writes it with recursion, so a very deeply nested body can
// be read but not written. A node that passes such a call on must not fail when its owner could run it.

/** The JSON text of a value; "null" for a value without one, such as undefined. */
export function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "null";
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return deepJsonOf(value);
  }
}

/** An array or object that is being written. */
interface Open {
  readonly members: Iterator<[string | number, unknown]>;
  readonly isList: boolean;
  isEmpty: boolean;
}

/** Returns the same text without recursion, for a value parsed from JSON. */
function deepJsonOf(root: unknown): string {
  const parts: string[] = [];
  const open: Open[] = [];
  const begin = (value: unknown) => {
    if (typeof value !== "object" || value === null) return parts.push(JSON.stringify(value) ?? "null");
    const isList = Array.isArray(value);
    const members = isList ? value.entries() : Object.entries(value)[Symbol.iterator]();
    parts.push(isList ? "[" : "{");
    return open.push({ members, isList, isEmpty: true });
  };
  begin(root);
  for (let last = open.at(-1); last !== undefined; last = open.at(-1)) {
    const { done, value: member } = last.members.next();
    if (done === true) {
      parts.push(last.isList ? "]" : "}");
      open.pop();
      continue;
    }
    if (!last.isList && member[1] === undefined) continue;
    if (!last.isEmpty) parts.push(",");
    last.isEmpty = false;
    if (!last.isList) parts.push(JSON.stringify(member[0]), ":");
    begin(member[1]);
  }
  return parts.join("");
}
