// Room in memory for the texts that callers give to holds: metadata and prompts. A user and an app have shares of it. What
// finds no room stays in the tables alone, and is read when the hold is settled.

/** Bounds in bytes, at two for each character, the most that one takes. */
interface TextBounds {
  readonly textBytesMax: number;
  readonly textBytesOfAppMax: number;
  readonly textBytesOfUserMax: number;
}

const UNBOUNDED: TextBounds = {
  textBytesMax: Infinity,
  textBytesOfAppMax: Infinity,
  textBytesOfUserMax: Infinity,
};

/** What names the app of a realm; realms of one app share their room. */
export type AppOfRealm = (realm: number) => string | number;

/** The texts of all holds in memory, in bytes. Each user's book knows its own. */
export class TextRoom {
  readonly #bounds: TextBounds;
  readonly #appOf: AppOfRealm;
  /** Names are asked for once: what was taken under one is given back under the same. */
  readonly #apps = new Map<number, string | number>();
  readonly #byApp = new Map<string | number, number>();
  #bytes = 0;

  constructor(bounds: TextBounds = UNBOUNDED, appOf: AppOfRealm = (realm) => realm) {
    this.#bounds = bounds;
    this.#appOf = appOf;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** The bytes of the app that has most. */
  get bytesOfAppMost(): number {
    return Math.max(0, ...this.#byApp.values());
  }

  /**
   * Takes room for a text; false if there is none.
   *
   * @param ofUser what the user has already
   */
  take(realm: number, ofUser: number, bytes: number): boolean {
    const { textBytesMax, textBytesOfAppMax, textBytesOfUserMax } = this.#bounds;
    const app = this.#app(realm);
    const ofApp = this.#byApp.get(app) ?? 0;
    const isFull = ofUser + bytes > textBytesOfUserMax || ofApp + bytes > textBytesOfAppMax ||
      this.#bytes + bytes > textBytesMax;
    if (isFull) return false;
    this.#bytes += bytes;
    this.#byApp.set(app, ofApp + bytes);
    return true;
  }

  /** Gives room back. */
  give(realm: number, bytes: number): void {
    const app = this.#app(realm);
    const left = (this.#byApp.get(app) ?? 0) - bytes;
    this.#bytes -= bytes;
    if (left === 0) this.#byApp.delete(app);
    else this.#byApp.set(app, left);
  }

  #app(realm: number): string | number {
    let app = this.#apps.get(realm);
    if (app === undefined) this.#apps.set(realm, app = this.#appOf(realm));
    return app;
  }
}

/** The bytes of a hold's texts. */
export function textBytes({ metadata, prompt }: CallerTexts): number {
  return 2 * ((metadata?.length ?? 0) + (prompt?.length ?? 0));
}

/** The texts that a caller gave to a hold. */
export interface CallerTexts {
  /** As JSON text. */
  readonly metadata: string | null;
  readonly prompt: string | null;
}
