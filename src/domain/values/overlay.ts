// An overlay: new rows over old ones, by key. Most decisions touch two or three rows, so a few are kept in plain arrays,
// which is fastest. A map is made only when there are many, as when a thousand holds lapse at once.

const LISTED_MAX = 8;

/** New values by key, in the order in which the keys came. */
export class Overlay<Row> {
  /** Made with their first elements: an empty array that grows takes room for seventeen. */
  readonly keys: string[];
  readonly rows: Row[];
  #places: Map<string, number> | null = null;

  constructor(key: string, row: Row) {
    this.keys = [key];
    this.rows = [row];
  }

  get(key: string): Row | undefined {
    const place = this.#placeOf(key);
    return place < 0 ? undefined : this.rows[place];
  }

  set(key: string, row: Row): void {
    const known = this.#placeOf(key);
    if (known >= 0) {
      this.rows[known] = row;
      return;
    }
    this.keys.push(key);
    const count = this.rows.push(row);
    if (this.#places !== null) this.#places.set(key, count - 1);
    else if (count > LISTED_MAX) this.#places = new Map(this.keys.map((name, place) => [name, place]));
  }

  #placeOf(key: string): number {
    return this.#places === null ? this.keys.indexOf(key) : this.#places.get(key) ?? -1;
  }
}

/** Sets a row of an overlay, which is made with its first row. */
export function over<Row>(overlay: Overlay<Row> | null, key: string, row: Row): Overlay<Row> {
  if (overlay === null) return new Overlay(key, row);
  overlay.set(key, row);
  return overlay;
}
