// Users of one workspace who buy automatically, at a Stripe that loses calls and answers while faults last, answers 500, keeps
// payments processing, and forgets keys after a day. The product calls it through the real package; its messages go to
// any node, some twice, some never.

import { Stripe } from "stripe";
import type { OpenStripe } from "../../src/integrations/stripe/stripe_client.ts";
import { Random } from "../model/random.ts";
import type { CatalogDocument } from "../model/document.ts";
import { type Bank, FakeStripe, type Fate } from "../support/fake_stripe.ts";
import type { Client } from "./clients.ts";
import type { SimTables } from "./database/tables.ts";
import type { Faults } from "./faults.ts";
import type { SimRequest } from "./history.ts";
import type { SimProcess } from "./process.ts";
import type { Tenant } from "./tenants.ts";
import { type Owner, type VirtualTime, WORLD } from "./time.ts";

const USERS = 4;
/** The number of the workspace. */
const NO = 20;
const MATCHES = [{ event: "image.*" }];
const CATALOG = {
  plans: [],
  packs: [{
    id: "cpk_top_up",
    name: "Top-up",
    kind: "per_type",
    price: { amount: 500, currency: "eur" },
    items: [{ id: "cpi_top_up", label: "Images", unit: "count", amount: 10, matches: MATCHES }],
  }],
} as unknown as CatalogDocument;

/** The workspace whose users buy automatically. */
export const BUYING: Tenant = {
  no: NO,
  store: 0,
  workspaceId: `ws_${NO}`,
  appId: `app_${NO}`,
  keyId: `key_${NO}`,
  key: `sk_live_simulation${String(NO).padStart(22, "0")}`,
  realm: 2 * NO - 1,
  catalog: CATALOG,
  caps: { mode: "live", operationCap: null, testCreditBalanceCap: null },
  webhooks: [],
  // The model is not asked about it.
  isCanary: true,
  isSold: true,
  hasWindows: false,
};

/** What it is part of. */
interface World {
  readonly time: VirtualTime;
  readonly faults: Faults;
  readonly processes: readonly SimProcess[];
}

/** Buyers, and Stripe as they and the product see it. */
export class SimTopUps {
  readonly stripe = new FakeStripe();
  readonly #random: Random;
  #world: World | null = null;
  #sent = 0;
  #open = 0;

  constructor(seed: number) {
    this.#random = new Random(seed);
  }

  /** Begins to send messages to the nodes of a world. */
  begin(world: World): void {
    const random = this.#random;
    const { stripe } = this;
    this.#world = world;
    stripe.now = () => world.time.calendar();
    stripe.fate = (): Fate =>
      world.faults.isQuiet ? "works" : random.weighted({
        ...{ works: 12, request_lost: 1, answer_lost: 2, fails: 1, fails_late: 1, rate_limited: 1 },
      });
    stripe.bank = (): Bank => random.weighted({ pays: 6, declines: 2, processes: 3, asks: 1 });
    stripe.onEvent = (type, object) => {
      // A few never arrive: then the product asks.
      if (random.chance(0.2)) return;
      const event = {
        id: `evt_top_up_${++this.#sent}`,
        ...{ type, created: Math.floor(world.time.calendar() / 1000), livemode: true },
        data: { object: { ...object } },
      };
      this.#open += 1;
      this.#send(event, random.whole(1, 4_000));
    };
  }

  /** How a process opens clients of Stripe. */
  openerOf(owner: Owner): OpenStripe {
    const http = Stripe.createFetchHttpClient((input, init) => this.#fetch(owner, input as string, init));
    const client = new Stripe("sk_live_simulated", {
      maxNetworkRetries: 0,
      telemetry: false,
      httpClient: http,
    });
    return () => Promise.resolve(client);
  }

  /** Whether nothing is under way, and every message that was sent was taken. */
  isSettled(tables: SimTables): boolean {
    const isUnderWay = ({ status }: { status?: unknown }) => status === "open" || status === "processing";
    return this.#open === 0 && tables.list("top_ups", isUnderWay).length === 0;
  }

  next(): { readonly client: Client; readonly request: SimRequest } {
    const random = this.#random;
    const client = { tenant: BUYING, bearer: BUYING.key };
    const userId = this.#someone();
    switch (random.weighted({ use: 8, put: 3, remove: 0.7, merge: 0.4, erase: 0.4 })) {
      case "put": {
        const below = random.whole(1, 8);
        const quantity = random.whole(1, 2);
        const maxPerMonth = random.pick([1_000, 5_000, 100_000]);
        return { client, request: { op: "putTopUp", input: { userId, below, quantity, maxPerMonth } } };
      }
      case "remove":
        return { client, request: { op: "deleteTopUp", input: { userId } } };
      case "merge":
        return { client, request: { op: "alias", input: { from: this.#shopper(), to: this.#shopper() } } };
      case "erase":
        return { client, request: { op: "erase", input: { distinctId: "gone-shopper" } } };
      default:
        return { client, request: { op: "useUp", input: { userId, count: random.whole(1, 6) } } };
    }
  }

  #someone(): string {
    return this.#random.chance(0.15) ? "gone-shopper" : this.#shopper();
  }

  /** One who is never erased. */
  #shopper(): string {
    return `shopper-${this.#random.whole(1, USERS)}`;
  }

  /** A call of a process: it takes its time on the way, and the process may be gone when the answer comes. */
  async #fetch(owner: Owner, url: string, init?: RequestInit): Promise<Response> {
    await this.#way(WORLD);
    const before = this.#processing();
    try {
      return await this.stripe.fetch(url, init);
    } finally {
      for (const id of this.#processing()) if (!before.has(id)) this.#finishLater(id);
      await this.#way(owner);
    }
  }

  #processing(): Set<string> {
    const { intents } = this.stripe;
    return new Set([...intents.values()].filter(({ status }) => status === "processing").map(({ id }) => id));
  }

  #finishLater(id: string): void {
    const isPaid = this.#random.chance(0.6);
    (this.#world as World).time.after(
      this.#random.whole(100, 20_000),
      WORLD,
      () => this.stripe.finish(id, isPaid),
    );
  }

  #way(owner: Owner): Promise<void> {
    const { time } = this.#world as World;
    return new Promise((resolve) => time.after(this.#random.whole(1, 150), owner, resolve));
  }

  /** Sends a message until a node has taken it; some once more. */
  #send(event: object, ms: number): void {
    const { time, faults, processes } = this.#world as World;
    const random = this.#random;
    time.after(ms, WORLD, () => {
      const process = random.pick(processes);
      let isOver = false;
      const end = (isTaken: boolean) => {
        if (isOver) return;
        isOver = true;
        if (!isTaken || (!faults.isQuiet && random.chance(0.2))) this.#send(event, random.whole(100, 5_000));
        else this.#open -= 1;
      };
      time.after(10_000, WORLD, () => end(false));
      if (!process.isAlive || !process.hasBegun) return end(false);
      const path = `/api/v1/stripe/${BUYING.appId}/live`;
      time.after(1, process.ownerFor(BUYING), () => {
        void process.takeOfStripe(path, JSON.stringify(event), `top-up-${this.#sent}`)
          .then((status) => time.after(1, WORLD, () => end(status === 200)), () => {});
      });
    });
  }
}
