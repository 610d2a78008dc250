// The limit of sign-in attempts: ten wrong tokens a minute from one address, a hundred from all. Signed-in people are not
// limited.

const MINUTE_MS = 60_000;
const PER_ADDRESS_MAX = 10;
const IN_ALL_MAX = 100;

/** The wrong tokens of the last minute. */
export class Attempts {
  #failures: { readonly address: string; readonly at: number }[] = [];

  /** Seconds until an address may try again; 0 for now. */
  waitS(address: string, now: number): number {
    this.#failures = this.#failures.filter(({ at }) => at > now - MINUTE_MS);
    const own = this.#failures.filter((failure) => failure.address === address);
    const blocking = own.length >= PER_ADDRESS_MAX
      ? own[own.length - PER_ADDRESS_MAX]
      : this.#failures.length >= IN_ALL_MAX
      ? this.#failures[this.#failures.length - IN_ALL_MAX]
      : undefined;
    return blocking === undefined ? 0 : Math.max(Math.ceil((blocking.at + MINUTE_MS - now) / 1000), 1);
  }

  /** Counts a wrong token. */
  failed(address: string, now: number): void {
    this.#failures.push({ address, at: now });
  }
}
