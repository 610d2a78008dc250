// JSON text with the place of each value, so that what is wrong with a document can be shown where it is. `JSON.parse` says
// what is wrong with a text and not always where.

/** A fault of a text. */
export interface TextFault {
  /** Characters before it. */
  readonly offset: number;
  readonly message: string;
}

/** What a text says. */
export type ReadJson =
  | { readonly fault: TextFault }
  | { readonly value: unknown; readonly places: ReadonlyMap<string, number> };

/** A line and a column, both from 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** Reads a text; places are offsets of values by their paths, such as "plans[0].rank". */
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

/** The place of an offset. */
export function placeOf(text: string, offset: number): Place {
  const before = text.slice(0, offset);
  const start = before.lastIndexOf("\n") + 1;
  return { line: before.split("\n").length, column: offset - start + 1 };
}

/** The offset of the value at a path, or of the innermost value around it that is there. */
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
    if (this.#at < this.#text.length) throw this.#misplaced("nothing may follow the end of the document");
    return value;
  }

  #value(path: string, depth: number): unknown {
    this.#space();
    // A name may hold a dot, or nothing: the first of two that read alike counts.
    if (!this.places.has(path)) this.places.set(path, this.#at);
    if (depth > DEPTH_MAX) throw this.#misplaced("this is nested too deeply");
    const start = this.#text[this.#at];
    if (start === "{") return this.#object(path, depth);
    if (start === "[") return this.#list(path, depth);
    if (start === '"') return this.#string();
    const literal = this.#match(LITERAL);
    if (literal === null) {
      throw this.#misplaced(start === undefined ? "the document ends too early" : "a value is missing here");
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
          this.#text[at] === "}"
            ? "the comma before this is one too many"
            : "a name in double quotes is missing",
        );
      }
      const name = this.#string();
      if (names.has(name)) throw new Misplaced(at, `"${name}" stands here twice`);
      names.add(name);
      this.#space();
      if (!this.#takes(":")) throw this.#misplaced('":" is missing');
      members.push([name, this.#value(path === "" ? name : `${path}.${name}`, depth + 1)]);
      this.#space();
      if (this.#takes("}")) return Object.fromEntries(members);
      if (!this.#takes(",")) throw this.#misplaced('"," or "}" is missing');
    }
  }

  #list(path: string, depth: number): unknown[] {
    const elements: unknown[] = [];
    this.#at += 1;
    this.#space();
    if (this.#takes("]")) return elements;
    while (true) {
      this.#space();
      if (this.#text[this.#at] === "]") throw this.#misplaced("the comma before this is one too many");
      elements.push(this.#value(`${path}[${elements.length}]`, depth + 1));
      this.#space();
      if (this.#takes("]")) return elements;
      if (!this.#takes(",")) throw this.#misplaced('"," or "]" is missing');
    }
  }

  #string(): string {
    const text = this.#match(STRING);
    if (text === null) {
      throw this.#misplaced("this text has no end, or holds what must be written as \\u....");
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
