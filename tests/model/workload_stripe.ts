// A workload's payment provider: reports of subscriptions in every state, older messages after newer ones, paid
// grants, and refunds of credits that were granted, spent, revoked or refunded before.

import type { CatalogDocument, Input, ModelReply, ModelRequest } from "./document.ts";
import type { Random } from "./random.ts";
import { hasOffers } from "./workload_inputs.ts";

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;
/** The first is also written by calls of the API. */
const SUBSCRIPTIONS = ["one", "one", "sub_2"];
/** Few, so that users who merge have copies of one grant; the last ones also come from calls of the API. */
const REFERENCES = ["cs_1", "cs_2", "il_3", "il_4", "il_5", "order-1", "order-2"];
const TOLD_MAX = 40;
const GRANTED_MAX = 12;

export class StripeInputs {
  readonly #random: Random;
  readonly #catalog: CatalogDocument;
  /** Every mirror so far, which may be repeated. */
  readonly #told: Input[] = [];
  /** Users and references of grants, the last ones. */
  readonly #granted: Input[] = [];
  /** Users and references of refunds and revokes, the last ones. */
  readonly #taken: Input[] = [];
  /** Who took a hold last: whatever happens to that user happens under an open hold. */
  #holder: unknown = null;

  constructor(random: Random, catalog: CatalogDocument) {
    this.#random = random;
    this.#catalog = catalog;
  }

  /** Remembers what may be repeated and what may be refunded. */
  observe({ op, input }: ModelRequest, { status, data }: ModelReply): void {
    if (status !== 200) return;
    if (op === "reserve" && data?.["reservationId"] !== undefined) this.#holder = input["userId"];
    if (op === "mirror") {
      this.#told.push(input);
      if (this.#told.length > TOLD_MAX) this.#told.shift();
    }
    const { userId, externalRef } = input;
    if (op === "refund" && !String(externalRef).includes(":")) {
      this.#taken.push({ userId, externalRef });
      if (this.#taken.length > GRANTED_MAX) this.#taken.shift();
    }
    if (op === "reinstate") this.#granted.push({ userId, externalRef: input["newRef"] });
    if ((op === "grant" || op === "paidGrant") && typeof externalRef === "string") {
      this.#granted.push({ userId, externalRef });
      if (this.#granted.length > GRANTED_MAX) this.#granted.shift();
    }
  }

  /** A message about a subscription: a new one, or an earlier one, unchanged or a little different. */
  mirrorInput(someone: string, nowMs: number): Input {
    const random = this.#random;
    const userId = this.#holder !== null && random.chance(0.3) ? this.#holder : someone;
    const key = { userId, provider: "stripe", externalId: random.pick(SUBSCRIPTIONS) };
    const ofUser = this.#told.filter((each) => each["userId"] === userId);
    const before = ofUser.length > 0 ? random.pick(ofUser) : null;
    const kind = random.weighted({ inForce: 35, over: 20, older: 15, newest: 15, changed: 15 });
    if (kind === "over") return { ...key, ...this.#over(nowMs) };
    if (kind === "inForce" || before === null) return { ...key, ...this.#inForce(nowMs) };
    if (kind === "older") return { ...before };
    if (kind === "newest") return { ...ofUser.at(-1)! };
    const { planId, endsAt } = this.#inForce(nowMs);
    return { ...before, ...random.chance(0.5) ? { planId } : { endsAt } };
  }

  #inForce(nowMs: number): Input {
    const random = this.#random;
    const unknown = random.chance(0.03);
    return {
      planId: unknown ? "plan_unknown" : random.pick(this.#catalog.plans).id,
      startsAt: random.chance(0.3)
        ? null
        : iso(nowMs + random.pick([HOUR_MS, -HOUR_MS, -10 * DAY_MS, -45 * DAY_MS]) - random.whole(0, 99_999)),
      endsAt: random.chance(0.6) ? null : this.#end(nowMs),
      ...hasOffers(this.#catalog) && random.chance(0.2) ? { quantity: random.pick([1, 2, 5]) } : {},
    };
  }

  #over(nowMs: number): Input {
    const random = this.#random;
    const reason = random.chance(0.8) ? { reason: `Stripe: ${random.pick(["canceled", "paused"])}` } : {};
    return { endedAt: random.chance(0.5) ? null : this.#end(nowMs), ...reason };
  }

  /** Ahead, passed, now, or before anything started. */
  #end(nowMs: number): string {
    const random = this.#random;
    const jitter = random.whole(0, 99_999);
    const away = random.pick([1000, 60_000 + jitter, 3 * DAY_MS + jitter, -1, -HOUR_MS - jitter, 0]);
    return random.chance(0.1) ? iso(1000) : iso(nowMs + away);
  }

  paidGrantInput(userId: string): Input {
    const random = this.#random;
    const externalRef = random.pick(REFERENCES);
    const { packs = [] } = this.#catalog;
    const pack = random.chance(0.03) || packs.length === 0 ? null : random.pick(packs);
    const hasItems = pack !== null && pack.items.length > 0;
    const count = random.weighted({ "1": 50, "2": 25, "3": 20, "1000000000000": 15 });
    return {
      userId,
      packId: pack?.id ?? "cpk_unknown",
      externalRef,
      packs: hasItems ? Number(count) : 1,
      ...(hasItems ? {} : { quantity: random.whole(1, 9) }),
    };
  }

  /** Mostly of a grant that was made of late, maybe refunded before. */
  refundInput(userId: string): Input {
    const random = this.#random;
    const reason = "Stripe: the payment was refunded";
    if (this.#granted.length === 0 || random.chance(0.1)) {
      return { userId, externalRef: random.pick(REFERENCES), reason };
    }
    const ofHolder = this.#granted.filter((each) => each["userId"] === this.#holder);
    const some = ofHolder.length > 0 && random.chance(0.6) ? ofHolder : this.#granted;
    return { ...random.pick(some), reason };
  }

  /** Mostly of what was refunded before, for one of two disputes. */
  reinstateInput(someone: string): Input {
    const random = this.#random;
    const known = [
      ...this.#taken,
      ...this.#granted.filter(({ externalRef }) => !String(externalRef).includes(":")),
    ];
    const { userId, externalRef } = this.#taken.length > 0 && random.chance(0.8)
      ? random.pick(this.#taken)
      : known.length > 0
      ? random.pick(known)
      : { userId: someone, externalRef: random.pick(REFERENCES) };
    const [now, earlier] = random.pick([["dp_1", "dp_2"], ["dp_2", "dp_1"]]);
    const input = { userId, externalRef, newRef: `${externalRef}:${now}` };
    return { ...input, earlierRefs: random.chance(0.7) ? [`${externalRef}:${earlier}`] : [] };
  }
}

function iso(at: number): string {
  return new Date(at).toISOString();
}
