// A map that is a list while it has few entries. Most users have no open hold or a few, and each call adds one and removes one:
// a list does that without memory of its own, where a map makes a new table every few calls.

const LISTED_MAX = 8;

/** Values by key, in the order in which the keys came. */
export class SmallMap<Value> {
  /** Null as long as the lists have all entries; then they have none. */
  #map: Map<string, Value> | null = null;
  #keys: string[] = NO_KEYS;
  #values: Value[] = [];

  get size(): number {
    return this.#map === null ? this.#keys.length : this.#map.size;
  }

  get(key: string): Value | undefined {
    return this.#map === null ? this.#values[this.#keys.indexOf(key)] : this.#map.get(key);
  }

  has(key: string): boolean {
    return this.#map === null ? this.#keys.includes(key) : this.#map.has(key);
  }

  set(key: string, value: Value): void {
    if (this.#map !== null) {
      this.#map.set(key, value);
      return;
    }
    const place = this.#keys.indexOf(key);
    const count = this.#keys.length;
    if (place >= 0) this.#values[place] = value;
    else if (this.#keys === NO_KEYS) {
      // Exactly as long as needed: a list that grows takes room for seventeen.
      this.#keys = [key];
      this.#values = [value];
    } else if (count < LISTED_MAX) {
      this.#keys.push(key);
      this.#values.push(value);
    } else {
      this.#map = new Map(this.#keys.map((known, at) => [known, this.#values[at] as Value]));
      this.#map.set(key, value);
      this.#keys = NO_KEYS;
      this.#values = [];
    }
  }

  delete(key: string): void {
    if (this.#map !== null) {
      this.#map.delete(key);
      if (this.#map.size === 0) this.#map = null;
      return;
    }
    const place = this.#keys.indexOf(key);
    if (place < 0) return;
    if (place === this.#keys.length - 1) {
      this.#keys.pop();
      this.#values.pop();
    } else {
      this.#keys.splice(place, 1);
      this.#values.splice(place, 1);
    }
  }

  /** The keys. No entry may be removed while they are read. */
  keys(): Iterable<string> {
    return this.#map === null ? this.#keys : this.#map.keys();
  }

  values(): Iterable<Value> {
    return this.#map === null ? this.#values : this.#map.values();
  }
}

/** Shared by all empty maps, and never changed. */
const NO_KEYS: string[] = [];
