// Counts of alike things in memory until they are written: one row for each kind, by part, within a bound for all parts and
// one for each. What needs another row beyond a bound is not counted.

/** How rows of one kind of thing are counted. */
interface CountedRules<Row> {
  /** Makes a text that is equal for rows of alike things of one part. */
  readonly kindOf: (row: Row) => string;
  /** Adds up two rows of alike things. */
  readonly addUp: (row: Row, other: Row) => Row;
  /** Rows of all parts. */
  readonly rowsMax: number;
  /** Rows of one part; by default as many as of all. */
  readonly partRowsMax?: number;
  /** Receives the number of things that were not counted. */
  readonly onLost: (count: number) => void;
}

/** Rows in memory by part, such as a realm. */
export class CountedRows<Part, Row extends { readonly count: number }> {
  readonly #rules: CountedRules<Row>;
  readonly #byPart = new Map<Part, Map<string, Row>>();
  #size = 0;

  constructor(rules: CountedRules<Row>) {
    this.#rules = rules;
  }

  get size(): number {
    return this.#size;
  }

  get parts(): Part[] {
    return [...this.#byPart.keys()];
  }

  sizeOf(part: Part): number {
    return this.#byPart.get(part)?.size ?? 0;
  }

  add(part: Part, row: Row): void {
    const { kindOf, addUp, rowsMax, partRowsMax = rowsMax, onLost } = this.#rules;
    let rows = this.#byPart.get(part);
    const kind = kindOf(row);
    const known = rows?.get(kind);
    if (rows !== undefined && known !== undefined) rows.set(kind, addUp(known, row));
    else if (this.#size >= rowsMax || (rows?.size ?? 0) >= partRowsMax) onLost(row.count);
    else {
      if (rows === undefined) this.#byPart.set(part, rows = new Map());
      rows.set(kind, row);
      this.#size += 1;
    }
  }

  /** Removes the rows of some parts and returns them. */
  take(parts: readonly Part[] = this.parts): { readonly part: Part; readonly rows: Row[] }[] {
    return parts.flatMap((part) => {
      const rows = this.#byPart.get(part);
      if (rows === undefined) return [];
      this.#byPart.delete(part);
      this.#size -= rows.size;
      return [{ part, rows: [...rows.values()] }];
    });
  }

  clear(): void {
    this.#byPart.clear();
    this.#size = 0;
  }
}

/** How many things rows count. */
export function countOf(rows: readonly { readonly count: number }[]): number {
  return rows.reduce((sum, { count }) => sum + count, 0);
}
