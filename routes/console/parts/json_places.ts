// Parses JSON and keeps the place of each value, so that errors in a document can be shown at their lines. `JSON.parse`
// doesn't always say where an error is.

/** A syntax error. */
interface TextFault {
  /** The number of characters before it. */
  readonly offset: number;
  readonly message: string;
}

/** A parsed text, or its first syntax error. */
type ReadJson =
  | { readonly fault: TextFault }
  | { readonly value: unknown; readonly places: ReadonlyMap<string, number> };

/** A line and a column, counted from 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** Parses a text. `places` has the offset of each value by its path, such as "plans[0].rank". */
export function readJson(text: string): ReadJson {
  const reader = new Reader(text);
  try {
    const value = reader.document();
    return { value, places: reader.places };
  } catch (error) {
    if (error instanceof Misplaced) return { fault: { offset: error.offset, message: error.message } };
    throw error;
  }
}

/** The line and column of an offset. */
export function placeOf(text: string, offset: number): Place {
  const before = text.slice(0, offset);
  const start = before.lastIndexOf("\n") + 1;
  return { line: before.split("\n").length, column: offset - start + 1 };
}

/** The offset of the value at a path; where it is missing, of the innermost value that would contain it. */
export function offsetAt(places: ReadonlyMap<string, number>, path: string): number {
  for (let part = path;;) {
    const offset = places.get(part);
    if (offset !== undefined) return offset;
    const cut = Math.max(part.lastIndexOf("."), part.lastIndexOf("["));
    if (cut <= 0) return places.get("") ?? 0;
    part = part.slice(0, cut);
  }
}

class Misplaced extends Error {
  readonly offset: number;

  constructor(offset: number, message: string) {
    super(message);
    this.offset = offset;
  }
}

const DEPTH_MAX = 200;
const LITERAL = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
const STRING = /"(?:[^"\\\p{Cc}]|[\u007f-\u009f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/uy;

class Reader {
  readonly places = new Map<string, number>();
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  document(): unknown {
    const value = this.#value("", 0);
    this.#space();
    if (this.#at < this.#text.length) throw this.#misplaced("unexpected text after the end of the document");
    return value;
  }

  #value(path: string, depth: number): unknown {
    this.#space();
    // Names may contain dots or be empty: of two equal paths the first counts.
    if (!this.places.has(path)) this.places.set(path, this.#at);
    if (depth > DEPTH_MAX) throw this.#misplaced("nested too deeply");
    const start = this.#text[this.#at];
    if (start === "{") return this.#object(path, depth);
    if (start === "[") return this.#list(path, depth);
    if (start === '"') return this.#string();
    const literal = this.#match(LITERAL);
    if (literal === null) {
      throw this.#misplaced(start === undefined ? "unexpected end of the document" : "missing value");
    }
    return JSON.parse(literal);
  }

  #object(path: string, depth: number): Record<string, unknown> {
    const members: [string, unknown][] = [];
    const names = new Set<string>();
    this.#at += 1;
    this.#space();
    if (this.#takes("}")) return {};
    while (true) {
      this.#space();
      const at = this.#at;
      if (this.#text[at] !== '"') {
        throw this.#misplaced(
          this.#text[at] === "}" ? "trailing comma" : "missing name in double quotes",
        );
      }
      const name = this.#string();
      if (names.has(name)) throw new Misplaced(at, `duplicate name "${name}"`);
      names.add(name);
      this.#space();
      if (!this.#takes(":")) throw this.#misplaced('missing ":"');
      members.push([name, this.#value(path === "" ? name : `${path}.${name}`, depth + 1)]);
      this.#space();
      if (this.#takes("}")) return Object.fromEntries(members);
      if (!this.#takes(",")) throw this.#misplaced('missing "," or "}"');
    }
  }

  #list(path: string, depth: number): unknown[] {
    const elements: unknown[] = [];
    this.#at += 1;
    this.#space();
    if (this.#takes("]")) return elements;
    while (true) {
      this.#space();
      if (this.#text[this.#at] === "]") throw this.#misplaced("trailing comma");
      elements.push(this.#value(`${path}[${elements.length}]`, depth + 1));
      this.#space();
      if (this.#takes("]")) return elements;
      if (!this.#takes(",")) throw this.#misplaced('missing "," or "]"');
    }
  }

  #string(): string {
    const text = this.#match(STRING);
    if (text === null) {
      throw this.#misplaced("unterminated string, or a character that must be escaped");
    }
    return JSON.parse(text) as string;
  }

  #match(pattern: RegExp): string | null {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0] ?? null;
    if (found !== null) this.#at += found.length;
    return found;
  }

  #takes(sign: string): boolean {
    const isThere = this.#text[this.#at] === sign;
    if (isThere) this.#at += 1;
    return isThere;
  }

  #space(): void {
    while (" \t\r\n".includes(this.#text[this.#at] ?? "-")) this.#at += 1;
  }

  #misplaced(message: string): Misplaced {
    return new Misplaced(this.#at, message);
  }
}
