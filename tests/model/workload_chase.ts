// Short stories about one hold that took credits, which are too rare by chance alone: hold what a grant has
// just brought, look into the ledger for what a hold took, revoke a balance of it or let one expire, and
// settle it with more, less or the same.

import type { Input, ModelReply, ModelRequest } from "./document.ts";
import type { Random } from "./random.ts";
import { MEMBERS } from "./workload_inputs.ts";
import { eventsOf, type KnownBalance, type KnownCredits, listOf } from "./workload_credits.ts";

/** A request that is to come next, at a moment or at once. */
interface Planned {
  request: ModelRequest;
  atMs?: number;
}

/** The hold of the current story. */
interface Hold {
  id: string;
  expiresAtMs: number;
}

interface Entry {
  balanceId: string;
  reservationId: string | null;
  reason: string;
  delta: number;
}

/** The share of allowed reserves that are followed. */
const FOLLOWED = 0.1;
const SOON_MS = 2 * 60 * 1000;

export class CreditChase {
  readonly #random: Random;
  readonly #credits: KnownCredits;
  readonly #rooms: (userId: string) => number[];
  #nowMs = 0;
  #follow = false;
  #hold: Hold | null = null;
  #planned: Planned[] = [];

  /** @param rooms What the plan of a user has left, as far as known. */
  constructor(random: Random, credits: KnownCredits, rooms: (userId: string) => number[]) {
    this.#random = random;
    this.#credits = credits;
    this.#rooms = rooms;
  }

  /** The next request of the current story, with how far to move the clock before it. */
  next(nowMs: number): { advanceMs: number; request: ModelRequest } | null {
    this.#nowMs = nowMs;
    const planned = this.#planned.shift();
    if (!planned) return null;
    return { advanceMs: Math.max(0, (planned.atMs ?? nowMs) - nowMs), request: planned.request };
  }

  observe({ op, input }: ModelRequest, { data = {} }: ModelReply): void {
    if (this.#planned.length > 0) return;
    const follow = this.#follow;
    this.#follow = false;
    if (op === "grant" && typeof data["balanceId"] === "string") {
      this.#begin(this.#credits.balance(data["balanceId"]));
    } else if (op === "reserve" && data["allowed"] === true) {
      const userId = String(input["userId"]);
      this.#hold = null;
      if (!follow && !this.#random.chance(FOLLOWED)) return;
      if (this.#credits.amounts(userId, []).length === 0) return;
      this.#hold = {
        id: String(data["reservationId"]),
        expiresAtMs: Date.parse(String(data["expiresAt"])),
      };
      this.#planned = [{ request: { op: "ledger", input: { userId, limit: 6 } } }];
    } else if (op === "ledger" && this.#hold) {
      const entries = listOf(data["entries"]) as Entry[];
      const { id } = this.#hold;
      const held = entries.filter((each) => each.reservationId === id && each.reason === "reservation_held");
      if (held.length > 0) this.#planned = this.#story(this.#hold, this.#random.pick(held));
      this.#hold = null;
    }
  }

  /** Holds a part of a new balance, mostly of a balance that expires soon, for longer than it lives. */
  #begin(balance: KnownBalance | undefined): void {
    const random = this.#random;
    if (!balance || !balance.unit) return;
    const isShort = balance.expiresAtMs !== null && balance.expiresAtMs < this.#nowMs + SOON_MS;
    if (!random.chance(isShort ? 0.7 : 0.08)) return;
    const room = Math.max(0, random.pick([0, ...this.#rooms(balance.userId)]));
    const need = room + balance.remaining * random.pick([1, 0.5, 0.2]);
    const input = {
      ...this.#asking(balance),
      [MEMBERS[balance.unit]]: Math.max(0.1, Number(need.toFixed(6))),
      ...(random.chance(0.7) ? { ttlSeconds: 3600 } : {}),
    };
    this.#planned = [{ request: { op: "reserve", input } }];
    this.#follow = true;
  }

  #story(hold: Hold, { balanceId, delta }: Entry): Planned[] {
    const random = this.#random;
    const balance = this.#credits.balance(balanceId);
    const story: Planned[] = [];
    const end = balance?.expiresAtMs ?? null;
    if (end !== null && end < hold.expiresAtMs && random.chance(0.8)) {
      story.push({ request: { op: "credits", input: { userId: balance?.userId } }, atMs: end });
    } else if (random.chance(0.3) && balance) {
      story.push({ request: { op: "revoke", input: { balanceId, reason: "while held" } } });
    }
    if (balance && random.chance(0.35)) {
      story.push({ request: { op: "canUse", input: this.#asking(balance) } });
    }
    const settle = this.#settling(hold, balance, -delta);
    story.push(random.chance(0.12) ? { ...settle, atMs: hold.expiresAtMs } : settle);
    return story;
  }

  #asking(balance: KnownBalance): Input {
    return { userId: balance.userId, ...this.#random.pick(eventsOf(balance)) };
  }

  #settling({ id }: Hold, balance: KnownBalance | undefined, taken: number): Planned {
    const random = this.#random;
    const reservationId = id;
    const commit = (input: Input): Planned => ({
      request: { op: "commit", input: { reservationId, ...input } },
    });
    const unit = balance?.unit ?? "count";
    switch (random.weighted({ release: 20, same: 10, less: 30, more: 40 })) {
      case "release":
        return { request: { op: "release", input: { reservationId } } };
      case "same":
        return commit({});
      case "less":
        return commit({ actual: { [unit]: random.pick([0, 0.1, 1, Number((taken / 2).toFixed(6))]) } });
      case "more": {
        const amounts = this.#credits.amounts(balance?.userId ?? "", [1]);
        const more = random.pick([0.5, 1, 2, 1000, ...amounts]);
        return commit({ extra: { [unit]: Number(more.toFixed(6)) } });
      }
    }
  }
}
