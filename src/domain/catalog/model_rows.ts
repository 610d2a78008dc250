// The price rows in force, found by the name of a model: a row's id or one of its aliases first, then the longest pattern
// among the aliases that covers the name.

import type { ModelDocument, PriceRow } from "./price_row.ts";

/** Finds the price row of a model. */
export class ModelRows {
  readonly #named = new Map<string, PriceRow>();
  readonly #byPrefix = new Map<string, PriceRow>();
  /** The lengths of the patterns, the longest first. */
  readonly #lengths: readonly number[];

  /** @param rows the row of each document */
  constructor(documents: readonly ModelDocument[], rows: (document: ModelDocument) => PriceRow) {
    for (const document of documents) {
      const row = rows(document);
      this.#named.set(document.id, row);
      for (const alias of document.aliases ?? []) {
        if (alias.endsWith("*")) this.#byPrefix.set(alias.slice(0, -1), row);
        else this.#named.set(alias, row);
      }
    }
    const lengths = new Set([...this.#byPrefix.keys()].map(({ length }) => length));
    this.#lengths = [...lengths].sort((a, b) => b - a);
  }

  /** The row that prices a model of this name. */
  get(name: string): PriceRow | undefined {
    const row = this.#named.get(name);
    if (row !== undefined) return row;
    for (const length of this.#lengths) {
      if (length > name.length) continue;
      const covered = this.#byPrefix.get(name.slice(0, length));
      if (covered !== undefined) return covered;
    }
    return undefined;
  }
}
