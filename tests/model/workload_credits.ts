// What a workload does with credits: grants of every kind, revokes, lists and pages of the ledger, and what
// it remembers of the balances that it saw, so that holds ask for events and amounts that balances can pay.

import type { CatalogDocument, Input, ModelReply, ModelRequest, Pack, Unit } from "./document.ts";
import type { Random } from "./random.ts";
import { eventOf, type KnownEvent, rulesOf } from "./workload_inputs.ts";

export interface KnownBalance {
  id: string;
  userId: string;
  pack: Pack;
  unit: Unit | undefined;
  remaining: number;
  expiresAtMs: number | null;
}

interface Shown {
  balanceId: string;
  packItemId?: string | null;
  remaining: number;
  expiresAt: string | null;
}

const HOUR_MS = 60 * 60 * 1000;
const REFS = ["order-1", "order-2", "order-3", "order-é", "x".repeat(200)];

/** Events that the pack of a balance covers, one for each of its rules. */
export function eventsOf({ pack }: KnownBalance): KnownEvent[] {
  return rulesOf(pack).map(eventOf);
}

/** A list of an answer; what costs in credits is none. */
export function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

export class KnownCredits {
  readonly #random: Random;
  readonly #packs: Pack[];
  readonly #balances: KnownBalance[] = [];
  /** Requests for the next pages of ledgers. */
  readonly #pages: Input[] = [];

  constructor(random: Random, catalog: CatalogDocument) {
    this.#random = random;
    this.#packs = catalog.packs ?? [];
  }

  /** Remembers what an answer says about balances and pages. */
  observe({ op, input }: ModelRequest, { data = {} }: ModelReply): void {
    const userId = String(input["userId"]);
    if (op === "grant" || op === "paidGrant") {
      const pack = this.#packOf(String(input["packId"]));
      for (const shown of (data["balances"] ?? []) as Shown[]) {
        this.#see(shown);
        if (!pack || this.#balances.some((each) => each.id === shown.balanceId)) continue;
        const expiresAtMs = shown.expiresAt === null ? null : Date.parse(shown.expiresAt);
        const { balanceId: id, remaining } = shown;
        const unit = pack.unit ?? pack.items.find((item) => item.id === shown.packItemId)?.unit;
        this.#balances.push({ id, userId, pack, unit, remaining, expiresAtMs });
      }
    }
    if (op === "revoke" && data["balanceId"] !== undefined) this.#see(data as unknown as Shown);
    for (const shown of listOf(data["credits"])) this.#see(shown as Shown);
    for (const balanceId of (data["balanceIds"] ?? []) as string[]) {
      this.#see({ balanceId, remaining: 0, expiresAt: null });
    }
    if (op === "ledger" && typeof data["nextCursor"] === "string") {
      this.#pages.push({ ...input, cursor: data["nextCursor"] });
      if (this.#pages.length > 8) this.#pages.shift();
    }
  }

  #see({ balanceId, remaining }: Shown): void {
    const known = this.#balances.find((each) => each.id === balanceId);
    if (known) known.remaining = remaining;
  }

  /** Balances of a user who became an alias belong to another now. */
  merged(from: string, to: string): void {
    for (const balance of this.#balances) if (balance.userId === from) balance.userId = to;
  }

  #packOf(idOrName: string): Pack | undefined {
    return this.#packs.find((pack) => pack.id === idOrName) ??
      this.#packs.find((pack) => pack.name.toLowerCase() === idOrName.toLowerCase());
  }

  balance(id: string): KnownBalance | undefined {
    return this.#balances.find((each) => each.id === id);
  }

  /** Events that a pack of the user's younger balances covers. */
  payable(userId: string, nowMs: number): KnownEvent[] {
    return this.#of(userId)
      .filter(({ expiresAtMs }) => expiresAtMs === null || expiresAtMs > nowMs)
      .flatMap(eventsOf);
  }

  /** What the user's younger balances have left: alone, together with plan rooms, and added up one by one. */
  amounts(userId: string, rooms: number[]): number[] {
    const left = this.#of(userId).map(({ remaining }) => remaining).filter((each) => each > 0);
    let sum = 0;
    const sums = left.map((each) => sum += each);
    const shared = rooms.flatMap((room) => room > 0 ? left.slice(0, 3).map((each) => room + each) : []);
    return [...left, ...sums, ...shared, ...rooms];
  }

  #of(userId: string): KnownBalance[] {
    return this.#balances.filter((each) => each.userId === userId).slice(-8);
  }

  /** To the moment when the next balance expires. */
  toNextExpiry(nowMs: number): number | null {
    const ahead = this.#balances.flatMap(({ expiresAtMs }) =>
      expiresAtMs !== null && expiresAtMs > nowMs && expiresAtMs < nowMs + HOUR_MS
        ? [expiresAtMs - nowMs]
        : []
    );
    return ahead.length > 0 ? Math.min(...ahead) : null;
  }

  grantInput(userId: string, nowMs: number): Input {
    const random = this.#random;
    if (this.#packs.length === 0 || random.chance(0.03)) return { userId, packId: "cpk_unknown" };
    const pack = random.pick(this.#packs.filter((each) => !each.archived || random.chance(0.3)));
    const name = random.pick([pack.name, pack.name.toUpperCase(), pack.name.toLowerCase()]);
    const input: Input = { userId, packId: random.chance(0.3) ? name : pack.id };
    const quantity = this.#quantity(pack);
    if (quantity !== undefined) input["quantity"] = quantity;
    if (random.chance(0.35)) input["externalRef"] = random.pick(REFS);
    const iso = (at: number) => new Date(at).toISOString();
    const kind = random.weighted({ omitted: 52, evergreen: 12, soon: 28, later: 5, now: 1.5, past: 1.5 });
    if (kind === "evergreen") input["expiresAt"] = null;
    if (kind === "soon") {
      input["expiresAt"] = iso(nowMs + random.pick([1, 50, 2000, 2000, 15_000, 60_000, 60_000]));
    }
    if (kind === "later") input["expiresAt"] = iso(nowMs + random.pick([HOUR_MS, 100 * HOUR_MS]));
    if (kind === "now") input["expiresAt"] = iso(nowMs);
    if (kind === "past") input["expiresAt"] = iso(nowMs - random.pick([1, HOUR_MS]));
    if (random.chance(0.3)) input["source"] = random.pick(["purchase", "grant", "refund", "manual"]);
    if (random.chance(0.3)) input["notes"] = random.pick(["a gift", "", "é".repeat(500)]);
    return input;
  }

  /** An amount for a pack without items; anything at all for one with items, which ignores it. */
  #quantity(pack: Pack): unknown {
    const random = this.#random;
    if (pack.items.length > 0) {
      return random.chance(0.7) ? undefined : random.pick([1, 7.5, 0, -3, 1e15, "many", null, { a: 1 }]);
    }
    if (random.chance(0.1)) return random.pick([undefined, null, 0, -1, 0.0000004]);
    return random.pick([1, 2, 3, 0.5, 4.25, 0.1, 10, 2.0000015, random.whole(1, 80) / 10]);
  }

  /** Mostly a young one, maybe revoked before or expired; now and then an unknown one. */
  revokeInput(): Input {
    const random = this.#random;
    const reason = random.chance(0.5) ? { reason: random.pick(["charged back", "é".repeat(500)]) } : {};
    if (this.#balances.length === 0 || random.chance(0.06)) return { balanceId: "crb_unknown", ...reason };
    const young = this.#balances.slice(-12);
    return { balanceId: random.pick(random.chance(0.85) ? young : this.#balances).id, ...reason };
  }

  /** Mostly a young one with a later expiry or none; now and then an earlier or an equal one. */
  extendInput(nowMs: number): Input {
    const random = this.#random;
    const { balanceId, ...reason } = this.revokeInput();
    const known = this.#balances.find(({ id }) => id === balanceId);
    const from = known?.expiresAtMs ?? nowMs;
    const at = random.chance(0.1) ? from : from + random.pick([-HOUR_MS, 1, 15_000, 60_000, HOUR_MS]);
    return { balanceId, expiresAt: random.chance(0.15) ? null : new Date(at).toISOString(), ...reason };
  }

  /** A list of balances; `event` is a concrete name that a filter may use, also as a glob. */
  listInput(userId: string, event: string): Input {
    const random = this.#random;
    const globs = [event, event, `${event.split(".")[0]}.*`, `${event.slice(0, 2)}*`, "*"];
    return {
      userId,
      ...(random.chance(0.5) ? { event: random.pick(globs) } : {}),
      ...(random.chance(0.5) ? { includeExpired: random.chance(0.8) } : {}),
    };
  }

  /** A first page, mostly short, or the page after an earlier one. */
  ledgerInput(userId: string): Input {
    const random = this.#random;
    if (this.#pages.length > 0 && random.chance(0.4)) return { ...random.pick(this.#pages) };
    const input: Input = { userId };
    if (random.chance(0.7)) input["limit"] = random.pick([1, 2, 5, 20, 100, 500]);
    if (random.chance(0.3) && this.#balances.length > 0) {
      const known = random.pick(this.#balances.slice(-20));
      // With another user's balance now and then.
      if (random.chance(0.9)) input["userId"] = known.userId;
      input["balanceId"] = random.chance(0.12) ? "crb_unknown" : known.id;
    }
    return input;
  }
}
