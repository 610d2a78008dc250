// How often somebody may try to sign in: ten wrong tokens a minute from one address, a hundred in all. People who are
// signed in are not counted.

const MINUTE_MS = 60_000;
const FROM_ONE = 10;
const IN_ALL = 100;

/** Wrong tokens of the last minute. */
export class Attempts {
  #failures: { readonly address: string; readonly at: number }[] = [];

  /** Seconds until the next attempt from an address may be made; 0 for now. */
  waitS(address: string, now: number): number {
    this.#failures = this.#failures.filter(({ at }) => at > now - MINUTE_MS);
    const own = this.#failures.filter((failure) => failure.address === address);
    const blocking = own.length >= FROM_ONE
      ? own[own.length - FROM_ONE]
      : this.#failures.length >= IN_ALL
      ? this.#failures[this.#failures.length - IN_ALL]
      : undefined;
    return blocking === undefined ? 0 : Math.max(Math.ceil((blocking.at + MINUTE_MS - now) / 1000), 1);
  }

  /** Counts a wrong token. */
  failed(address: string, now: number): void {
    this.#failures.push({ address, at: now });
  }
}
