// Shares as the model keeps them: a list of everything that took something of them. A share is added up anew for each
// question, so there is no sum that could be forgotten.

/** A hold or an event of a member, at one group of one account. */
interface Taking {
  readonly id: string;
  readonly member: string;
  readonly account: string;
  readonly group: string;
  /** The window's start. */
  readonly window: number;
  /** How many resets the account's group had had in this window. */
  readonly generation: number;
  amount: number;
  /** From when on it counts no more; null for an event. */
  lapsesAt: number | null;
}

/** Every taking of every member. */
export class ModelShares {
  readonly #takings: Taking[] = [];
  readonly #generations = new Map<string, number>();

  /** Adds what a call takes, at each account that takes part. */
  take(
    id: string,
    member: string,
    parts: readonly { readonly account: string; readonly group: string; readonly window: number }[],
    amount: number,
    lapsesAt: number | null = null,
  ): void {
    for (const part of parts) {
      this.#takings.push({ id, member, ...part, generation: this.#generation(part), amount, lapsesAt });
    }
  }

  /** Makes a hold an event of a final amount, or nothing. */
  settle(id: string, amount: number): void {
    for (const taking of this.#takings) {
      if (taking.id !== id) continue;
      taking.amount = amount;
      taking.lapsesAt = null;
    }
  }

  /** Clears the shares of every member in a group and window. */
  reset(part: { readonly account: string; readonly group: string; readonly window: number }): void {
    this.#generations.set(nameOf(part), this.#generation(part) + 1);
  }

  /** What a member used of a group and window at a moment. */
  count(
    member: string,
    part: { readonly account: string; readonly group: string; readonly window: number },
    now: number,
  ): number {
    const generation = this.#generation(part);
    return this.#takings.filter((taking) =>
      taking.member === member && nameOf(taking) === nameOf(part) && taking.generation === generation &&
      (taking.lapsesAt === null || taking.lapsesAt > now)
    ).reduce((sum, { amount }) => sum + amount, 0);
  }

  #generation(part: { readonly account: string; readonly group: string; readonly window: number }): number {
    return this.#generations.get(nameOf(part)) ?? 0;
  }
}

function nameOf(
  { account, group, window }: { readonly account: string; readonly group: string; readonly window: number },
): string {
  return JSON.stringify([account, group, window]);
}
