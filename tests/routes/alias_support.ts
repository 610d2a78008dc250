// What the tests of aliases share: a catalog whose plans pair in part, and a town, the users of an app in one mode,
// with checks of each merge from all sides.

import assert from "node:assert/strict";
import type { Answer, TestApp, TestService } from "../support/test_service.ts";
import { dataOf } from "./support.ts";

const limit = (id: string, unit: string, quota: number, event: string) => {
  return { id, label: id, unit, quota, matches: [{ event }] };
};

const plan = (id: string, rank: number, limits: unknown[], members: object = {}) => {
  return { id, name: id, rank, period: { type: "monthly", anchor: "calendar" }, limits, ...members };
};

const pack = (id: string, event: string, members: object = {}) => {
  return { id, name: id, kind: "per_type", unit: "count", matches: [{ event }], items: [], ...members };
};

const ALIAS_CATALOG = {
  settings: { promptLogging: false, reservationTtlSeconds: 600 },
  plans: [
    plan("plan_free", 1, [limit("lg_images", "count", 10, "image.*")]),
    plan("plan_pro", 10, [
      limit("lg_images", "count", 100, "image.*"),
      limit("lg_chat", "tokens", 1000, "chat.*"),
      limit("lg_only", "count", 50, "only.*"),
    ]),
    // Pairs with the one above by rules and by id; one group pairs with nothing.
    plan("plan_team", 20, [
      limit("lg_pictures", "count", 200, "image.*"),
      limit("lg_chat", "tokens", 5000, "chat.*"),
    ], { onPlanChange: "reset" }),
    plan("plan_daily", 10, [limit("lg_images", "count", 20, "image.*")], {
      period: { type: "daily", anchor: "subscription_start" },
      onPlanChange: "block",
    }),
  ],
  packs: [
    pack("cpk_credits", "*"),
    pack("cpk_other", "*"),
    {
      id: "cpk_bundle",
      name: "Bundle",
      kind: "per_type",
      items: [
        { id: "cpi_one", label: "One", unit: "count", amount: 10, matches: [{ event: "image.*" }] },
        { id: "cpi_two", label: "Two", unit: "tokens", amount: 500, matches: [{ event: "chat.*" }] },
      ],
    },
  ],
};

/** A report where nothing moved and nothing met. */
export const EMPTY_REPORT = {
  mode: "live",
  dryRun: false,
  alreadyMerged: false,
  historyPending: false,
  billableOperations: 0,
  moved: {
    events: 0,
    eventLogs: 0,
    counters: 0,
    reservations: 0,
    subscriptions: 0,
    subscriptionEvents: 0,
    creditBalances: 0,
    creditLedger: 0,
    mediaAssets: 0,
    composeGenerations: 0,
    aliasesRepointed: 0,
  },
  conflicts: {
    counters: { summed: 0, carried: [], unpaired: [] },
    subscriptions: null,
    endedSubscriptions: [],
    credits: [],
  },
  analytics: "linked",
};

// deno-lint-ignore no-explicit-any -- tests look at whatever came back
type Data = any;

/** The users of an app in the mode of a key. */
export class Town {
  readonly service: TestService;
  readonly app: TestApp;
  readonly mode: "live" | "test";

  constructor(service: TestService, app: TestApp, mode: "live" | "test" = "live") {
    this.service = service;
    this.app = app;
    this.mode = mode;
  }

  static async open(
    service: TestService,
    workspace: Record<string, unknown> = {},
    mode: "live" | "test" = "live",
  ): Promise<Town> {
    return new Town(service, await service.newApp(ALIAS_CATALOG, workspace), mode);
  }

  get key(): string {
    return this.mode === "live" ? this.app.secretLive : this.app.secretTest;
  }

  ask(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    return this.app.call(method, path, body, { key: this.key, headers });
  }

  post(path: string, body: object): Promise<Data> {
    return dataOf(this.ask("POST", path, body));
  }

  get(path: string): Promise<Data> {
    return dataOf(this.ask("GET", path));
  }

  subscribe(userId: string, planId: string, members: object = {}): Promise<Data> {
    return this.post("/subscriptions", { userId, planId, ...members });
  }

  /** A subscription that a payment provider made. */
  async pay(userId: string, planId: string, externalId: string, members: object = {}): Promise<string> {
    const row = await this.subscribe(userId, planId, { provider: "stripe", externalId, ...members });
    return row.subscriptionId;
  }

  track(userId: string, event: string, members: object = {}): Promise<Data> {
    return this.post("/track", { userId, event, ...members });
  }

  async hold(userId: string, event: string, members: object = {}): Promise<string> {
    const data = await this.post("/reserve", { userId, event, ...members });
    assert.equal(data.allowed, true, JSON.stringify(data));
    return data.reservationId;
  }

  async grant(userId: string, quantity: number, members: object = {}): Promise<string> {
    return (await this.post("/credits/grant", { userId, packId: "cpk_credits", quantity, ...members }))
      .balanceId;
  }

  askAlias(from: unknown, to: unknown, members: object = {}): Promise<Answer> {
    return this.ask("POST", "/customers/alias", { from, to, ...members });
  }

  customer(id: string): Promise<Data> {
    return this.get(`/customers/${encodeURIComponent(id)}`);
  }

  async counts(userId: string): Promise<Record<string, number>> {
    const { counters } = await this.get(`/usage?userId=${encodeURIComponent(userId)}`);
    return Object.fromEntries(counters.map((row: Data) => [row.groupId, row.count]));
  }

  async credits(userId: string): Promise<Data[]> {
    return (await this.get(`/credits?userId=${encodeURIComponent(userId)}&includeExpired=true`)).credits;
  }

  /** Newest first. */
  async ledger(userId: string): Promise<Data[]> {
    const entries: Data[] = [];
    let cursor = "";
    do {
      const page = await this.get(`/credits/history?limit=500&userId=${encodeURIComponent(userId)}${cursor}`);
      entries.push(...page.entries);
      cursor = page.nextCursor === null ? "" : `&cursor=${encodeURIComponent(page.nextCursor)}`;
    } while (cursor !== "");
    return entries;
  }

  /** Ids of all events of a user, newest first. */
  async feed(userId: string): Promise<string[]> {
    const ids: string[] = [];
    for (let offset = 0;; offset += 100) {
      const query = `limit=100&offset=${offset}&userId=${encodeURIComponent(userId)}`;
      const { events } = await this.get(`/events?${query}`);
      ids.push(...events.map(({ id }: { id: string }) => id));
      if (events.length < 100) return ids;
    }
  }

  /** Operations that the workspace has used in this mode. */
  async operations(): Promise<number> {
    const { body } = await this.service.admin("GET", "/workspaces");
    const row = body.data.find((each: Data) => each.workspaceId === this.app.workspaceId);
    return this.mode === "live" ? row.operationsUsed : row.testOperationsUsed;
  }

  /** Everything that an id shows. */
  async picture(userId: string): Promise<Data> {
    const id = encodeURIComponent(userId);
    return {
      customer: await this.customer(userId),
      usage: await this.get(`/usage?userId=${id}`),
      user: await this.get(`/users/${id}`),
      credits: await this.credits(userId),
      ledger: await this.ledger(userId),
      feed: await this.feed(userId),
    };
  }

  /** A dry run, which must change nothing that either id shows. */
  async dryRun(from: string, to: string, members: object = {}): Promise<Data> {
    const before = [await this.picture(from), await this.picture(to), await this.operations()];
    const report = await dataOf(this.askAlias(from, to, { dryRun: true, ...members }));
    assert.deepEqual([await this.picture(from), await this.picture(to), await this.operations()], before);
    return report;
  }

  /**
   * Merges, after a dry run that must have said the same, and checks what holds for every merge: operations are
   * counted, both ids show the same, ledgers add up, and a second call answers the stored report.
   */
  async merge(from: string, to: string, members: object = {}): Promise<Data> {
    const dry = await this.dryRun(from, to, members);
    const before = await this.operations();
    const report = await dataOf(this.askAlias(from, to, members));
    assert.match(report.mergeId, /^mrg_/);
    assert.deepEqual(dry, { ...report, mergeId: null, dryRun: true });
    assert.equal(await this.operations() - before, report.billableOperations);

    const picture = await this.picture(from);
    assert.deepEqual(await this.picture(to), picture);
    assert.deepEqual(picture.customer.duplicateActiveSubscriptions, report.conflicts.subscriptions);
    assert.ok(picture.customer.aliases.includes(from));
    assert.equal(picture.customer.canonicalId, picture.usage.userId);
    for (const { balanceId, remaining } of picture.credits) {
      const deltas = picture.ledger.filter((row: Data) => row.balanceId === balanceId);
      const sum = deltas.reduce((all: number, row: Data) => all + Math.round(row.delta * 1e6), 0);
      assert.equal(sum, Math.round(remaining * 1e6), `the ledger of ${balanceId}`);
    }
    const again = await dataOf(this.askAlias(from, to, members));
    const { historyPending } = again;
    assert.deepEqual(again, {
      ...report,
      alreadyMerged: true,
      billableOperations: 0,
      historyPending,
      moved: report.historyPending && !historyPending ? again.moved : report.moved,
      analytics: report.analytics === "linked" ? "already_linked" : report.analytics,
    });
    assert.equal(await this.operations() - before, report.billableOperations, "a repeated call is free");
    return report;
  }

  /** Moves the clock. */
  async pass(seconds: number): Promise<void> {
    if (this.mode === "live") this.service.clock.advance(seconds * 1000);
    else await this.post("/test-clock", { advanceSeconds: seconds });
  }
}

/** The numbers of a report that are not zero. */
export function movedOf(report: Data): Record<string, number> {
  const entries = Object.entries(report.moved as Record<string, number>);
  return Object.fromEntries(entries.filter(([, count]) => count !== 0));
}
