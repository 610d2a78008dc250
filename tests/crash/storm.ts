// A storm of merges between reserves, settlements, tracks and grants, in an app of its own. The clients add up the
// answers for every id; the canonical user of the ids must show that sum in the end. With keys every call is sent
// again until it is answered, by any process, so that every sum is exact.

import assert from "node:assert/strict";
import { pause } from "./program.ts";
import { ADMIN_TOKEN } from "./stage.ts";
import { answerOf, type Outcome, Wire } from "./wire.ts";

const WIRES = 12;
const FUNDS = 100_000;
const TWIN_AMOUNT = 10;
const TWIN_REFS = 4;
/** A call that is sent again is answered within this time, not counting the time without a process. */
const ANSWER_MS = 240_000;
const AGAIN_MS = 50;
/** How often a client goes to another process, which costs it a connection. */
const MOVE_SHARE = 0.1;

const CATALOG = {
  plans: [{
    id: "plan_life",
    name: "Life",
    rank: 1,
    period: { type: "lifetime", anchor: "subscription_start" },
    limits: [{ id: "lg_all", label: "All", unit: "count", quota: 1e9, matches: [{ event: "plan.*" }] }],
  }],
  packs: [["cpk_funds", "free.*"], ["cpk_twin", "never.*"]].map(([id, event]) => {
    return { id, name: id, kind: "per_type", unit: "count", matches: [{ event }], items: [] };
  }),
};

/** What something came to: exact where every call was answered, else between two bounds. */
interface Bounds {
  low: number;
  high: number;
}

/** The answers about one id. */
class Account {
  readonly plan: Bounds = { low: 0, high: 0 };
  readonly credits: Bounds = { low: 0, high: 0 };
  readonly events: Bounds = { low: 0, high: 0 };
  readonly refs = new Set<string>();
  readonly maybeRefs = new Set<string>();
}

function add(bounds: Bounds, amount: number, isKnown: boolean): void {
  bounds.low += isKnown ? amount : Math.min(amount, 0);
  bounds.high += isKnown ? amount : Math.max(amount, 0);
}

interface Hold {
  readonly id: string;
  readonly userId: string;
  readonly count: number;
  readonly kind: "plan" | "credits";
}

interface MergeCall {
  readonly from: string;
  readonly to: string;
  readonly isKnown: boolean;
}

/** Clients of one app with their books. */
export class Storm {
  readonly users: string[] = [];
  readonly accounts = new Map<string, Account>();
  readonly holds: Hold[] = [];
  readonly merges: MergeCall[] = [];
  readonly faults: string[] = [];
  readonly operations: Bounds = { low: 0, high: 0 };
  calls = 0;
  mergeCalls = 0;
  isOver = false;
  /** Where the clients send, each call to any of them; changed when other processes serve. */
  origins: readonly string[] = [];
  /** How long its reader waits after each look at the feed, which asks for a drain at once. */
  readPauseMs = 5;
  readonly #isKeyed: boolean;
  #lastKey = 0;
  #key = "";
  #workspaceId = "";

  /** @param isKeyed whether every call has an idempotency key and is sent again until it is answered */
  constructor(isKeyed = false) {
    this.#isKeyed = isKeyed;
  }

  /** Makes the app with its first users. */
  async populate(users: number): Promise<void> {
    const { workspaceId } = await this.must("POST", "/admin/v1/workspaces", { name: "Merge" });
    const { appId, keys } = await this.must("POST", "/admin/v1/apps", { name: "Merge", workspaceId });
    this.#workspaceId = workspaceId;
    await this.must("PUT", `/admin/v1/apps/${appId}/catalog`, CATALOG);
    this.#key =
      keys.find((key: { class: string; mode: string }) => key.class === "secret" && key.mode === "live").key;
    await this.addUsers(users);
  }

  /** Adds users with a plan and credits. */
  async addUsers(count: number): Promise<void> {
    const fresh = Array.from({ length: count }, (_, place) => `s${this.users.length + place}`);
    await Promise.all(fresh.map(async (userId) => {
      await this.must("POST", "/v1/subscriptions", { userId, planId: "plan_life" });
      await this.must("POST", "/v1/credits/grant", { userId, packId: "cpk_funds", quantity: FUNDS });
    }));
    for (const userId of fresh) this.accounts.set(userId, new Account());
    this.users.push(...fresh);
  }

  /** The data of a call that must succeed; one that the service cannot answer right now is sent again for a while. */
  async must(method: string, path: string, body?: object) {
    const deadline = performance.now() + ANSWER_MS;
    const wire = new Wire(pick(this.origins));
    let answer = answerOf(await this.#send(wire, method, path, body));
    while (answer.status === 503 && performance.now() < deadline) {
      await pause(AGAIN_MS);
      answer = answerOf(await this.#send(wire, method, path, body));
    }
    wire.close();
    assert.equal(answer.status, 200, `${path}: ${JSON.stringify(answer.body)}`);
    return answer.body.data;
  }

  #send(
    wire: Wire,
    method: string,
    path: string,
    body?: object,
    idempotencyKey: string | null = null,
  ): Promise<Outcome> {
    const bearer = path.startsWith("/admin") ? ADMIN_TOKEN : this.#key;
    if (!this.origins.includes(wire.origin) || Math.random() < MOVE_SHARE) wire.moveTo(pick(this.origins));
    return wire.call({ method, path: `/api${path}`, body, bearer, idempotencyKey });
  }

  /** Sends a call again under its key until it is answered. */
  async #insist(wire: Wire, path: string, body: object): Promise<Outcome> {
    const key = `storm-${++this.#lastKey}`;
    let deadline = performance.now() + ANSWER_MS;
    while (true) {
      const outcome = await this.#send(wire, "POST", path, body, key);
      if (outcome.kind === "answer" && outcome.answer.status !== 503) return outcome;
      if (outcome.kind === "unsent") deadline = performance.now() + ANSWER_MS;
      if (performance.now() > deadline) throw new Error(`No answer to ${path} ${JSON.stringify(body)}`);
      await pause(AGAIN_MS);
    }
  }

  /** Calls until the storm is over, each client after a pause of its own. */
  async blow(mergeShare: number, pauseMaxMs = 0): Promise<void> {
    this.isOver = false;
    await Promise.all(Array.from({ length: WIRES }, async (_, place) => {
      const wire = new Wire(pick(this.origins));
      while (!this.isOver) {
        if (pauseMaxMs > 0) await pause(Math.random() * pauseMaxMs);
        if (place === 0) await this.#read(wire);
        else if (Math.random() < mergeShare) await this.#merge(wire);
        else await this.#meter(wire);
      }
      wire.close();
    }));
  }

  /** The data of an answer; null where it is not known whether the call had an effect, undefined where it had none. */
  // deno-lint-ignore no-explicit-any -- tests look at whatever came back
  async #call(wire: Wire, path: string, body: object): Promise<any> {
    this.calls++;
    const outcome = this.#isKeyed
      ? await this.#insist(wire, path, body)
      : await this.#send(wire, "POST", path, body);
    if (outcome.kind === "unsent") return undefined;
    if (outcome.kind !== "answer" || outcome.answer.status === 503) return null;
    const { status, body: { data, error } } = outcome.answer;
    if (status === 200) return data;
    const isRefused = status === 409 && ["alias_conflict", "alias_cycle"].includes(error?.code);
    if (!isRefused) this.faults.push(`${path} ${JSON.stringify(body)}: ${status} ${JSON.stringify(error)}`);
    return undefined;
  }

  async #merge(wire: Wire): Promise<void> {
    this.mergeCalls++;
    const [from, to] = [pick(this.users), pick(this.users)];
    const report = await this.#call(wire, "/v1/customers/alias", { from, to });
    if (report === undefined || report?.alreadyMerged === true) return;
    this.merges.push({ from, to, isKnown: report !== null });
    // A merge writes a row for the subscription, and some for each balance.
    add(
      this.operations,
      report?.billableOperations ?? 1 + 2 * this.users.length * (TWIN_REFS + 1),
      report !== null,
    );
  }

  async #read(wire: Wire): Promise<void> {
    await this.#send(wire, "POST", "/admin/v1/move-history", {});
    await this.#send(wire, "GET", `/v1/events?limit=5&userId=${pick(this.users)}`);
    await pause(this.readPauseMs);
  }

  async #meter(wire: Wire): Promise<void> {
    const choice = Math.random();
    if (choice < 0.35) await this.#reserve(wire);
    else if (choice < 0.75) await this.#settle(wire);
    else if (choice < 0.9) await this.#track(wire);
    else await this.#grant(wire);
  }

  async #reserve(wire: Wire): Promise<void> {
    const { userId, count, kind, event, account } = this.#need();
    const data = await this.#call(wire, "/v1/reserve", { userId, event, count });
    if (data === undefined) return;
    if (data?.allowed === false) this.faults.push(`reserve ${event}: ${JSON.stringify(data)}`);
    add(account[kind], count, data !== null);
    if (data !== null) this.holds.push({ id: data.reservationId, userId, count, kind });
  }

  async #track(wire: Wire): Promise<void> {
    const { userId, count, kind, event, account } = this.#need();
    const data = await this.#call(wire, "/v1/track", { userId, event, count });
    if (data === undefined) return;
    for (
      const [bounds, amount] of [[account[kind], count], [account.events, 1], [this.operations, 1]] as const
    ) {
      add(bounds, amount, data !== null);
    }
  }

  async #settle(wire: Wire): Promise<void> {
    const [hold] = this.holds.splice(Math.floor(Math.random() * this.holds.length), 1);
    if (hold === undefined) return;
    const isCommit = Math.random() < 0.6;
    const extra = isCommit ? Math.floor(Math.random() * 3) : -hold.count;
    const body = { reservationId: hold.id, ...(isCommit ? { extra: { count: extra } } : {}) };
    const data = await this.#call(wire, isCommit ? "/v1/commit" : "/v1/release", body);
    if (data === undefined) return;
    const account = this.accounts.get(hold.userId) as Account;
    add(account[hold.kind], extra, data !== null);
    add(account.events, 1, data !== null);
    if (isCommit) add(this.operations, 1, data !== null);
  }

  /** Twins: several ids are granted the same reference, and merges make one balance of them. */
  async #grant(wire: Wire): Promise<void> {
    const { userId, account } = this.#need();
    const externalRef = `ref${Math.floor(Math.random() * TWIN_REFS)}`;
    const body = { userId, packId: "cpk_twin", quantity: TWIN_AMOUNT, externalRef };
    const data = await this.#call(wire, "/v1/credits/grant", body);
    if (data !== undefined) (data === null ? account.maybeRefs : account.refs).add(externalRef);
  }

  #need() {
    const userId = pick(this.users);
    const kind = Math.random() < 0.5 ? "plan" : "credits" as const;
    const event = kind === "plan" ? "plan.x" : "free.x";
    const account = this.accounts.get(userId) as Account;
    return { userId, kind, event, account, count: 1 + Math.floor(Math.random() * 4) } as const;
  }

  /** Compares what every id shows with the books; answers how many users are left. */
  async audit(): Promise<number> {
    assert.deepEqual(this.faults.slice(0, 5), []);
    const customers = await Promise.all(this.users.map((id) => this.must("GET", `/v1/customers/${id}`)));
    const canonicalOf = new Map(this.users.map((id, place) => [id, customers[place].canonicalId as string]));
    this.#checkMerges(canonicalOf);
    const groups = Map.groupBy(this.users, (id) => canonicalOf.get(id) as string);
    await Promise.all([...groups].map(([canonical, ids]) => this.#checkUser(canonical, ids)));
    const workspaces = await this.must("GET", "/admin/v1/workspaces");
    const own = workspaces.find((row: { workspaceId: string }) => row.workspaceId === this.#workspaceId);
    assertWithin(own.operationsUsed, this.operations, "operations");
    return groups.size;
  }

  /** Checks that every answered merge is complete, and that ids of one user were merged by a call. */
  #checkMerges(canonicalOf: ReadonlyMap<string, string>): void {
    for (const { from, to, isKnown } of this.merges) {
      if (isKnown) assert.equal(canonicalOf.get(from), canonicalOf.get(to), `${from} into ${to}`);
    }
    const rootOf = (id: string, roots: ReadonlyMap<string, string>): string => {
      const next = roots.get(id);
      return next === undefined ? id : rootOf(next, roots);
    };
    const roots = new Map<string, string>();
    for (const { from, to } of this.merges) {
      const [a, b] = [rootOf(from, roots), rootOf(to, roots)];
      if (a !== b) roots.set(a, b);
    }
    for (const [id, canonical] of canonicalOf) {
      assert.equal(rootOf(id, roots), rootOf(canonical, roots), `no call merged ${id} and ${canonical}`);
    }
  }

  async #checkUser(canonical: string, ids: readonly string[]): Promise<void> {
    const shown = await this.#show(canonical);
    for (const id of ids) assert.deepEqual(await this.#show(id), shown, `${id} and ${canonical}`);
    const feed = await this.#feed(canonical);
    const aliases = ids.filter((id) => id !== canonical);
    if (aliases.length > 0) {
      const id = pick(aliases);
      assert.deepEqual(await this.#feed(id), feed, `the feeds of ${id} and ${canonical}`);
      const again = await this.must("POST", "/v1/customers/alias", { from: id, to: canonical });
      assert.deepEqual([again.alreadyMerged, again.billableOperations], [true, 0]);
    }
    const accounts = ids.map((id) => this.accounts.get(id) as Account);
    const sum = (part: (account: Account) => Bounds): Bounds => ({
      low: accounts.reduce((all, account) => all + part(account).low, 0),
      high: accounts.reduce((all, account) => all + part(account).high, 0),
    });
    assertWithin(shown.count, sum(({ plan }) => plan), `the counter of ${canonical} with ${ids}`);
    assertWithin(
      ids.length * FUNDS - shown.funds,
      sum(({ credits }) => credits),
      `the credits of ${canonical}`,
    );
    assertWithin(feed.length, sum(({ events }) => events), `the feed of ${canonical}`);
    const refs = new Set(accounts.flatMap((account) => [...account.refs]));
    const maybe = new Set([...refs, ...accounts.flatMap((account) => [...account.maybeRefs])]);
    const twins = { low: refs.size * TWIN_AMOUNT, high: maybe.size * TWIN_AMOUNT };
    assertWithin(shown.twins, twins, `the twins of ${canonical}`);
  }

  async #show(id: string) {
    const usage = await this.must("GET", `/v1/usage?userId=${id}`);
    const left = (packId: string) =>
      usage.credits.filter((row: { packId: string }) => row.packId === packId)
        .reduce((all: number, { remaining }: { remaining: number }) => all + remaining, 0);
    const { userId, counters } = usage;
    return { userId, count: counters[0].count as number, funds: left("cpk_funds"), twins: left("cpk_twin") };
  }

  async #feed(id: string): Promise<string[]> {
    const feed: string[] = [];
    for (let offset = 0;; offset += 100) {
      const { events } = await this.must("GET", `/v1/events?userId=${id}&limit=100&offset=${offset}`);
      feed.push(...events.map((event: { id: string }) => event.id));
      if (events.length < 100) break;
    }
    assert.equal(new Set(feed).size, feed.length);
    return feed;
  }
}

function pick<T>(list: readonly T[]): T {
  return list[Math.floor(Math.random() * list.length)] as T;
}

function assertWithin(value: number, { low, high }: Bounds, what: string): void {
  assert.ok(
    value >= low && value <= high,
    `${what}: ${value}, told ${low === high ? low : `${low} to ${high}`}`,
  );
}
