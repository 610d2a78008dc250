// What the tests of credit packs share: a catalog of plans and packs, and a customer, who acts for one user of an
// app in one mode and can audit that user's ledger.

import assert from "node:assert/strict";
import type { Answer, TestApp, TestService } from "../support/test_service.ts";
import { dataOf } from "./support.ts";

const limit = (id: string, unit: string, quota: number, event: string, headroom: unknown = null) => {
  return { id, label: id, unit, quota, headroom, matches: [{ event }] };
};

/** A pack without items. */
const legacyPack = (id: string, unit: string, events: string[], members: object = {}) => {
  const matches = events.map((event) => ({ event }));
  return { id, name: id.replace("cpk_", "Pack "), kind: "per_type", unit, matches, items: [], ...members };
};

export const CREDIT_CATALOG = {
  settings: { promptLogging: false, reservationTtlSeconds: 600 },
  models: [{ id: "veo", modality: "video", amountMode: "per_unit", centsPerSecond: 40 }],
  plans: [{
    id: "plan_pro",
    name: "Pro",
    rank: 10,
    period: { type: "monthly", anchor: "calendar" },
    limits: [
      limit("lg_images", "count", 10, "image.*"),
      limit("lg_premium", "count", 3, "image.premium"),
      limit("lg_chat", "tokens", 100, "chat.*"),
      limit("lg_budget", "cents", 50, "chat.*"),
      limit("lg_video", "seconds", 10, "video.*"),
      limit("lg_agent", "count", 10, "agent.*", { mode: "percent", value: 80 }),
      limit("lg_twice", "count", 10, "twice.*", { mode: "multiplier", value: 2 }),
    ],
  }],
  packs: [
    {
      id: "cpk_topup",
      name: "Image Top-Up",
      kind: "per_type",
      defaultExpiryDays: null,
      items: [{
        id: "cpi_images",
        label: "50 images",
        unit: "count",
        amount: 50,
        matches: [{ event: "image.*" }],
      }],
    },
    {
      id: "cpk_bundle",
      name: "Creator Bundle",
      kind: "per_type",
      priority: 150,
      defaultExpiryDays: 90,
      items: [
        {
          id: "cpi_bundle_images",
          label: "10 images of one model",
          unit: "count",
          amount: 10,
          matches: [{ event: "image.render", metadata: { model: "flux" } }],
        },
        {
          id: "cpi_bundle_video",
          label: "5 seconds of video",
          unit: "seconds",
          amount: 5,
          matches: [{ event: "video.veo" }],
        },
      ],
    },
    legacyPack("cpk_wallet", "count", ["*"], { name: "Wallet", kind: "generic", defaultExpiryDays: 365 }),
    legacyPack("cpk_first", "count", ["image.*"], { priority: 200 }),
    legacyPack("cpk_count", "count", ["image.*", "agent.*", "twice.*"]),
    legacyPack("cpk_tokens", "tokens", ["chat.*"]),
    legacyPack("cpk_cents", "cents", ["chat.*"]),
    legacyPack("cpk_seconds", "seconds", ["video.*"]),
  ],
};

/** The catalog with members of one of its packs changed, or without the pack. */
export function catalogWithPack(packId: string, members: object | null): object {
  const packs = CREDIT_CATALOG.packs.filter(({ id }) => members !== null || id !== packId);
  return {
    ...CREDIT_CATALOG,
    packs: packs.map((pack) => pack.id === packId ? { ...pack, ...members } : pack),
  };
}

/** A row of the list of credits. */
export interface Credit {
  readonly balanceId: string;
  readonly packId: string;
  readonly remaining: number;
  readonly initial: number;
  readonly status: string;
}

/** A row of the ledger. */
export interface Entry {
  readonly id: string;
  readonly balanceId: string;
  readonly packId: string;
  readonly delta: number;
  readonly reason: string;
  readonly eventId: string | null;
  readonly reservationId: string | null;
  readonly occurredAt: string;
  readonly notes: string | null;
}

type Query = Readonly<Record<string, string | number | boolean>>;

/** A user of an app, in the mode of a key. */
export class Customer {
  readonly app: TestApp;
  readonly userId: string;
  readonly key: string;

  constructor(app: TestApp, userId = "u", key = app.secretLive) {
    this.app = app;
    this.userId = userId;
    this.key = key;
  }

  /** Calls with a body or, for GET, a query; the user is named in either. */
  ask(method: string, path: string, members: object = {}): Promise<Answer> {
    const all = { userId: this.userId, ...members };
    const options = { key: this.key };
    if (method !== "GET") return this.app.call(method, path, all, options);
    const query = new URLSearchParams(Object.entries(all).map(([name, value]) => [name, String(value)]));
    return this.app.call(method, `${path}?${query}`, undefined, options);
  }

  get(path: string, query: Query = {}) {
    return dataOf(this.ask("GET", path, query));
  }

  post(path: string, body: object = {}) {
    return dataOf(this.ask("POST", path, body));
  }

  grant(packId: string, members: object = {}) {
    return this.post("/credits/grant", { packId, ...members });
  }

  /** Grants some of a pack without items; answers the id of the balance. */
  async fund(packId: string, quantity: number, members: object = {}): Promise<string> {
    return (await this.grant(packId, { quantity, ...members })).balanceId;
  }

  /** A hold that must be allowed; answers its id. */
  async hold(event: string, members: object = {}): Promise<string> {
    const data = await this.post("/reserve", { event, ...members });
    assert.equal(data.allowed, true, JSON.stringify(data));
    return data.reservationId;
  }

  async commit(reservationId: string, members: object = {}) {
    return await this.post("/commit", { reservationId, ...members });
  }

  async release(reservationId: string): Promise<void> {
    assert.deepEqual(await this.post("/release", { reservationId }), {});
  }

  async event(eventId: string) {
    return await dataOf(this.app.call("GET", `/events/${eventId}`, undefined, { key: this.key }));
  }

  async credits(query: Query = {}): Promise<Credit[]> {
    return (await this.get("/credits", query)).credits;
  }

  /** What is left of balances, in their order. */
  async remaining(...balanceIds: string[]): Promise<(number | undefined)[]> {
    const rows = await this.credits({ includeExpired: true });
    return balanceIds.map((id) => rows.find(({ balanceId }) => balanceId === id)?.remaining);
  }

  async statusOf(id: string): Promise<string | undefined> {
    const rows = await this.credits({ includeExpired: true });
    return rows.find(({ balanceId }) => balanceId === id)?.status;
  }

  /** The counts of groups, in their order. */
  async counts(...groupIds: string[]): Promise<(number | undefined)[]> {
    const { counters } = await this.get("/usage");
    return groupIds.map((id) => counters.find((row: { groupId: string }) => row.groupId === id)?.count);
  }

  /** The whole ledger, newest first. */
  async ledger(query: Query = {}): Promise<Entry[]> {
    const entries: Entry[] = [];
    let cursor: string | null = null;
    do {
      const page: Query = cursor === null ? query : { ...query, cursor };
      const data = await this.get("/credits/history", { limit: 500, ...page });
      entries.push(...data.entries);
      cursor = data.nextCursor;
      assert.ok(cursor === null || data.entries.length === 500, "a full page comes before another");
    } while (cursor !== null);
    return entries;
  }

  /** The last rows of the ledger in the order in which they were written: balance, delta and reason of each. */
  async lastRows(count: number): Promise<[string, number, string][]> {
    const rows = (await this.ledger()).slice(0, count).reverse();
    return rows.map(({ balanceId, delta, reason }) => [balanceId, delta, reason]);
  }

  /** Everything about the user's credits and counters. */
  async picture() {
    const credits = await this.credits({ includeExpired: true });
    const { counters } = await this.get("/usage");
    return { credits, counters, ledger: await this.ledger() };
  }

  /** Moves the test clock. */
  async pass(seconds: number): Promise<void> {
    await this.post("/test-clock", { advanceSeconds: seconds });
  }

  /** Checks that what is left of every balance is the sum of its ledger. */
  async audit(): Promise<void> {
    const sums = new Map<string, number>();
    for (const { balanceId, delta } of await this.ledger()) {
      sums.set(balanceId, (sums.get(balanceId) ?? 0) + Math.round(delta * 1e6));
    }
    const rows = await this.credits({ includeExpired: true });
    assert.deepEqual(
      new Map(rows.map(({ balanceId, remaining }) => [balanceId, Math.round(remaining * 1e6)])),
      new Map(rows.map(({ balanceId }) => [balanceId, sums.get(balanceId)])),
    );
    assert.equal(sums.size, rows.length, "every balance of the ledger is listed");
    for (const { remaining } of rows) assert.ok(remaining >= 0);
  }
}

/** A customer "u" of a new app, on the plan unless told otherwise. */
export async function newCustomer(
  service: TestService,
  { workspace = {}, mode = "live", planId = "plan_pro" }: {
    workspace?: Record<string, unknown>;
    mode?: "live" | "test";
    planId?: string | null;
  } = {},
): Promise<Customer> {
  const app = await service.newApp(CREDIT_CATALOG, workspace);
  const customer = new Customer(app, "u", mode === "live" ? app.secretLive : app.secretTest);
  if (planId !== null) await customer.post("/subscriptions", { planId });
  return customer;
}

/** Puts a changed catalog in place. */
export async function applyCatalog(service: TestService, app: TestApp, document: object): Promise<void> {
  const { status, body } = await service.admin("PUT", `/apps/${app.appId}/catalog`, document);
  assert.equal(status, 200, JSON.stringify(body));
}
