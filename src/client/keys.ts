// Idempotency keys: each is a random text, so that no two calls have the same.

/** A random key. Pages without a secure context have no `crypto.randomUUID`. */
function newKey(): string {
  const { randomUUID } = crypto as { randomUUID?: () => string };
  if (randomUUID !== undefined) return randomUUID.call(crypto).replaceAll("-", "");
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const PREFIX = /^[\x21-\x7e]{1,50}$/;

/** The keys of one client: 96 random bits, which are asked for once, and a running number. */
export class Keys {
  #prefix = "";
  /** Made with the first key: some platforms have no random numbers before a request. */
  #random = "";
  #number = 0;

  /** Takes what the service wants keys to begin with. A key without it works too, but is looked up. */
  beginWith(prefix: unknown): void {
    this.#prefix = typeof prefix === "string" && PREFIX.test(prefix) ? prefix : "";
  }

  next(): string {
    if (this.#random === "") this.#random = newKey().slice(8);
    return this.#prefix + this.#random + (this.#number++).toString(16).padStart(8, "0");
  }
}
