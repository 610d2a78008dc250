// Wrong tokens of console and admin API, counted together: so many a minute from one address, and from all. A right token
// always passes, so nobody can lock its owner out.

import type { AuditWorld } from "../../src/audit/audit.ts";
import { FailedSignIns } from "../../src/audit/failed_sign_ins.ts";
import { WRONG_TOKEN_COUNTS } from "../../src/process/counts/sent_counts.ts";
import { GUESS_LIMITS } from "../../src/process/sent_limits.ts";

/** A presented token that is not known to be right. */
export interface Guess {
  readonly address: string;
  readonly at: number;
  /** Whole seconds until a wrong token of this address is looked up again; 0: this one is. */
  readonly waitS: number;
}

/** The wrong tokens that a process got. */
export class Guesses {
  /** Wrong tokens of the last minute, without those above a limit. */
  #wrong: Guess[] = [];
  readonly #entries = new FailedSignIns();

  /** Counts a token as wrong, before anything of it is read: many at once must not get around the limit. */
  begin(address: string, now: number): Guess {
    const { withinMs, perAddressMax, inAllMax } = GUESS_LIMITS;
    this.#wrong = this.#wrong.filter(({ at }) => at > now - withinMs);
    const own = this.#wrong.filter((guess) => guess.address === address);
    const blocking = own.at(-perAddressMax) ?? this.#wrong.at(-inAllMax);
    const waitS = blocking === undefined ? 0 : Math.max(Math.ceil((blocking.at + withinMs - now) / 1000), 1);
    const guess = { address, at: now, waitS };
    if (waitS === 0) this.#wrong.push(guess);
    return guess;
  }

  /** Takes a count back: the token was right, or there was none. */
  forgive(guess: Guess): void {
    this.#wrong = this.#wrong.filter((other) => other !== guess);
  }

  /** Writes a wrong token into the audit log. */
  async record(world: AuditWorld, { address, waitS }: Guess, via: "console" | "api"): Promise<void> {
    WRONG_TOKEN_COUNTS[waitS === 0 ? "refused" : "limited"] += 1;
    if (waitS === 0) await this.#entries.add(world, address, via);
    else this.#entries.addLater(world, address, via);
  }
}

/** The address at the other end of a connection; behind a proxy, that of the proxy. */
export function addressOf(env: unknown): string {
  const { remoteAddr } = (env ?? {}) as { remoteAddr?: { hostname?: string } };
  return remoteAddr?.hostname ?? "";
}
